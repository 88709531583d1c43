// Gathers items of any size from the places that indices name.
//
// Bytes   twice an item's, and an index's; launches: one; temporary storage: none.
// Items   are cut into words of 1, 2, 4, 8 or 16 bytes, as wide as size and alignment allow.
#ifndef GPUALGO_GATHER_CUH
#define GPUALGO_GATHER_CUH

#include "parts/layout.cuh"

namespace gpualgo {

struct GatherParams {
  const unsigned char* input;
  unsigned char* output;
  const unsigned char* indices;  // of items, within their row
  int64 num_words;
  Divisor words_per_item, row_items;
};

template <int block_threads, int words_per_thread, class Word, class Index>
__global__ void __launch_bounds__(block_threads)
    gather_kernel(const __grid_constant__ GatherParams params) {
  const Word* input = reinterpret_cast<const Word*>(params.input);
  Word* output = reinterpret_cast<Word*>(params.output);
  const Index* indices = reinterpret_cast<const Index*>(params.indices);
  const int64 begin = int64(blockIdx.x) * block_threads * words_per_thread + threadIdx.x;
#pragma unroll
  for (int i = 0; i < words_per_thread; ++i) {
    const int64 index = begin + i * block_threads;
    if (index >= params.num_words) return;
    const int64 item = params.words_per_item.divide(index);
    const int64 row_begin = params.row_items.divide(item) * params.row_items.value;
    const int64 source = row_begin + int64(indices[item]);
    output[index] = input[index + (source - item) * params.words_per_item.value];
  }
}

}  // namespace gpualgo

#endif
