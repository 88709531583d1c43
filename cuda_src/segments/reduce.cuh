// Reduction of segments: result[i] = init (+) x[offsets[i]] (+) … (+) x[offsets[i + 1] - 1].
//
// Algorithm  A warp takes up to 32 neighbouring segments. Short ones are brought to shared memory,
//            as many at once as lie side by side and have enough lanes: a segment takes a lane for
//            each 32 elements, which folds neighbours from left to right, and lanes join what they
//            have. Longer ones are folded by the whole warp, one after the other. Segments beyond
//            `long_items` are cut into chunks, which are entered in a list. Other blocks take
//            chunks of the list: the grid's last ones, which wait until those of lower index have
//            entered theirs, or those of a second launch. Who folds the last chunk of a segment
//            joins them, in order. So one segment may be as long as all others together.
//            The cut by length is that of G. E. Blelloch, M. A. Heroux and M. Zagha, "Segmented
//            operations for sparse matrix computation on vector multiprocessors", 1993, and of A.
//            Ashari et al., "Fast sparse matrix-vector multiplication on GPUs for graph
//            applications", SC14, doi:10.1109/SC.2014.69.
// Bytes      sizeof(T) per element, an offset and sizeof(A) per segment, twice that with starts;
//            launches: one, or two for large arrays, which take fewer registers. Temporary storage:
//            16 bytes and sizeof(A) for each chunk that there may be, and 256.
// Operator   Associative. Unless it says that it commutes, elements are combined in order. It is
//            never called on anything but elements, starts and its own results.
// Bits       A segment's association depends on its length, the number of all elements and types
//            alone; where offsets fall so that segments overlap, perhaps on theirs. In what order
//            chunks are entered depends on timing, and nothing on that.
#ifndef GPUALGO_SEGMENTS_REDUCE_CUH
#define GPUALGO_SEGMENTS_REDUCE_CUH

#include "parts/convert.cuh"
#include "parts/fold.cuh"
#include "parts/leaves.cuh"
#include "parts/ptx.cuh"
#include "parts/ragged.cuh"
#include "parts/whole.cuh"
#include "select/items.cuh"

namespace gpualgo {

enum class SegmentsTaken { all, segments, chunks };  // by a launch

template <int block_threads_, int rows_, int ahead_, int chunk_ahead_, int stage_items_,
          int most_lanes_, int min_blocks_, int shared_bytes_, SegmentsTaken taken_, bool overlaps_>
struct SegmentsPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int rows = rows_;                // of 32 elements, that a warp loads at once
  static constexpr int ahead = ahead_;              // tiles of such rows under way, of a segment
  static constexpr int chunk_ahead = chunk_ahead_;  // and of a chunk
  static constexpr int stage_items = stage_items_;  // of a thread's segment, in shared memory
  static constexpr int most_lanes = most_lanes_;    // of a segment there; else a warp folds it
  static constexpr int min_blocks = min_blocks_;    // per multiprocessor
  static constexpr int shared_bytes = shared_bytes_;
  static constexpr SegmentsTaken taken = taken_;
  static constexpr bool overlaps = overlaps_;  // of two launches
};

// A part of a long segment. One warp stores all parts, which bounds its time: so they take 16
// bytes.
struct alignas(16) Chunk {
  int64 segment;
  uint16 part, num_parts;  // its place among the segment's chunks; how many these are
  uint32 num_done;         // of chunks that are joined, where these begin
};

struct ChunkList {  // 0 between launches
  uint64 num_chunks;
  uint64 num_taken;   // beyond the first of each warp
  uint32 num_groups;  // blocks that have entered their chunks
  uint32 num_done;    // blocks that take no more chunks
};

