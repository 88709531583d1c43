// Reduction of segments: result[i] = init (+) x[offsets[i]] (+) … (+) x[offsets[i + 1] - 1].
//
// Algorithm  segments_short_kernel: a warp takes up to 32 neighbouring segments. Those of up to 32
//            elements are brought to shared memory, as one stretch where they lie so, and folded by
//            a thread each, from left to right; longer ones are folded by the whole warp, one after
//            the other. Segments beyond `long_items` are cut into chunks, which are entered in a
//            list (segments_long_kernel), and all warps of the GPU take the list's chunks in turn;
//            segments_join_kernel joins chunks of a segment, in order. So one segment may be as
//            long as all others together. The cut by length is that of G. E. Blelloch, M. A. Heroux
//            and M. Zagha, "Segmented operations for sparse matrix computation on vector
//            multiprocessors", 1993, and of A. Ashari et al., "Fast sparse matrix-vector
//            multiplication on GPUs for graph applications", SC14, doi:10.1109/SC.2014.69.
// Bytes      sizeof(T) per element, an offset and sizeof(A) per segment; launches: three. Temporary
//            storage: 32 bytes and sizeof(A) for each chunk that there may be, and 256.
// Operator   Associative. Unless it says that it commutes, elements are combined in order. It is
//            never called on anything but elements, init and its own results.
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

template <int block_threads_, int rows_, int stage_items_, int shared_bytes_, bool overlaps_>
struct SegmentsPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int rows = rows_;                // of 32 elements, that a warp loads at once
  static constexpr int stage_items = stage_items_;  // of a thread's segment, in shared memory
  static constexpr int shared_bytes = shared_bytes_;
  static constexpr bool overlaps = overlaps_;  // launched while the kernel before still runs
};

// A part of a long segment. The first one of a segment knows that and how many there are.
struct Chunk {
  int64 begin, count;
  int64 segment;
  int64 num_chunks;  // of the segment; of the others 0
};

struct ChunkList {
  uint64 num_chunks;  // 0 between launches, as is what follows
  uint32 num_done;    // blocks
};

template <class A, class T, class Access>
struct SegmentsParams {
  Init<A> init;
  Sources<T> input;
  const unsigned char* offsets;
  Targets<A> output;
  ChunkList* list;
  Chunk* chunks;
  A* partials;
  int64 num_items, num_segments, offset_step;
  int64 per_warp;    // segments of a warp of the first kernel
  int64 long_items;  // what is longer is cut
  int64 chunk_bits;  // into chunks of so many bits' worth of elements, not fewer than those
  int64 capacity;    // chunks
  int64 is_start;    // init begins every segment; else it is what empty ones have
  int64 output_steps[num_leaves<A>];
  Access access;
};

