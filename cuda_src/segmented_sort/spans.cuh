// Segments that reach across the tiles that are merged: where each begins and ends.
//
// Algorithm  segment_edges_kernel: a warp for each tile finds the first head in it and the last one
//            (segments/heads.cuh). segment_spans_kernel: a thread for each boundary between tiles
//            takes the nearest heads on both sides, of which it sees a block's at once; beyond
//            these it looks tile by tile, a block's number at a time. The most rounds of merges
//            that a segment takes are kept.
// Bytes      1/8 per element, and 20 for each tile; launches: two.
#ifndef GPUALGO_SEGMENTED_SORT_SPANS_CUH
#define GPUALGO_SEGMENTED_SORT_SPANS_CUH

#include "parts/intrinsics.cuh"
#include "parts/ptx.cuh"
#include "parts/warp.cuh"

namespace gpualgo {

// Where segments begin, as segments/heads.cuh has marked it. Elements in no segment are one each.
struct SegmentHeads {
  const uint32* bits;
  const int64* bounds;  // the first offset and the last one

  // Of 32 elements from 32 * word on; of those behind the array, too.
  __device__ uint32 word(int64 i) const {
    const int64 before = bounds[0] - 32 * i, inside = bounds[1] - 32 * i;
    if (before >= 32 || inside <= 0) return all_lanes;
    uint32 found = bits[i];
    if (before > 0) found |= (1u << before) - 1;
    if (inside < 32) found |= all_lanes << inside;
    return found;
  }
};

struct SegmentSpan {
  int64 begin, end;  // equal: of no segment
};

// The first head of a tile and the last one, as places in it; of none the first is behind the last.
struct TileEdges {
  uint16 first, last;
  __device__ bool are_there() const { return first <= last; }
};

template <int key_leaves, int value_leaves>
struct SegmentBuffer {
  unsigned char* keys[key_leaves];
  unsigned char* values[value_leaves];
};

// What the kernels of a sort tell each other; zero at first.
struct SegmentCounts {
  static constexpr int most_rounds = 60;
  uint64 num_rounds;             // of merges, as many as the longest segment takes
  uint32 has_odd;                // whether a key is_odd
  uint32 num_arrived;            // blocks, at all places where they wait
  uint32 num_cuts[most_rounds];  // listed, by the rounds that are left
};
static_assert(sizeof(SegmentCounts) == 256);  // as the host's side clears

struct SegmentSpansParams {
  const uint32* heads;
  const int64* bounds;
  TileEdges* edges;    // of each tile
  SegmentSpan* spans;  // of the segment across the boundary in front of each tile, and behind all
  SegmentCounts* counts;
  int64 num_items, num_tiles;
};

template <int block_threads, int tile_items, bool overlaps>
__global__ void __launch_bounds__(block_threads)
    segment_edges_kernel(const __grid_constant__ SegmentSpansParams params) {
  ptx::overlap_both<overlaps>();
  static_assert(tile_items % warp_threads == 0 && tile_items <= 1 << 15);
  constexpr int words = tile_items / warp_threads, warps = block_threads / warp_threads;
  const SegmentHeads heads{params.heads, params.bounds};
  const int lane = threadIdx.x % warp_threads;
  const int64 tile = int64(blockIdx.x) * warps + threadIdx.x / warp_threads;
  if (tile >= params.num_tiles) return;
  const int64 left = params.num_items - tile * tile_items;
  const int count = left < tile_items ? int(left) : tile_items;
  int first = tile_items, last = -1;
  for (int i = lane; 32 * i < count; i += warp_threads) {
    uint32 bits = heads.word(tile * words + i);
    if (count - 32 * i < 32) bits &= (1u << (count - 32 * i)) - 1;
    if (bits == 0) continue;
    if (last < 0) first = 32 * i + ptx::ffs(bits) - 1;
    last = 32 * i + 31 - ptx::clz(bits);
  }
#pragma unroll
  for (int delta = 1; delta < warp_threads; delta *= 2) {
    const int other_first = shuffle_xor(first, delta), other_last = shuffle_xor(last, delta);
    first = other_first < first ? other_first : first;
    last = other_last > last ? other_last : last;
  }
  const bool are_there = last >= 0;
  if (lane == 0) {
    params.edges[tile] = {uint16(are_there ? first : 1), uint16(are_there ? last : 0)};
  }
}

// Into how many tiles of a size a segment reaches, and how many rounds of merges of two that is.
template <int tile_items>
__device__ inline int rounds_of(const SegmentSpan& span) {
  if (span.end <= span.begin) return 0;
  const int64 more = (span.end - 1) / tile_items - span.begin / tile_items;
  const uint32 high = uint32(more >> 32), low = uint32(more);
  return high ? 64 - ptx::clz(high) : low ? 32 - ptx::clz(low) : 0;
}

// For each thread of a block, in a row: what the nearest one before it has last, and the nearest
// one behind it first, of those that have anything; else what is given for none.
template <class Index, int threads>
struct Nearest {
  static constexpr int warps = threads / warp_threads;
  struct Shared {
    Index first[warps], last[warps];
    uint32 are_there[warps];
  };

