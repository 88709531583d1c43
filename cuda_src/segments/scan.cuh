// Scan of segments: y[i] = init (+) x[b] (+) … (+) x[i], or without the last, where i's segment
// begins at b. What is in no segment is copied.
//
// Algorithm  segment_heads_kernel marks where segments begin, a bit for each element, in memory
//            that is zero at first; segment_scan_kernel is a single-pass scan of pairs of "has a
//            segment begun here" and a value (Sengupta, Harris, Zhang and Owens, "Scan primitives
//            for GPU computing", 2007, doi:10.2312/EGGH/EGGH07/097-106) with decoupled look-back
//            (Merrill and Garland, NVIDIA NVR-2016-002, 2016). A tile in which a segment begins
//            knows what it hands on without looking back.
// Offsets    A scan begins anew wherever an offset is, in whatever order they come; elements before
//            the first offset, and from the last one on, are copied. So offsets that fall have a
//            meaning, and bits are set by any thread in any order. Where each segment has a start
//            of its own, which one begins at an element is found by binary search in the offsets,
//            of those that begin there the last: offsets that fall choose a start by what it meets.
// Bytes      sizeof(T) + sizeof(A) + 1/4 per element, an offset per segment; launches: two, and a
//            clearing of memory. Temporary storage: 1/8 byte per element, 8 bytes per tile for each
//            32 bits of A, and 512.
// In place   safe where output and input are the same elements: a tile is loaded before it is
//            stored, and no other tile reads it.
// Operator   Associative. Elements are combined in order; it is never called on anything but
//            elements, init and its own results.
// Bits       Aggregates of tiles are folded strictly from left to right, from where the last
//            segment begins; a tile depends on types alone: so does the association, but for
//            offsets.
#ifndef GPUALGO_SEGMENTS_SCAN_CUH
#define GPUALGO_SEGMENTS_SCAN_CUH

#include "parts/convert.cuh"
#include "parts/fold.cuh"
#include "parts/leaves.cuh"
#include "parts/lookback.cuh"
#include "parts/ptx.cuh"
#include "parts/ragged.cuh"
#include "segments/heads.cuh"
#include "select/items.cuh"

namespace gpualgo {

template <int block_threads_, int items_, int window_, int min_blocks_, int shared_bytes_>
struct SegmentScanPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int items = items_;            // neighbours of a thread; at most 32
  static constexpr int window = window_;          // states that a lane reads at once
  static constexpr int min_blocks = min_blocks_;  // per multiprocessor
  static constexpr int shared_bytes = shared_bytes_;
};

template <class A, class T, class Access>
struct SegmentScanParams {
  Init<A> init;
  Sources<T> input;
  Targets<A> output;
  Sources<A> starts;             // of each segment, where it has one of its own
  const unsigned char* offsets;  // there
  const uint32* heads;
  const int64* bounds;
  unsigned char* states;
  int64 num_items, num_tiles, num_words;
  int64 num_segments, offset_step;  // where they have starts
  int64 start_steps[num_leaves<A>], output_steps[num_leaves<A>];
  Access access;
};

struct NoStarts {};

// Index: of offsets, where segments have starts of their own; else NoStarts.
template <class Policy, bool is_exclusive, class Op, class A, class T, class Index, class Access>
struct SegmentScan {
  using Params = SegmentScanParams<A, T, Access>;
  static constexpr int threads = Policy::block_threads, items = Policy::items;
  static constexpr int warps = threads / warp_threads, tile_items = threads * items;
  static constexpr int window = Policy::window, span = window * warp_threads;
  static constexpr bool has_starts = !is_same<Index, NoStarts>;
  static_assert(32 % items == 0);

  struct Shared {
    alignas(16) A stage[tile_items + tile_items / warp_threads];
    alignas(16) A window[span];
    A totals[warps];  // of each, since the last beginning of a segment in it
    A prefix;         // of what precedes the tile
    bool begins[warps];
    int64 segments[warps];  // where they have starts: that begins first in it
    uint32 tile;
  };
  static_assert(sizeof(Shared) <= Policy::shared_bytes);

  // What precedes an element in its segment, as far as it has been looked at.
  struct Before {
    Running<Op, A> total{A{}};
    bool has_begun = false;  // the segment

    __device__ void append(const A& value, bool begins) {
      if (begins) {
        total.is_empty = true;
        has_begun = true;
      }
      total.append(value);
    }
  };

  struct Own {
    A values[items];
    int count;  // of elements
    int open;   // so many of the first belong to a segment that began before them
    A total;    // of all since the last beginning
  };

  const Params& params;
  Shared& shared;
  TileStates states;
  int64 first = params.bounds[0], last = params.bounds[1];
  int warp = threadIdx.x / warp_threads, lane = threadIdx.x % warp_threads;

  __device__ static int padded(int place) { return place + place / warp_threads; }

