// How many elements all earlier tiles have together: a look-back of counts (parts/lookback.cuh).
//
// Counts are integers, so that it does not matter from which tiles' prefixes and aggregates a sum
// is put together: unlike a scan's, tiles publish their own prefixes, and a block stops at the
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

// What a warp's sums are together, for all of its lanes.
template <bool has_redux, class Count>
__device__ inline Count joined_warp(const Count& sum) {
  return warp_sum<has_redux>(sum);
}
template <bool has_redux, class Count>
__device__ inline RunHeads<Count> joined_warp(const RunHeads<Count>& sum) {
  return {warp_sum<has_redux>(sum.count), warp_max<has_redux>(sum.last)};
}

// The sum of what the tiles before a tile have published, for all threads of a block: start, share,
// a barrier of the block, finish. The first `warps` look at 32 tiles each, the first at the
// nearest, all at the same time. What is value-initialised adds nothing.
template <class Sum, int warps, bool has_redux>
struct SumBefore {
  static_assert(warps <= warp_threads);
  struct Shared {
    Sum sums[warps];     // of each warp's tiles, up to the nearest prefix
    uint32 ends[warps];  // whether there was one, or the first tile
  };
  Tagged<Sum> loaded;

  // Begins to load states: some work may be done until they are here.
  __device__ void start(const TileStates& states, int64 tile) {
    if (threadIdx.x >= warps * warp_threads) return;
    const int64 at = tile - 1 - int(threadIdx.x);
    loaded = states.load<Sum>(at < 0 ? 0 : at);
  }
  // Waits for this warp's states, and tells the others of them.
  __device__ void share(Shared& shared, const TileStates& states, int64 tile) {
    if (threadIdx.x >= warps * warp_threads) return;
    const int64 at = tile - 1 - int(threadIdx.x);
    const int lane = threadIdx.x % warp_threads;
    Sum value;
    uint32 ends;  // lanes
    for (;;) {
      value = Sum{};
      const Status status = at < 0 ? prefix : states.read(loaded, value);
      ends = ptx::ballot_sync(all_lanes, status == prefix);
      const bool is_needed = (ends ^ (ends - 1)) >> lane & 1;  // up to the nearest end
      if (!is_needed) value = Sum{};
      if (!ptx::any_sync(all_lanes, is_needed && status == nothing)) break;
      if (at >= 0) loaded = states.load<Sum>(at);
    }
    value = joined_warp<has_redux>(value);
    if (lane == 0) {
      shared.sums[threadIdx.x / warp_threads] = value;
      shared.ends[threadIdx.x / warp_threads] = ends != 0;
    }
  }
  __device__ Sum finish(Shared& shared, const TileStates& states, int64 tile) {
    const int lane = threadIdx.x % warp_threads;
    Sum sum{};
    for (;;) {
      const bool is_end = lane < warps && shared.ends[lane] != 0;
      const uint32 ends = ptx::ballot_sync(all_lanes, is_end);
      Sum value{};
      if (lane < warps && ((ends ^ (ends - 1)) >> lane & 1)) value = shared.sums[lane];
      sum = joined(sum, joined_warp<has_redux>(value));
      if (ends != 0) return sum;
      tile -= warps * warp_threads;
      start(states, tile);
      ptx::syncthreads();
      share(shared, states, tile);
      ptx::syncthreads();
    }
  }
};

}  // namespace gpualgo

#endif
