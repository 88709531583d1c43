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

// What tiles, or groups of tiles, tell each other of their last runs, beside the states of a
// look-back: the fold of elements from where the last run begins (a prefix, whatever precedes it),
// or of all of them (an aggregate).
template <class A>
struct CarryStates {
  TileStates states;
  uint64* words;

  __device__ void publish(int64 index, const A& value, Status status) const {
    store_tagged(words, index, value, states.tag(status));
  }
  // Loads states [begin, begin + count), one in each lane.
  __device__ Tagged<A> load(int64 begin, int count) const {
    const int lane = threadIdx.x % warp_threads;
    return lane < count ? load_tagged<A>(words, begin + lane) : Tagged<A>{};
  }
  // Waits for these states, loaded once, from the nearest prefix on. All lanes of a warp call it.
  // Returns the lanes up to that prefix, as bits; 0 if there is none, and none is needed.
  __device__ uint32 wait(Tagged<A> loaded, int64 begin, int count, bool needs_prefix,
                         A& value) const {
    const int lane = threadIdx.x % warp_threads;
    Status status = nothing;
    for (;; loaded = load(begin, count)) {
      if (lane < count && status != prefix) status = states.read(loaded, value);
      const uint32 prefixes = ptx::ballot_sync(all_lanes, status == prefix);
      const uint32 known = prefixes == 0 ? 0 : all_lanes >> ptx::clz(prefixes);
      const bool is_missing = lane < count && status == nothing && !(known >> lane & 1);
      if (!ptx::any_sync(all_lanes, is_missing || (needs_prefix && known == 0))) return known;
    }
  }
};

// The runs that tiles leave open. Tiles [32 g, 32 g + 32) are group g. A warp scans the states of
// tiles within their group; what groups leave open, the last tile of each tells, and it is folded
// from left to right. So the association depends on the tiles' places and on which of them begin a
// run, and not on whose states are there already.
template <class Op, class A>
struct Carries {
  CarryStates<A> tiles, groups;

  __device__ Carries(const TileStates& states, uint64* words, int64 num_tiles)
      : tiles{states, words}, groups{states, words + num_tiles * tagged_words<A>} {}
  __device__ static bool ends_group(int64 tile) { return tile % warp_threads == warp_threads - 1; }

  // Tells what a tile leaves open; `begins`: a run does, in the tile, as in the first one of all.
  // Called by one thread.
  __device__ void publish(int64 tile, const A& tail, bool begins) const {
    tiles.publish(tile, tail, begins ? prefix : aggregate);
    if (begins && ends_group(tile)) groups.publish(tile / warp_threads, tail, prefix);
  }

  // Tells what a group of tiles leaves open, once its last tile is published. All lanes of the one
  // warp that looks back call it, for each tile.
  __device__ void tell_group(int64 tile, const A& tail, bool begins) const {
    if (begins || !ends_group(tile)) return;  // else publish has told it
    uint32 known;
    const A open = within_group(tile, known);
    if (threadIdx.x % warp_threads != 0) return;
    groups.publish(tile / warp_threads, Op::apply(open, tail), known != 0 ? prefix : aggregate);
  }

  // The run that is open before a tile, not the first one, for all lanes of that warp.
  __device__ A before(int64 tile, const A& tail, bool begins) const {
    const int64 group = tile / warp_threads;
    const int count = group < warp_threads ? int(group) : warp_threads;
    const Tagged<A> loaded = groups.load(group - count, count);  // while tiles are waited for
    uint32 known;
    const A open = within_group(tile, known);
    if (known != 0) return open;
    A carry{}, value{};
    int next = ptx::popc(groups.wait(loaded, group - count, count, true, value));
    assign(carry, shuffle(value, next - 1));
#pragma unroll 1
    for (; next < count; ++next) assign(carry, Op::apply(carry, shuffle(value, next)));
    if (threadIdx.x % warp_threads == 0 && !begins && ends_group(tile)) {
      groups.publish(group, Op::apply(carry, Op::apply(open, tail)), prefix);
    }
    return tile % warp_threads == 0 ? carry : Op::apply(carry, open);
  }

 private:
  // The run that is open before a tile by its group alone; `known`: 0 if none begins there.
  __device__ A within_group(int64 tile, uint32& known) const {
    const int count = int(tile % warp_threads);
    const int64 begin = tile - count;
    A value{};
    known = tiles.wait(tiles.load(begin, count), begin, count, false, value);
    return shuffle(scan_runs<Op>(value, known, count), count > 0 ? count - 1 : 0);
  }
};

}  // namespace gpualgo

#endif