template <class A, class T, class Access>
struct SegmentsParams {
  Init<A> init;
  Sources<T> input;
  const unsigned char* offsets;
  Sources<A> starts;  // of each segment, where it has one of its own
  Targets<A> output;
  ChunkList* list;
  Chunk* chunks;
  A* partials;
  int64 num_items, num_segments, offset_step;
  int64 num_groups;  // blocks of this launch that take segments; others take chunks
  int64 per_warp;    // segments of a warp
  int64 long_items;  // what is longer is cut
  int64 chunk_bits;  // into chunks of so many bits' worth of elements, not fewer than those
  int64 capacity;    // chunks
  int64 is_start;    // init begins every segment; else it is what empty ones have
  int64 start_steps[num_leaves<A>], output_steps[num_leaves<A>];
  Access access;
};

template <class Policy, class Op, class A, class T, class Index, class Access, bool has_starts>
struct Segments {
  using Params = SegmentsParams<A, T, Access>;
  static constexpr int warps = Policy::block_threads / warp_threads;
  static constexpr int stage_items = Policy::stage_items;
  // One element in 32 is left out, so that equal strides meet all banks.
  static constexpr int stage_size = stage_items * warp_threads + stage_items;

  struct Shared {
    alignas(16) A stages[warps][stage_size];
  };
  static_assert(sizeof(Shared) <= Policy::shared_bytes && stage_items <= warp_threads);
  static_assert(Policy::most_lanes <= warp_threads);
  static constexpr int tile_partials = 1024;  // that a warp joins

  const Params& params;
  int lane = threadIdx.x % warp_threads;

  __device__ Offsets<Index> offsets() const {
    return {params.offsets, params.offset_step, params.num_items};
  }
  __device__ int64 warp_of_all() const {
    return int64(blockIdx.x) * warps + threadIdx.x / warp_threads;
  }
  // The number of a lane's segment.
  __device__ int64 segment_of(int lane) const { return warp_of_all() * params.per_warp + lane; }

  __device__ A load(int64 i) const {
    return convert<A>(params.access.template load_one<T>(params.input, i));
  }
  template <int ahead>
  __device__ A folded(int64 begin, int64 count) const {
    return fold_range<Policy::rows, ahead, Op, A>(begin, count, [&](int64 i) { return load(i); });
  }
  __device__ A folded_partials(int64 begin, int64 count) const {
    return fold_range<Policy::rows, 1, Op, A>(begin, count,
                                              [&](int64 i) { return params.partials[i]; });
  }

  __device__ void store(int64 segment, const A& value) const {
    store_element(
        moved(params.output,
              [&](auto leaf) { return segment * params.output_steps[decltype(leaf)::value]; }),
        value);
  }
  // Init, or the segment's own start.
  __device__ A start_of(int64 segment) const {
    if constexpr (has_starts) {
      return load_element(moved(params.starts, [&](auto leaf) {
        return segment * params.start_steps[decltype(leaf)::value];
      }));
    } else {
      A first;
      memcpy(&first, params.init.value, sizeof(A));
      return first;
    }
  }
  __device__ void store_total(int64 segment, const A& total) const {
    if (has_starts || params.is_start) {
      store(segment, Op::apply(start_of(segment), total));
    } else {
      store(segment, total);
    }
  }

  // --- blocks that take segments ---------------------------------------------------------------

  // What a lane folds of a segment in shared memory.
  struct Part {
    int of;           // the lane that has the segment
    int rank, each;   // its number, and the elements of each part but the last
    int first, rest;  // where the segment begins; its elements from this part on
  };

