// Where segments begin, a bit for each element.
//
// Memory for the bits is zero at first. They are set by any thread in any order, so that offsets
// that fall have a meaning: a segment begins wherever an offset is. A table holds the first segment
// that begins in each stretch of elements, or one of several, where offsets fall; it holds anything
// for stretches in which none begins.
#ifndef GPUALGO_SEGMENTS_HEADS_CUH
#define GPUALGO_SEGMENTS_HEADS_CUH

#include "parts/ptx.cuh"
#include "parts/ragged.cuh"

namespace gpualgo {

constexpr int stretch_items = 128;

struct SegmentHeadsParams {
  const unsigned char* offsets;
  uint32* heads;   // a bit for each element
  int64* bounds;   // the first offset and the last one
  uint64* firsts;  // the table, or null
  int64 num_items, num_offsets, offset_step;
};

// By the first `blocks` blocks of the grid; a thread has `each` offsets under way. Params:
// SegmentHeadsParams, or what has its members.
template <class Index, int block_threads, int each, class Params>
__device__ inline void mark_heads(const Params& params, int64 blocks) {
  const Offsets<Index> offsets{params.offsets, params.offset_step, params.num_items};
#pragma unroll 1  // else the compiler divides by the step
  for (int64 begin = blockIdx.x * int64(each * block_threads) + threadIdx.x;
       begin < params.num_offsets; begin += blocks * each * block_threads) {
    int64 places[each], befores[each];  // befores: the offsets before, where there is a table
#pragma unroll
    for (int k = 0; k < each; ++k) {
      const int64 i = begin + k * block_threads;
      const bool is_there = i < params.num_offsets;
      const bool is_told = params.firsts != nullptr && is_there && i > 0;
      places[k] = is_there ? offsets.at(i) : params.num_items;
      befores[k] = is_told ? offsets.at(i - 1) : -stretch_items;
    }
#pragma unroll
    for (int k = 0; k < each; ++k) {
      const int64 i = begin + k * block_threads, place = places[k];
      if (i == 0) params.bounds[0] = place;
      if (i == params.num_offsets - 1) params.bounds[1] = place;
      if (place == params.num_items) continue;
      ptx::atom_or_relaxed_gpu(params.heads + place / 32, 1u << place % 32);
      if (params.firsts == nullptr) continue;
      const int64 stretch = place / stretch_items;
      const bool is_first = befores[k] / stretch_items != stretch || befores[k] > place;
      if (is_first) ptx::st_relaxed_gpu(params.firsts + stretch, uint64(i));
    }
  }
}

template <class Index, int block_threads>
__global__ void __launch_bounds__(block_threads)
    segment_heads_kernel(const __grid_constant__ SegmentHeadsParams params) {
  mark_heads<Index, block_threads, 1>(params, gridDim.x);
}

}  // namespace gpualgo

#endif