template <class Policy, class Op, class A, class T, class Index, class Access>
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
  static constexpr int most_tiles = 64;       // of them

  struct Joining {
    A tiles[most_tiles];
    int64 large[most_tiles];  // chunks that begin segments of more than a tile
    int num_large;
  };

  const Params& params;
  int lane = threadIdx.x % warp_threads;

  __device__ Offsets<Index> offsets() const {
    return {params.offsets, params.offset_step, params.num_items};
  }
  __device__ int64 warp_of_all() const {
    return (int64(blockIdx.x) * Policy::block_threads + threadIdx.x) / warp_threads;
  }
  __device__ int64 num_warps() const { return int64(gridDim.x) * warps; }

  __device__ A load(int64 i) const {
    return convert<A>(params.access.template load_one<T>(params.input, i));
  }
  __device__ A folded(int64 begin, int64 count) const {
    return fold_range<Policy::rows, Op, A>(begin, count, [&](int64 i) { return load(i); });
  }
  __device__ A folded_partials(int64 begin, int64 count) const {
    return fold_range<Policy::rows, Op, A>(begin, count,
                                           [&](int64 i) { return params.partials[i]; });
  }

  __device__ void store(int64 segment, const A& value) const {
    store_element(
        moved(params.output,
              [&](auto leaf) { return segment * params.output_steps[decltype(leaf)::value]; }),
        value);
  }
  __device__ void store_total(int64 segment, const A& total) const {
    if (params.is_start) {
      store(segment, with_init<Op>(params.init, total));
    } else {
      store(segment, total);
    }
  }
  __device__ void store_empty(int64 segment) const {
    A first;
    memcpy(&first, params.init.value, sizeof(A));
    store(segment, first);
  }

  // --- segments_short_kernel -------------------------------------------------------------------

  __device__ static int padded(int place) { return place + place / warp_threads; }

  // Folds what the lanes' segments have in shared memory, which is theirs if they are short.
  __device__ void fold_short(const Segment& own, bool is_short, int64 index, A* stage) const {
    const int count = is_short ? int(own.count) : 0;
    int end = count;
#pragma unroll
    for (int delta = 1; delta < warp_threads; delta *= 2) {
      const int other = shuffle_up(end, delta);
      if (lane >= delta) end += other;
    }
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

  // Enters the chunks of a segment in the list. Called by a warp.
  __device__ void enter(const Segment& segment, int64 index) const {
    const int64 size = int64(1) << params.chunk_bits;
    const int64 count = (segment.count + size - 1) >> params.chunk_bits;
    uint64 first = 0;
    if (lane == 0) first = ptx::atom_add_relaxed_gpu(&params.list->num_chunks, uint64(count));
    first = shuffle(first, 0);
    if (first + count > uint64(params.capacity)) return;  // overlapping ones: see run_long
    for (int64 k = lane; k < count; k += warp_threads) {
      const int64 rest = segment.count - k * size;
      params.chunks[first + k] = {segment.begin + k * size, rest < size ? rest : size, index,
                                  k == 0 ? count : 0};
    }
  }

  __device__ void run_short(Shared& shared) const {
    const int64 first = warp_of_all() * params.per_warp;
    if (first >= params.num_segments) return;
    const int64 index = first + lane;
    const bool is_there = lane < params.per_warp && index < params.num_segments;
    Segment own{0, 0};
    if (is_there) own = offsets().segment(index);
    if (is_there && own.count == 0) store_empty(index);
    const bool is_short = own.count <= stage_items;
    fold_short(own, is_short, index, shared.stages[threadIdx.x / warp_threads]);
    uint32 others = ptx::ballot_sync(all_lanes, !is_short);
    while (others != 0) {
      const int i = ptx::ffs(others) - 1;
      others &= others - 1;
      const Segment segment{shuffle(own.begin, i), shuffle(own.count, i)};
      if (segment.count > params.long_items) {
        enter(segment, first + i);
      } else {
        const A total = folded(segment.begin, segment.count);
        if (lane == 0) store_total(first + i, total);
      }
    }
  }

  // --- segments_long_kernel --------------------------------------------------------------------

  // A long segment as one chunk; of others nothing.
  __device__ Chunk whole(int64 index) const {
    const Segment segment = offsets().segment(index);
    return {segment.begin, segment.count > params.long_items ? segment.count : 0, index, 1};
  }

  __device__ void run_long() const {
    const int64 num_chunks = int64(params.list->num_chunks);
    // More than segments apart can have: offsets fall, and each segment is one warp's then.
    const bool is_full = uint64(num_chunks) > uint64(params.capacity);
    const int64 count = is_full ? params.num_segments : num_chunks;
#pragma unroll 1
    for (int64 i = warp_of_all(); i < count; i += num_warps()) {
      const Chunk chunk = is_full ? whole(i) : params.chunks[i];
      if (chunk.count == 0) continue;
      const A total = folded(chunk.begin, chunk.count);
      if (lane != 0) continue;
      if (chunk.num_chunks == 1) {
        store_total(chunk.segment, total);
      } else {
        store_whole(params.partials + i, total);
      }
    }
  }

  // --- segments_join_kernel --------------------------------------------------------------------

  __device__ void run_join(Joining& shared) const {
    if (threadIdx.x == 0) shared.num_large = 0;
    ptx::syncthreads();
    const int64 num_chunks = int64(params.list->num_chunks);
    if (uint64(num_chunks) <= uint64(params.capacity)) {
      join_small(shared, num_chunks);
      ptx::syncthreads();
      for (int i = 0; i < shared.num_large; ++i) join_large(shared, shared.large[i]);
    }
    ptx::syncthreads();  // all have read how many there are
    if (threadIdx.x == 0 && ptx::atom_add_acq_rel_gpu<1>(&params.list->num_done) == gridDim.x - 1) {
      params.list->num_chunks = 0;
      params.list->num_done = 0;
    }
  }

  // Each warp joins a segment's partials, if they are few. A lane looks at one chunk.
  __device__ void join_small(Joining& shared, int64 num_chunks) const {
    for (int64 begin = warp_of_all() * warp_threads; begin < num_chunks;
         begin += num_warps() * warp_threads) {
      const int64 mine = begin + lane;
      Chunk own{0, 0, 0, 0};
      if (mine < num_chunks) own = params.chunks[mine];
      uint32 firsts = ptx::ballot_sync(all_lanes, own.num_chunks > 1);
      while (firsts != 0) {
        const int i = ptx::ffs(firsts) - 1;
        firsts &= firsts - 1;
        const int64 count = shuffle(own.num_chunks, i), segment = shuffle(own.segment, i);
        if (count > tile_partials) {
          if (lane == 0) shared.large[ptx::atom_add_relaxed_cta(&shared.num_large, 1)] = begin + i;
          continue;
        }
        const A total = folded_partials(begin + i, count);
        if (lane == 0) store_total(segment, total);
      }
    }
  }

  // The warps of a block join a segment's partials.
  __device__ void join_large(Joining& shared, int64 first) const {
    const int64 count = params.chunks[first].num_chunks;
    const int tiles = int((count + tile_partials - 1) / tile_partials);
    for (int tile = threadIdx.x / warp_threads; tile < tiles; tile += warps) {
      const int64 begin = int64(tile) * tile_partials, rest = count - begin;
      const A total = folded_partials(first + begin, rest < tile_partials ? rest : tile_partials);
      if (lane == 0) assign(shared.tiles[tile], total);
    }
    ptx::syncthreads();
    if (threadIdx.x == 0) {
      A total = shared.tiles[0];
#pragma unroll 1
      for (int i = 1; i < tiles; ++i) assign(total, Op::apply(total, shared.tiles[i]));
      store_total(params.chunks[first].segment, total);
    }
    ptx::syncthreads();  // tiles are free again
  }
};