  // Folds the lanes' segments that are staged, as many at once as lie side by side and have enough
  // lanes: a segment takes one for each stage_items of its elements.
  __device__ void fold_staged(const Segment& own, bool is_staged, A* stage) const {
    const int count = is_staged ? int(own.count) : 0;
    const bool is_cut = ptx::any_sync(all_lanes, count > stage_items);
    const int lanes = is_cut ? uint32(count + stage_items - 1) / stage_items : count > 0;
    const int place = sum_up_to(count) - count;
    const uint32 filled = ptx::ballot_sync(all_lanes, count > 0);
    const int end = is_cut ? sum_up_to(lanes) : ptx::popc(filled & ptx::lanemask_le());
    const int all = shuffle(end, warp_threads - 1);
#pragma unroll 1
    for (int done = 0; done < all;) {
      const bool is_left = lanes > 0 && end - lanes >= done;
      const uint32 left = ptx::ballot_sync(all_lanes, is_left);
      const int leader = ptx::ffs(left) - 1, first = shuffle(place, leader);
      const int64 begin = shuffle(own.begin, leader);
      const bool fits = end <= done + warp_threads && own.begin == begin + place - first;
      const uint32 others = ptx::ballot_sync(all_lanes, is_left && !fits);
      const uint32 taken = left & (others & -others) - 1;
      const int last = warp_threads - 1 - ptx::clz(taken);
      bring(begin, shuffle(place + count, last) - first, stage);
      ptx::syncwarp();
      Part part{lane, 0, count, place - first, taken >> lane & 1 ? count : 0};
      const int number = done + lane;
      done = shuffle(end, last);
      if (is_cut) {
        part.of = 0;
#pragma unroll
        for (int step = warp_threads / 2; step > 0; step /= 2) {
          if (shuffle(end, part.of + step - 1) <= number) part.of += step;
        }
        const int parts = shuffle(lanes, part.of), length = shuffle(count, part.of);
        part.rank = number - shuffle(end - lanes, part.of);
        part.each = number < done ? uint32(length + parts - 1) / uint32(parts) : 0;
        part.first = shuffle(place, part.of) - first;
        part.rest = number < done ? length - part.rank * part.each : 0;
      }
      fold_part(part, stage);
      ptx::syncwarp();
    }
  }

  // Folds a part, and joins it to the others of its segment.
  __device__ void fold_part(const Part& part, const A* stage) const {
    A value{};
    if (part.rest > 0) {
      const uint32 at = part.first + part.rank * part.each;
      const uint32 stop = at + (part.each < part.rest ? part.each : part.rest);
      assign(value, stage[padded(at)]);
#pragma unroll 4
      for (uint32 i = at + 1; i < stop; ++i) assign(value, Op::apply(value, stage[padded(i)]));
    }
    int each = part.each;
#pragma unroll 1
    for (int delta = 1; ptx::any_sync(all_lanes, each < part.rest); delta *= 2, each *= 2) {
      const A other = shuffle_down(value, delta);
      if ((part.rank & (2 * delta - 1)) == 0 && each < part.rest) {
        assign(value, Op::apply(value, other));
      }
    }
    if (part.rest > 0 && part.rank == 0) store_total(segment_of(part.of), value);
  }

  // Brings a stretch of elements to shared memory, of which it may fill some more.
  __device__ void bring(int64 begin, int count, A* stage) const {
    constexpr int rows = Policy::rows, tile = rows * warp_threads;
    static_assert(stage_items % rows == 0);
    A* to = stage + lane;
#pragma unroll 1
    for (; count >= tile; count -= tile, begin += tile, to += padded(tile)) {
      bring_rows<rows>(to, [&](int i) { return load(begin + i); });
    }
    if (count > 0) bring_last<rows>(begin, count, to);
  }
  template <int rows>
  __device__ void bring_last(int64 begin, int count, A* to) const {
    if constexpr (rows > 1) {
      if (count <= rows / 2 * warp_threads) return bring_last<rows / 2>(begin, count, to);
    }
    bring_rows<rows>(to, [&](int i) { return load(begin + (i < count ? i : count - 1)); });
  }
  template <int rows, class Load>
  __device__ void bring_rows(A* to, Load load) const {
    A values[rows];
#pragma unroll
    for (int k = 0; k < rows; ++k) values[k] = load(k * warp_threads + lane);
#pragma unroll
    for (int k = 0; k < rows; ++k) assign(to[padded(k * warp_threads)], values[k]);
  }

