// Runs of elements, each folded apart: what threads, warps and blocks tell each other of the run
// that goes on from one to the next.
//
// A stretch of elements is summarised by a pair: whether a run begins in it, and the fold of its
// elements from where the last one does, or of all. Pairs are joined in order; the value may be
// absent, as there may be no identity. (Blelloch, "Prefix sums and their applications",
// CMU-CS-90-190, 1990, section 1.5; Sengupta et al., "Scan primitives for GPU computing", 2007,
// doi:10.2312/EGGH/EGGH07/097-106.)
#ifndef GPUALGO_PARTS_KEYED_CUH
#define GPUALGO_PARTS_KEYED_CUH

#include "parts/element.cuh"
#include "parts/intrinsics.cuh"
#include "parts/lookback.cuh"
#include "parts/tagged.cuh"
#include "parts/warp.cuh"

namespace gpualgo {

// The run that is open at the end of a stretch.
template <class Op, class A>
struct OpenRun {
  A value;
  bool is_empty = true;  // no element yet, and no value
  bool begins = false;   // in the stretch: nothing before the stretch is a part of it

  // What follows: a stretch of at least one element.
  __device__ void append(const A& next, bool next_begins) {
    if (is_empty || next_begins) {
      assign(value, next);
    } else {
      const A joined = Op::apply(value, next);
      assign(value, joined);
    }
    is_empty = false;
    begins = begins || next_begins;
  }
};

// The lanes before this one.
__device__ inline uint32 lanes_before() { return ptx::lanemask_le() >> 1; }

// Replaces each lane's value by the fold of those of its run up to its own: from the last lane that
// is a head (heads: as bits), or from lane 0. Only the first `valid` lanes hold a value; no other's
// reaches the operator.
template <class Op, class A>
__device__ inline A scan_runs(A value, uint32 heads, int valid) {
  const int lane = threadIdx.x % warp_threads;
  const uint32 own = heads & ptx::lanemask_le();
  const int first = own == 0 ? 0 : warp_threads - 1 - ptx::clz(own);
  const int reach = lane < valid ? lane - first : 0;  // lanes of its run before it
#pragma unroll
  for (int delta = 1; delta < warp_threads; delta *= 2) {
    const A other = shuffle_up(value, delta);
    if (delta <= reach) value = Op::apply(other, value);
  }
  return value;
}

// What tiles tell each other of their last runs, beside the states of a look-back: the fold of a
// tile's elements from where its last run begins (a prefix, whatever precedes the tile), or of all
// of them (an aggregate, until the tile knows what precedes it).
template <class A>
struct CarryStates {
  TileStates states;
  uint64* words;

  __device__ void publish(int64 tile, const A& value, Status status) const {
    store_tagged(words, tile, value, states.tag(status));
  }
  __device__ Status read(int64 tile, A& value) const {
    return states.read(load_tagged<A>(words, tile), value);
  }
};

// Folds the values of lanes [next, count) behind a carry, in order; all lanes get the result.
template <class Op, class A>
__device__ inline void fold_lanes(A& carry, const A& value, int next, int count) {
#pragma unroll 1
  for (; next < count; ++next) {
    const A joined = Op::apply(carry, shuffle(value, next));
    assign(carry, joined);
  }
}

// The run that is open before a tile that is not the first, for all lanes of the one warp that
// calls it: from the nearest prefix on, once all behind it have published something. Strictly from
// left to right: the same bits, whichever tile's prefix was there. The first tile of all publishes
// a prefix.
template <class Op, class A>
__device__ inline A carry_before(const CarryStates<A>& states, int64 tile) {
  const int lane = threadIdx.x % warp_threads;
  int64 begin = tile - warp_threads;  // of the tiles that the lanes look at
  A carry{}, value{};
  for (;; begin -= warp_threads) {
    Status status = nothing;
    uint32 prefixes, reached;  // reached: the lanes from the nearest prefix on
    do {
      if (begin + lane >= 0 && status != prefix) status = states.read(begin + lane, value);
      prefixes = ptx::ballot_sync(all_lanes, status == prefix);
      reached = prefixes == 0 ? all_lanes : all_lanes << (warp_threads - 1 - ptx::clz(prefixes));
    } while (
        ptx::any_sync(all_lanes, begin + lane >= 0 && status == nothing && (reached >> lane & 1)));
    if (prefixes == 0) continue;
    const int last = warp_threads - 1 - ptx::clz(prefixes);
    assign(carry, shuffle(value, last));
    fold_lanes<Op>(carry, value, last + 1, warp_threads);
    break;
  }
  for (begin += warp_threads; begin < tile; begin += warp_threads) {
    Status status = nothing;  // what was there is being replaced by a prefix, maybe
    do {
      if (status == nothing) status = states.read(begin + lane, value);
    } while (ptx::any_sync(all_lanes, status == nothing));
    const uint32 prefixes = ptx::ballot_sync(all_lanes, status == prefix);
    int next = 0;
    if (prefixes != 0) {
      next = warp_threads - ptx::clz(prefixes);
      assign(carry, shuffle(value, next - 1));
    }
    fold_lanes<Op>(carry, value, next, warp_threads);
  }
  return carry;
}

}  // namespace gpualgo

#endif