  __device__ void load(int64 begin, int count) const {
    A values[items];
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int i = k * threads + threadIdx.x;
      if (i < count) {
        values[k] = convert<A>(params.access.template load_one<T>(params.input, begin + i));
      }
    }
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int i = k * threads + threadIdx.x;
      if (i < count) assign(shared.stage[padded(i)], values[k]);
    }
  }

  // Scans what a thread has by itself.
  __device__ void scan_own(Own& own, int64 begin, int count) const {
    if constexpr (has_starts) {
      find_segment(begin, count);
      at_heads(begin, count,
               [](A& element, const A& start) { assign(element, Op::apply(start, element)); });
    }
    const int place = threadIdx.x * items;
    own.count = count - place < items ? count - place : items;
    own.open = own.count < 0 ? 0 : own.count;
    if (own.count <= 0) return;
    const int64 index = begin + place;
    const uint32 heads = params.heads[index / 32] >> index % 32;
    A total{};
#pragma unroll
    for (int k = 0; k < items; ++k) {
      if (k >= own.count) break;
      const A element = shared.stage[padded(place + k)];
      const bool is_outside = index + k < first || index + k >= last;
      const bool is_head = is_outside || (heads >> k & 1);
      if (is_head && own.open > k) own.open = k;
      if constexpr (is_exclusive) {
        assign(own.values[k], is_outside ? element : is_head ? single_start() : total);
      }
      if (is_head) {
        const bool is_begun = has_starts || is_outside;
        assign(total, is_begun ? element : with_init<Op>(params.init, element));
      } else {
        assign(total, k == 0 ? element : Op::apply(total, element));
      }
      if constexpr (!is_exclusive) assign(own.values[k], total);
    }
    assign(own.total, total);
  }

  __device__ A single_start() const {
    A value{};
    if constexpr (!has_starts) memcpy(&value, params.init.value, sizeof(A));
    return value;
  }

  // Where segments begin among a thread's elements, a bit for each.
  __device__ uint32 heads_of(int64 begin, int count) const {
    const int64 index = begin + threadIdx.x * items;
    const int own = count - int(threadIdx.x) * items;
    uint32 heads = 0;
#pragma unroll
    for (int k = 0; k < items; ++k) {
      if (k < own && index + k >= first && index + k < last) heads |= 1u << k;
    }
    return heads == 0 ? 0 : heads & params.heads[index / 32] >> index % 32;
  }

  // Looks for the segment that begins first in a warp. All lanes call it.
  __device__ void find_segment(int64 begin, int count) const {
    const Offsets<Index> offsets{params.offsets, params.offset_step, params.num_items};
    const uint32 heads = heads_of(begin, count);
    const uint32 lanes = ptx::ballot_sync(all_lanes, heads != 0);
    if (lanes == 0) return;
    const int64 index = begin + threadIdx.x * items;
    const int64 place = shuffle(index + ptx::ffs(heads) - 1, ptx::ffs(lanes) - 1);
    const int64 segment = segment_before(offsets, params.num_segments, place);
    if (lane == 0) shared.segments[warp] = segment;
    ptx::syncwarp();
  }

  // Calls fn with what is staged at each beginning of a segment among a thread's elements, and with
  // the start of the segment. Not part of an unrolled loop, as a search takes registers. All lanes
  // call it.
  template <class Fn>
  __device__ void at_heads(int64 begin, int count, Fn fn) const {
    const Offsets<Index> offsets{params.offsets, params.offset_step, params.num_items};
    uint32 heads = heads_of(begin, count);
    int before = ptx::popc(heads);
#pragma unroll
    for (int delta = 1; delta < warp_threads; delta *= 2) {
      const int other = shuffle_up(before, delta);
      if (lane >= delta) before += other;
    }
    if (heads == 0) return;
    const int place = threadIdx.x * items;
    int64 low = shared.segments[warp] + before - ptx::popc(heads);
#pragma unroll 1
    for (; heads != 0; heads &= heads - 1, ++low) {
      const int k = ptx::ffs(heads) - 1;
      low = segment_from(low, offsets, params.num_segments, begin + place + k);
      fn(shared.stage[padded(place + k)], load_element(moved(params.starts, [&](auto leaf) {
           return low * params.start_steps[decltype(leaf)::value];
         })));
    }
  }

  // Joins the lanes' totals; returns what precedes this lane within its warp.
  __device__ Before join_lanes(const Own& own, int count) const {
    const int rest = (count - warp * warp_threads * items + items - 1) / items;
    const int active = rest < warp_threads ? rest : warp_threads;
    A total{};
    if (own.count > 0) assign(total, own.total);
    bool begins = own.open < own.count;
#pragma unroll
    for (int delta = 1; delta < warp_threads; delta *= 2) {
      const A other = shuffle_up(total, delta);
      const bool other_begins = shuffle_up(int(begins), delta);
      if (lane < delta || lane >= active) continue;
      if (!begins) assign(total, Op::apply(other, total));
      begins = begins || other_begins;
    }
    if (lane == active - 1) {
      assign(shared.totals[warp], total);
      shared.begins[warp] = begins;
    }
    const A other = shuffle_up(total, 1);
    const bool other_begins = shuffle_up(int(begins), 1);
    Before before;
    if (lane > 0 && lane < active) before.append(other, other_begins);
    return before;
  }

  // What precedes a warp within the tile.
  __device__ Before join_warps(int count) const {
    Before before;
#pragma unroll 1
    for (int i = 0; i < count; ++i) before.append(shared.totals[i], shared.begins[i]);
    return before;
  }

  // Publishes a tile, and finds what precedes it if its first element wants that. By one warp.
  __device__ void look_back(int64 tile, int count, bool is_open) const {
    const Before whole = join_warps((count + warp_threads * items - 1) / (warp_threads * items));
    if (lane == 0) states.publish(tile, whole.total.total, whole.has_begun ? prefix : aggregate);
    if (!is_open) return;
    const A before = prefix_of(tile);
    if (lane != 0) return;
    assign(shared.prefix, before);
    if (!whole.has_begun) states.publish(tile, Op::apply(before, whole.total.total), prefix);
  }

  // Folds what tiles hand on, from the last one before `tile` that knows all on.
  __device__ A prefix_of(int64 tile) const {
    const int64 begin = tile > span ? tile - span : 0;
    const int count = int(tile - begin);
    int known = -1;
    while (known < 0) {
      Tagged<A> loaded[window];
#pragma unroll
      for (int k = 0; k < window; ++k) {
        const int i = k * warp_threads + lane;
        loaded[k] = states.load<A>(i < count ? begin + i : tile - 1);
      }
      bool is_whole = true;  // all behind are there
#pragma unroll
      for (int k = window - 1; k >= 0; --k) {
        const int i = k * warp_threads + lane;
        A value;
        const Status status = states.read(loaded[k], value);
        assign(shared.window[i], value);
        const uint32 knows = ptx::ballot_sync(all_lanes, i < count && status == prefix);
        const uint32 missing = ptx::ballot_sync(all_lanes, i < count && status == nothing);
        if (known >= 0 || !is_whole) continue;
        const int from = 31 - ptx::clz(knows);  // -1: none
        const uint32 later = from < 0 ? missing : missing >> from;
        if (later != 0) {
          is_whole = false;
        } else if (from >= 0) {
          known = k * warp_threads + from;
        }
      }
      ptx::syncwarp();
    }
    A value = shared.window[known];
#pragma unroll 2
    for (int i = known + 1; i < count; ++i) assign(value, Op::apply(value, shared.window[i]));
    return value;
  }

  // Brings what precedes them to a thread's first elements.
  __device__ void finish(Own& own, const Before& in_warp) const {
    if (own.open <= 0) return;
    Before before;
    if (!in_warp.has_begun) {
      before = join_warps(warp);
      if (!before.has_begun) {
        Running<Op, A> all{A{}};
        all.append(shared.prefix);
        if (!before.total.is_empty) all.append(before.total.total);
        before.total = all;
      }
    }
    if (!in_warp.total.is_empty) before.total.append(in_warp.total.total);
#pragma unroll
    for (int k = 0; k < items; ++k) {
      if (k >= own.open) break;
      if (is_exclusive && k == 0) {
        assign(own.values[k], before.total.total);
      } else {
        assign(own.values[k], Op::apply(before.total.total, own.values[k]));
      }
    }
  }

  __device__ void store(const Own& own, int64 begin, int count) const {
#pragma unroll
    for (int k = 0; k < items; ++k) {
      if (k < own.count) assign(shared.stage[padded(threadIdx.x * items + k)], own.values[k]);
    }
    if constexpr (has_starts && is_exclusive) {
      at_heads(begin, count, [](A& result, const A& start) { assign(result, start); });
    }
    ptx::syncthreads();
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int i = k * threads + threadIdx.x;
      if (i >= count) break;
      store_element(moved(params.output,
                          [&](auto leaf) {
                            return (begin + i) * params.output_steps[decltype(leaf)::value];
                          }),
                    shared.stage[padded(i)]);
    }
  }

  __device__ void run_tile(int64 tile) {
    const int64 begin = tile * tile_items, rest = params.num_items - begin;
    const int count = rest < tile_items ? int(rest) : tile_items;
    load(begin, count);
    ptx::syncthreads();
    Own own;
    scan_own(own, begin, count);
    const Before in_warp = join_lanes(own, count);
    ptx::syncthreads();
    if (warp == 0) look_back(tile, count, shuffle(own.open, 0) > 0);
    ptx::syncthreads();
    finish(own, in_warp);
    store(own, begin, count);
  }

  __device__ void run() {
    while (true) {
      if (threadIdx.x == 0) shared.tile = states.take();
      ptx::syncthreads();
      const int64 tile = shared.tile;
      if (tile >= params.num_tiles) break;
      run_tile(tile);  // whose stage is free behind the next barrier
    }
    if (threadIdx.x == 0) states.finish(params.num_words);
  }
};

template <class Policy, bool is_exclusive, class Op, class A, class T, class Index, class Access>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks) segment_scan_kernel(
    const __grid_constant__ ParamsFor<Op, SegmentScanParams<A, T, Access>> params) {
  take_numbers<Op>(params);
  using Work = SegmentScan<Policy, is_exclusive, Op, A, T, Index, Access>;
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  Work work{params, shared, TileStates(params.states)};
  work.run();
}

}  // namespace gpualgo

#endif