  // Enters the chunks of the lanes' long segments in the list.
  __device__ void enter(const Segment& own) const {
    const int64 size = int64(1) << params.chunk_bits;
    uint32 longs = ptx::ballot_sync(all_lanes, own.count > params.long_items);
    if (longs == 0) return;
    const bool is_long = longs >> lane & 1;
    const int parts = is_long ? int((own.count + size - 1) >> params.chunk_bits) : 0;
    const int end = sum_up_to(parts);
    uint64 first = 0;
    if (lane == warp_threads - 1) {
      first = ptx::atom_add_relaxed_gpu(&params.list->num_chunks, uint64(end));
    }
    first = shuffle(first, warp_threads - 1) + end - parts;
#pragma unroll 1
    for (; longs != 0; longs &= longs - 1) {
      const int i = ptx::ffs(longs) - 1, count = shuffle(parts, i);
      const uint64 at = shuffle(first, i);
      if (at + count > uint64(params.capacity)) return;  // overlapping ones: see take_chunks
#pragma unroll 4
      for (int k = lane; k < count; k += warp_threads) {
        const Chunk chunk{segment_of(i), uint16(k), uint16(count), 0};
        store_pack(params.chunks + at + k, Pack<Chunk, 1>{{chunk}});
      }
    }
  }

  __device__ void take_segments(Shared& shared) const {
    const int64 index = segment_of(lane);
    const bool is_there = lane < params.per_warp && index < params.num_segments;
    Segment own{0, 0};
    if (is_there) own = offsets().segment(index);
    enter(own);
    if constexpr (Policy::taken == SegmentsTaken::all) {
      ptx::syncthreads();
      if (threadIdx.x == 0) ptx::atom_add_acq_rel_gpu<1>(&params.list->num_groups);
    }
    if (is_there && own.count == 0) store(index, start_of(index));
    const bool is_long = own.count > params.long_items;
    const bool is_staged = !is_long && own.count <= stage_items * Policy::most_lanes;
    uint32 others = ptx::ballot_sync(all_lanes, !is_staged && !is_long);
    fold_staged(own, is_staged, shared.stages[threadIdx.x / warp_threads]);
#pragma unroll 1
    for (; others != 0; others &= others - 1) {
      const int i = ptx::ffs(others) - 1;
      const A total = folded<Policy::ahead>(shuffle(own.begin, i), shuffle(own.count, i));
      if (lane == 0) store_total(segment_of(i), total);
    }
  }

  // --- blocks that take chunks -----------------------------------------------------------------

  // A chunk of the list, without what other warps count meanwhile; or, where the list is full, a
  // segment as one chunk.
  __device__ Chunk chunk_at(int64 i, bool is_full) const {
    if (is_full) return {i, 0, 1, 0};
    const Chunk& of = params.chunks[i];
    return {of.segment, of.part, of.num_parts, 0};
  }
  // A chunk's elements: none of a segment that is not long.
  __device__ Segment elements_of(const Chunk& chunk) const {
    const Segment segment = offsets().segment(chunk.segment);
    if (chunk.num_parts == 1) {
      return {segment.begin, segment.count > params.long_items ? segment.count : 0};
    }
    const int64 size = int64(1) << params.chunk_bits, begin = chunk.part * size;
    const int64 rest = segment.count - begin;
    return {segment.begin + begin, rest < size ? rest : size};
  }

