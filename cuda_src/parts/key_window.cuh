// Where the keys of a call lie, which only the GPU knows.
#ifndef GPUALGO_PARTS_KEY_WINDOW_CUH
#define GPUALGO_PARTS_KEY_WINDOW_CUH

#include "parts/types.cuh"

namespace gpualgo {

struct KeyWindow {
  uint64 first;      // the bits of the least key
  uint64 is_narrow;  // whether a table holds a result of each key from there to the greatest
};

}  // namespace gpualgo

#endif
