// Where segments begin, a bit for each element.
//
// Memory for the bits is zero at first. They are set by any thread in any order, so that offsets
// that fall have a meaning: a segment begins wherever an offset is. A table holds the first segment
// that begins in each stretch of elements, or a sum, where offsets fall.
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

template <class Index, int block_threads>
__global__ void __launch_bounds__(block_threads)
    segment_heads_kernel(const __grid_constant__ SegmentHeadsParams params) {
  const Offsets<Index> offsets{params.offsets, params.offset_step, params.num_items};
  const int64 step = int64(gridDim.x) * block_threads;
#pragma unroll 1  // else the compiler divides by the step
  for (int64 i = int64(blockIdx.x) * block_threads + threadIdx.x; i < params.num_offsets;
       i += step) {
    const int64 place = offsets.at(i);
    if (place < params.num_items) {
      ptx::atom_or_relaxed_gpu(params.heads + place / 32, 1u << place % 32);
      const int64 stretch = place / stretch_items;
      if (params.firsts != nullptr && i > 0 && offsets.at(i - 1) / stretch_items != stretch) {
        ptx::atom_add_relaxed_gpu(params.firsts + stretch, uint64(i));
      }
    }
    if (i == 0) params.bounds[0] = place;
    if (i == params.num_offsets - 1) params.bounds[1] = place;
  }
}

}  // namespace gpualgo

#endif
