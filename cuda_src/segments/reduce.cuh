// Reduction of segments: result[i] = init (+) x[offsets[i]] (+) … (+) x[offsets[i + 1] - 1].
//
// Algorithm  A warp takes up to 32 neighbouring segments. Those of up to 32 elements are brought to
//            shared memory, as one stretch where they lie so, and folded by a thread each, from
//            left to right; longer ones are folded by the whole warp, one after the other. Segments
//            beyond `long_items` are cut into chunks, which are entered in a list. Other blocks
//            take chunks of the list: the grid's last ones, which wait until those of lower index
//            have entered theirs, or those of a second launch. Who folds the last chunk of a
//            segment joins them, in order. So one segment may be as long as all others together.
//            The cut by length is that of G. E. Blelloch, M. A. Heroux and M. Zagha, "Segmented
//            operations for sparse matrix computation on vector multiprocessors", 1993, and of A.
//            Ashari et al., "Fast sparse matrix-vector multiplication on GPUs for graph
//            applications", SC14, doi:10.1109/SC.2014.69.
// Bytes      sizeof(T) per element, an offset and sizeof(A) per segment, twice that with starts;
//            launches: one, or two for large arrays, which take fewer registers. Temporary storage:
//            32 bytes and sizeof(A) for each chunk that there may be, and 256.
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
          int min_blocks_, int shared_bytes_, SegmentsTaken taken_, bool overlaps_>
struct SegmentsPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int rows = rows_;                // of 32 elements, that a warp loads at once
  static constexpr int ahead = ahead_;              // tiles of such rows under way, of a segment
  static constexpr int chunk_ahead = chunk_ahead_;  // and of a chunk
  static constexpr int stage_items = stage_items_;  // of a thread's segment, in shared memory
  static constexpr int min_blocks = min_blocks_;    // per multiprocessor
  static constexpr int shared_bytes = shared_bytes_;
  static constexpr SegmentsTaken taken = taken_;
  static constexpr bool overlaps = overlaps_;  // of two launches
};

// A part of a long segment. Aligned, so that it is written in two pieces.
struct alignas(16) Chunk {
  int64 begin, count;
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
  static constexpr int tile_partials = 1024;  // that a warp joins

  const Params& params;
  int lane = threadIdx.x % warp_threads;

  __device__ Offsets<Index> offsets() const {
    return {params.offsets, params.offset_step, params.num_items};
  }
  __device__ int64 warp_of_all() const {
    return (int64(blockIdx.x) * Policy::block_threads + threadIdx.x) / warp_threads;
  }

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

  __device__ static int padded(int place) { return place + place / warp_threads; }

  // Folds what the lanes' segments have in shared memory, which is theirs if they are short.
  __device__ void fold_short(const Segment& own, bool is_short, int64 index, A* stage) const {
    const int count = is_short ? int(own.count) : 0;
    const int end = sum_up_to(count);
    const int total = shuffle(end, warp_threads - 1), place = end - count;
    if (total == 0) return;
    const int first_lane = ptx::ffs(ptx::ballot_sync(all_lanes, count > 0)) - 1;
    const int64 first = shuffle(own.begin, first_lane);
    const bool fits = count == 0 || own.begin == first + place;
    if (ptx::ballot_sync(all_lanes, fits) == all_lanes) {  // one stretch
      constexpr int loads = Policy::rows;
#pragma unroll 1
      for (int row = 0; row < total; row += loads * warp_threads) {
        A values[loads];
#pragma unroll
        for (int k = 0; k < loads; ++k) {
          const int i = row + k * warp_threads + lane;
          if (i < total) values[k] = load(first + i);
        }
#pragma unroll
        for (int k = 0; k < loads; ++k) {
          const int i = row + k * warp_threads + lane;
          if (i < total) assign(stage[padded(i)], values[k]);
        }
      }
    } else {
#pragma unroll 1
      for (int i = 0; i < warp_threads; ++i) {
        const int64 begin = shuffle(own.begin, i);
        const int at = shuffle(place, i), length = shuffle(count, i);
        if (lane < length) assign(stage[padded(at + lane)], load(begin + lane));
      }
    }
    ptx::syncwarp();
    if (count > 0) {
      A value = stage[padded(place)];
#pragma unroll 1
      for (int k = 1; k < count; ++k) assign(value, Op::apply(value, stage[padded(place + k)]));
      store_total(index, value);
    }
  }

  // Enters the chunks of the lanes' long segments in the list.
  __device__ void enter(const Segment& own, int64 index) const {
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
      const Segment segment{shuffle(own.begin, i), shuffle(own.count, i)};
      const uint64 at = shuffle(first, i);
      if (at + count > uint64(params.capacity)) return;  // overlapping ones: see take_chunks
      for (int k = lane; k < count; k += warp_threads) {
        const int64 begin = k * size, rest = segment.count - begin;
        const int64 length = rest < size ? rest : size, of = index - lane + i;
        params.chunks[at + k] = {segment.begin + begin, length, of, uint16(k), uint16(count), 0};
      }
    }
  }

  __device__ void take_segments(Shared& shared) const {
    const int64 index = warp_of_all() * params.per_warp + lane;
    const bool is_there = lane < params.per_warp && index < params.num_segments;
    Segment own{0, 0};
    if (is_there) own = offsets().segment(index);
    enter(own, index);
    if constexpr (Policy::taken == SegmentsTaken::all) {
      ptx::syncthreads();
      if (threadIdx.x == 0) ptx::atom_add_acq_rel_gpu<1>(&params.list->num_groups);
    }
    if (is_there && own.count == 0) store(index, start_of(index));
    const bool is_short = own.count <= stage_items;
    fold_short(own, is_short, index, shared.stages[threadIdx.x / warp_threads]);
    uint32 others = ptx::ballot_sync(all_lanes, !is_short && own.count <= params.long_items);
#pragma unroll 1
    for (; others != 0; others &= others - 1) {
      const int i = ptx::ffs(others) - 1;
      const A total = folded<Policy::ahead>(shuffle(own.begin, i), shuffle(own.count, i));
      if (lane == 0) store_total(index + i, total);
    }
  }

  // --- blocks that take chunks -----------------------------------------------------------------

  // A chunk of the list, without what other warps count meanwhile; or, where the list is full, a
  // long segment as one chunk, and of others nothing.
  __device__ Chunk chunk_at(int64 i, bool is_full) const {
    if (is_full) {
      const Segment segment = offsets().segment(i);
      return {segment.begin, segment.count > params.long_items ? segment.count : 0, i, 0, 1, 0};
    }
    const Chunk& of = params.chunks[i];
    return {of.begin, of.count, of.segment, of.part, of.num_parts, 0};
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
      if (chunk.count > 0) {
        A total = folded<Policy::chunk_ahead>(chunk.begin, chunk.count);
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