template <class Policy, class Op, class A, class T, class Index, class Access>
__global__ void __launch_bounds__(Policy::block_threads) segments_short_kernel(
    const __grid_constant__ ParamsFor<Op, SegmentsParams<A, T, Access>> params) {
  if constexpr (Policy::overlaps) ptx::griddepcontrol_launch_dependents();
  take_numbers<Op>(params);
  using Work = Segments<Policy, Op, A, T, Index, Access>;
  Work{params}.run_short(ptx::dynamic_shared_memory<typename Work::Shared>());
}

template <class Policy, class Op, class A, class T, class Index, class Access>
__global__ void __launch_bounds__(Policy::block_threads) segments_long_kernel(
    const __grid_constant__ ParamsFor<Op, SegmentsParams<A, T, Access>> params) {
  if constexpr (Policy::overlaps) {
    ptx::griddepcontrol_launch_dependents();
    ptx::griddepcontrol_wait();
  }
  take_numbers<Op>(params);
  Segments<Policy, Op, A, T, Index, Access>{params}.run_long();
}

template <class Policy, class Op, class A, class T, class Index, class Access>
__global__ void __launch_bounds__(Policy::block_threads) segments_join_kernel(
    const __grid_constant__ ParamsFor<Op, SegmentsParams<A, T, Access>> params) {
  if constexpr (Policy::overlaps) ptx::griddepcontrol_wait();
  take_numbers<Op>(params);
  using Work = Segments<Policy, Op, A, T, Index, Access>;
  Work{params}.run_join(ptx::dynamic_shared_memory<typename Work::Joining>());
}

}  // namespace gpualgo

#endif
