// What was kept of a long row for the element of one rank, filtered once more.
//
// Algorithm  As top_k/sample.cuh: of a sample of what was kept two ranks are bounds for the rank
//            that is wanted among them, which the device alone knows; what lies between is kept
//            again, a few hundredths.
// Bytes      of what was kept, once; launches: two.
// Storage    What is kept again; the sample takes the place of the first one.
#ifndef GPUALGO_TOP_K_REFINE_CUH
#define GPUALGO_TOP_K_REFINE_CUH

#include "top_k/sample.cuh"

namespace gpualgo {

struct BoundKeptParams {
  const unsigned char* kept_keys;
  const unsigned char* kept_positions;
  const SampleBounds* bounds;
  unsigned char* keys;  // of the sample
  unsigned char* positions;
  SampleBounds* next;
  int64 capacity, rank;  // of what is kept; of the row
  int64 sample_bits, deviations, more;
};

// A single block.
template <int block_threads, bool overlaps, class Order, class Index>
__global__ void __launch_bounds__(block_threads, 1)
    bound_kept_kernel(const __grid_constant__ BoundKeptParams params) {
  if constexpr (overlaps) {
    ptx::griddepcontrol_launch_dependents();
    ptx::griddepcontrol_wait();
  }
  using Ordered = typename Order::Ordered;
  using Bound = BoundSample<block_threads, Order, Index>;
  auto& shared = ptx::shared_memory<typename Bound::Shared>();
  const SampleBounds& bounds = *params.bounds;
  SampleBounds& next = *params.next;
  Bound::clear(next);
  const bool holds = bounds.holds(params.rank, params.capacity);
  if (threadIdx.x == 0) {  // ranks stay those of the row
    next.num_before = bounds.num_before;
    if (!holds) next.num_kept = ~uint64(0);
  }
  const int64 size = int64(1) << params.sample_bits, count = int64(bounds.num_kept);
  if (!Bound::Search::agreed(holds && count > size))
    return;  // nothing behind, or before, the bounds
  const KeptElements<Order, Index> kept{params.kept_keys, params.kept_positions, count};
  for (int64 stretch = threadIdx.x; stretch < size; stretch += block_threads) {
    const uint64 at = place_in_stretch(uint64(stretch), uint64(count), uint32(params.sample_bits));
    reinterpret_cast<Ordered*>(params.keys)[stretch] = kept.key(Index(at));
    reinterpret_cast<Index*>(params.positions)[stretch] = kept.position(Index(at));
  }
  ptx::syncthreads();
  // As `sample_of` of the host's side.
  const double local = double(params.rank - int64(bounds.num_before) + 1);
  const double expected = local * double(size) / double(count);
  const double left = 1.0 - expected / double(size);
  const double away =
      double(params.deviations) * sqrt(expected * (left > 0 ? left : 0.0)) + double(params.more);
  Bound::run({params.keys, params.positions, size}, shared, int64(floor(expected - away)),
             int64(ceil(expected + away)), next);
}

struct FilterKeptParams {
  const unsigned char* kept_keys;
  const unsigned char* kept_positions;
  const SampleBounds* bounds;
  unsigned char* keys;
  unsigned char* positions;
  SampleBounds* next;
  int64 kept_capacity, rank, capacity;
};

template <class Policy, class Order, class Index>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    filter_kept_kernel(const __grid_constant__ FilterKeptParams params) {
  if constexpr (Policy::overlaps) {
    ptx::griddepcontrol_launch_dependents();
    ptx::griddepcontrol_wait();
  }
  const SampleBounds& bounds = *params.bounds;
  if (!bounds.holds(params.rank, params.kept_capacity)) return;
  using Elements = KeptElements<Order, Index>;
  const Elements kept{params.kept_keys, params.kept_positions, int64(bounds.num_kept)};
  Filter<Policy, Elements, Index>(kept, params.next, params.keys, params.positions, params.capacity)
      .run();
}

}  // namespace gpualgo

#endif