  Shared& shared;
  Index before, behind;

  // Called by all threads; a barrier is between it and the next use of what is shared.
  __device__ void find(bool is_there, const Index& first, const Index& last, const Index& none) {
    const int lane = threadIdx.x % warp_threads, warp = threadIdx.x / warp_threads;
    const uint32 have = ptx::ballot_sync(all_lanes, is_there);
    const uint32 lower = have & (ptx::lanemask_le() >> 1), upper = have & ~ptx::lanemask_le();
    const int highest = warp_threads - 1 - ptx::clz(have | 1),
              lowest = have ? ptx::ffs(have) - 1 : 0;
    const int below = warp_threads - 1 - ptx::clz(lower | 1),
              above = upper ? ptx::ffs(upper) - 1 : 0;
    const Index last_below = shuffle(last, below), first_above = shuffle(first, above);
    const Index whole_first = shuffle(first, lowest), whole_last = shuffle(last, highest);
    if (lane == 0) {
      shared.first[warp] = whole_first;
      shared.last[warp] = whole_last;
      shared.are_there[warp] = have != 0;
    }
    ptx::syncthreads();
    const bool other = lane < warps && shared.are_there[lane < warps ? lane : 0];
    const uint32 all = ptx::ballot_sync(all_lanes, other);
    const uint32 earlier = all & ((1u << warp) - 1), later = all & ~((2u << warp) - 1);
    before = lower ? last_below : earlier ? shared.last[31 - ptx::clz(earlier)] : none;
    behind = upper ? first_above : later ? shared.first[ptx::ffs(later) - 1] : none;
  }

  // The first and the last of the whole block's, behind a find; `none` without any.
  __device__ Index first_of_all(const Index& none) const {
    for (int i = 0; i < warps; ++i) {
      if (shared.are_there[i]) return shared.first[i];
    }
    return none;
  }
  __device__ Index last_of_all(const Index& none) const {
    for (int i = warps - 1; i >= 0; --i) {
      if (shared.are_there[i]) return shared.last[i];
    }
    return none;
  }
};

// sorted_items: of the tiles whose elements are sorted before the first round.
template <int block_threads, int tile_items, int sorted_items, bool overlaps>
__global__ void __launch_bounds__(block_threads)
    segment_spans_kernel(const __grid_constant__ SegmentSpansParams params) {
  ptx::overlap_both<overlaps>();
  using Near = Nearest<int64, block_threads>;
  auto& shared = ptx::shared_memory<typename Near::Shared>();
  const int64 begin = int64(blockIdx.x) * block_threads;
  Near near{shared};
  // Of the tiles from `from` on, one each.
  const auto find = [&](int64 from) {
    const int64 tile = from + threadIdx.x;
    TileEdges edges{1, 0};
    if (tile >= 0 && tile < params.num_tiles) edges = params.edges[tile];
    near.find(edges.are_there(), tile * tile_items + edges.first, tile * tile_items + edges.last,
              -1);
    return edges;
  };
  const TileEdges own = find(begin);
  int64 before = near.before, behind = near.behind;
  const int64 tile = begin + threadIdx.x;
  if (own.are_there()) behind = tile * tile_items + own.first;
  const bool begins_open = ptx::syncthreads_count(before < 0) > 0;
  const bool ends_open = ptx::syncthreads_count(behind < 0) > 0;
  int64 found = -1;
  for (int64 from = begin; begins_open && found < 0 && from > 0;) {
    from -= block_threads;
    find(from);
    found = near.last_of_all(-1);
    ptx::syncthreads();
  }
  if (before < 0) before = found;
  found = -1;
  for (int64 from = begin + block_threads; ends_open && found < 0 && from < params.num_tiles;
       from += block_threads) {
    find(from);
    found = near.first_of_all(-1);
    ptx::syncthreads();
  }
  if (behind < 0) behind = found < 0 ? params.num_items : found;
  // The first element is a head, so that one is found before every tile but the first.
  uint32 rounds = 0;
  if (tile <= params.num_tiles) {
    const bool is_across = tile > 0 && before >= 0 && behind > tile * tile_items;
    const SegmentSpan span = is_across ? SegmentSpan{before, behind} : SegmentSpan{0, 0};
    params.spans[tile] = span;
    rounds = uint32(rounds_of<sorted_items>(span));
  }
  rounds = warp_max<false>(rounds);
  if (threadIdx.x % warp_threads == 0 && rounds > 0) {
    ptx::atom_max_relaxed_gpu(&params.counts->num_rounds, uint64(rounds));
  }
}

}  // namespace gpualgo

#endif
