// How many elements all earlier tiles have together: a look-back of counts (parts/lookback.cuh).
//
// Counts are integers, so that it does not matter from which tiles' prefixes and aggregates a sum
// is put together: unlike a scan's, tiles publish their own prefixes, and a warp stops at the
// nearest.
#ifndef GPUALGO_PARTS_PREFIX_SUM_CUH
#define GPUALGO_PARTS_PREFIX_SUM_CUH

#include "parts/intrinsics.cuh"
#include "parts/lookback.cuh"
#include "parts/warp.cuh"

namespace gpualgo {

// Of runs: how many begin, and where the last of them does, if any.
template <class Count>
struct RunHeads {
  Count count;
  Count last;
};

__device__ inline uint32 joined(uint32 a, uint32 b) { return a + b; }
__device__ inline uint64 joined(uint64 a, uint64 b) { return a + b; }
template <class Count>
__device__ inline RunHeads<Count> joined(const RunHeads<Count>& a, const RunHeads<Count>& b) {
  return {Count(a.count + b.count), a.last < b.last ? b.last : a.last};
}

// The sum of what the tiles before `tile` have published, waited for by one warp, for all its
// lanes. The first tile publishes a prefix. What is value-initialised adds nothing.
template <class Sum>
__device__ inline Sum sum_before(const TileStates& states, int64 tile) {
  const int lane = threadIdx.x % warp_threads;
  Sum sum{};  // of this lane's tiles
  for (int64 end = tile; end > 0; end -= warp_threads) {
    const int64 at = end - 1 - lane;
    Sum value{};
    Status status = nothing;
    uint32 prefixes, reached;  // reached: the lanes up to the nearest prefix
    do {
      if (at >= 0 && status != prefix) status = states.read(states.load<Sum>(at), value);
      prefixes = ptx::ballot_sync(all_lanes, status == prefix);
      reached = prefixes ^ (prefixes - 1);
    } while (ptx::any_sync(all_lanes, at >= 0 && status == nothing && (reached >> lane & 1)));
    if (at >= 0 && (reached >> lane & 1)) sum = joined(sum, value);
    if (prefixes != 0) break;
  }
#pragma unroll
  for (int delta = 1; delta < warp_threads; delta *= 2) sum = joined(sum, shuffle_xor(sum, delta));
  return sum;
}

}  // namespace gpualgo

#endif