  __device__ void take_chunks() const {
    ChunkList& list = *params.list;
    if constexpr (Policy::taken == SegmentsTaken::all) {
      if (threadIdx.x == 0) {
        while (ptx::ld_acquire_gpu(&list.num_groups) != params.num_groups) ptx::nanosleep(32);
      }
      ptx::syncthreads();
    }
    const int64 num_chunks = int64(list.num_chunks);
    // More than segments apart can have: offsets fall, and each segment is one warp's then.
    const bool is_full = uint64(num_chunks) > uint64(params.capacity);
    const int64 count = is_full ? params.num_segments : num_chunks;
    const int64 others = params.num_groups * warps, num_warps = gridDim.x * warps - others;
#pragma unroll 1
    for (int64 i = warp_of_all() - others; i < count;) {
      int64 next = 0;  // known by the time that it is needed
      if (lane == 0) next = num_warps + ptx::atom_add_relaxed_gpu(&list.num_taken, uint64(1));
      const Chunk chunk = chunk_at(i, is_full);
      const Segment elements = elements_of(chunk);
      if (elements.count > 0) {
        A total = folded<Policy::chunk_ahead>(elements.begin, elements.count);
        if (chunk.num_parts == 1 || join(chunk, i - chunk.part, total)) {
          if (lane == 0) store_total(chunk.segment, total);
        }
      }
      i = shuffle(next, 0);
    }
    ptx::syncthreads();  // all have read how many there are
    const uint32 last = gridDim.x - uint32(params.num_groups) - 1;
    if (threadIdx.x == 0 && ptx::atom_add_acq_rel_gpu<1>(&list.num_done) == last) list = {};
  }

  // Joins a chunk's total to those of the segment's other chunks, which begin at `first`: true for
  // the last of all, which then has the segment's.
  __device__ bool join(const Chunk& chunk, int64 first, A& total) const {
    if (lane == 0) store_whole(params.partials + first + chunk.part, total);
    const int part = chunk.part / tile_partials * tile_partials, rest = chunk.num_parts - part;
    const int count = rest < tile_partials ? rest : tile_partials;
    if (!is_last(first + part, count)) return false;
    assign(total, folded_partials(first + part, count));
    if (chunk.num_parts <= tile_partials) return true;
    // The partials of a tile are one now; what is joined of tiles is counted beside it.
    if (lane == 0) store_whole(params.partials + first + part, total);
    const int tiles = (chunk.num_parts + tile_partials - 1) / tile_partials;
    if (!is_last(first + 1, tiles)) return false;
    Running<Op, A> joined{A{}};
    A own{};
#pragma unroll 1
    for (int k = 0; k < tiles; ++k) {
      const int i = k % warp_threads, mine = k + lane;
      if (i == 0 && mine < tiles) assign(own, params.partials[first + mine * tile_partials]);
      joined.append(shuffle(own, i));
    }
    assign(total, joined.total);
    return true;
  }
  // Counts warps that have written what is to be joined; true for the last one, which sees all.
  __device__ bool is_last(int64 chunk, int count) const {
    bool is_last = false;
    if (lane == 0) {
      is_last = ptx::atom_add_acq_rel_gpu<1>(&params.chunks[chunk].num_done) == uint32(count) - 1;
    }
    is_last = ptx::any_sync(all_lanes, is_last);
    ptx::syncwarp();
    return is_last;
  }
};

template <class Policy, class Op, class A, class T, class Index, class Access, bool has_starts>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    segments_kernel(const __grid_constant__ ParamsFor<Op, SegmentsParams<A, T, Access>> params) {
  constexpr SegmentsTaken taken = Policy::taken;
  if constexpr (Policy::overlaps && taken == SegmentsTaken::segments) {
    ptx::griddepcontrol_launch_dependents();
  }
  if constexpr (Policy::overlaps && taken == SegmentsTaken::chunks) ptx::griddepcontrol_wait();
  take_numbers<Op>(params);
  using Work = Segments<Policy, Op, A, T, Index, Access, has_starts>;
  if constexpr (taken != SegmentsTaken::chunks) {
    if (taken == SegmentsTaken::segments || blockIdx.x < params.num_groups) {
      Work{params}.take_segments(ptx::dynamic_shared_memory<typename Work::Shared>());
      return;
    }
  }
  if constexpr (taken != SegmentsTaken::segments) Work{params}.take_chunks();
}

}  // namespace gpualgo

#endif
