// A count where the result has it.
#ifndef GPUALGO_HISTOGRAM_RESULT_CUH
#define GPUALGO_HISTOGRAM_RESULT_CUH

#include "parts/types.cuh"

namespace gpualgo {

// bytes: of the count, 1, 2, 4 or 8.
__device__ inline void store_count(unsigned char* address, int64 bytes, uint64 count) {
  if (bytes == 8) {
    *reinterpret_cast<uint64*>(address) = count;
  } else if (bytes == 4) {
    *reinterpret_cast<uint32*>(address) = uint32(count);
  } else if (bytes == 2) {
    *reinterpret_cast<uint16*>(address) = uint16(count);
  } else {
    *address = uint8(count);
  }
}

}  // namespace gpualgo

#endif
