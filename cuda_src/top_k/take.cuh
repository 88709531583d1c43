// Elements of rows by their positions, a few ranks from each row's order of all positions.
//
// Bytes      of the positions, and of what they lead to by sectors; launches: one; temporary
//            storage: none.
#ifndef GPUALGO_TOP_K_TAKE_CUH
#define GPUALGO_TOP_K_TAKE_CUH

#include "parts/layout.cuh"
#include "parts/types.cuh"

namespace gpualgo {

struct TakeParams {
  const unsigned char* rows;
  const unsigned char* order;  // positions within a row, 64 bits each, order_items to a row
  unsigned char* values;
  unsigned char* positions;  // null: not wanted
  int64 row_items, order_items, first, num_items;
  Divisor count;  // taken of each row, from `first` on
};

template <int block_threads, class Word>
__global__ void __launch_bounds__(block_threads)
    take_kernel(const __grid_constant__ TakeParams params) {
  const int64 item = int64(blockIdx.x) * block_threads + threadIdx.x;
  if (item >= params.num_items) return;
  const int64 row = params.count.divide(item);
  const int64 rank = params.first + item - row * params.count.value;
  const int64 at = reinterpret_cast<const int64*>(params.order)[row * params.order_items + rank];
  reinterpret_cast<Word*>(params.values)[item] =
      reinterpret_cast<const Word*>(params.rows)[row * params.row_items + at];
  if (params.positions != nullptr) reinterpret_cast<int64*>(params.positions)[item] = at;
}

}  // namespace gpualgo

#endif
