// Starts of segments: result[i] = start[i] (+) result[i], and start[i] where segment i is empty.
//
// Algorithm  A thread for each segment, behind the kernels of segments/reduce.cuh.
// Bytes      An offset, a start and twice a result per segment; launches: one. Temporary storage:
//            none.
// Operator   Associative. It is called once for each segment that has elements, on nothing else.
// Bits       One application: there is no other order.
#ifndef GPUALGO_SEGMENTS_STARTS_CUH
#define GPUALGO_SEGMENTS_STARTS_CUH

#include "parts/leaves.cuh"
#include "parts/operator.cuh"
#include "parts/ptx.cuh"
#include "parts/ragged.cuh"

namespace gpualgo {

template <class A>
struct SegmentStartsParams {
  Sources<A> starts;
  const unsigned char* offsets;
  Targets<A> output;  // holds what the segments with elements come to
  int64 num_items, num_segments, offset_step;
  int64 start_steps[num_leaves<A>], output_steps[num_leaves<A>];  // bytes
};

template <int block_threads, class Op, class A, class Index>
__global__ void __launch_bounds__(block_threads)
    segment_starts_kernel(const __grid_constant__ ParamsFor<Op, SegmentStartsParams<A>> params) {
  take_numbers<Op>(params);
  const int64 i = int64(blockIdx.x) * block_threads + threadIdx.x;
  if (i >= params.num_segments) return;
  const Offsets<Index> offsets{params.offsets, params.offset_step, params.num_items};
  A value = load_element(moved(
      params.starts, [&](auto leaf) { return i * params.start_steps[decltype(leaf)::value]; }));
  const Targets<A> output = moved(
      params.output, [&](auto leaf) { return i * params.output_steps[decltype(leaf)::value]; });
  if (offsets.segment(i).count > 0) {
    Sources<A> held;
    for_each_leaf<A>([&](auto leaf) {
      constexpr int k = decltype(leaf)::value;
      held.at[k] = output.at[k];
    });
    const A total = load_element(held);
    value = Op::apply(value, total);
  }
  store_element(output, value);
}

}  // namespace gpualgo

#endif
