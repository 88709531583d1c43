// Reduction: result = init (+) x[0] (+) x[1] (+) … (+) x[n-1], for one or many independent rows.
//
// Algorithm  reduce_rows_kernel: a group of lanes walks a whole row in tiles, each loaded before
//            any of it is combined. reduce_blocks_kernel, for few long rows: a row is cut into one
//            contiguous chunk per block, its warps take the chunk's tiles in turn (so the whole
//            GPU reads one moving window) and join in shared memory (Harris 2007, "Optimizing
//            parallel reduction in CUDA"); each leaves its value in a word that a row's last block
//            waits for and empties, so that neither a second launch nor a counter is needed.
//            reduce/columns.cuh serves elements that are not neighbours while the rows are.
//            The last block is the last to begin: all that it waits for run or have run.
//            An element that is a record lies in several arrays, its leaves (parts/leaves.cuh).
// Bytes      sizeof(T) per element; launches: one. Temporary storage: 8 bytes per block for each
//            32 bits of a value.
// Operator   Associative. Unless it says that it commutes, elements are combined in order. It is
//            never called on anything but elements, init and its own results.
// Bits       The ranges depend on the lengths and types alone, partials are joined by index:
//            the association is the same on every run and every GPU.
#ifndef GPUALGO_REDUCE_ROWS_CUH
#define GPUALGO_REDUCE_ROWS_CUH

#include "parts/convert.cuh"
#include "parts/fold.cuh"
#include "parts/intrinsics.cuh"
#include "parts/layout.cuh"
#include "parts/leaves.cuh"
#include "parts/operator.cuh"
#include "parts/ptx.cuh"
#include "parts/tagged.cuh"
#include "parts/tile_io.cuh"
#include "parts/warp.cuh"

namespace gpualgo {

template <int block_threads_, int loads_in_flight_, int max_tiles_, int min_blocks_>
struct ReducePolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int loads_in_flight = loads_in_flight_;  // vectors per thread; a power of two
  static constexpr int max_tiles = max_tiles_;  // of a warp; in reduce_rows_kernel rows of a group
  static constexpr int min_blocks = min_blocks_;  // per multiprocessor; 0: any
};

template <class A, class T>
struct ReduceCommon {
  Init<A> init;
  Sources<T> input;
  Targets<A> output;
  unsigned char* partials;
  uint32* tickets;  // all zero before and after, as are the partials of reduce_blocks_kernel
};

// --- rows: the elements to combine follow each other --------------------------------------

// A lane takes a vector's worth of neighbours, of the widest leaf, whether or not they can be
// loaded as one: so the association, and with it the bits of the result, does not depend on
// alignment or strides.
template <class T>
inline constexpr int row_items = widest_leaf<T> < vector_bytes ? vector_bytes / widest_leaf<T> : 1;

// Rows at a fixed distance, elements without gaps; of `repeated` leaves a row has one number.
// `together`: elements that are loaded at once, as rows are aligned for so many: a vector's, a
// word's of narrow numbers, or one.
template <class T, int together, int repeated = 0>
struct FlatRows {
  static constexpr int items = row_items<T>;
  static constexpr bool in_one = together > 1 || items == 1;  // several elements are loaded at once
  static constexpr bool are_neighbours = true;
  int64 row_strides[num_leaves<T>];  // bytes

  __device__ Pack<Held<T>, items> load(const Sources<T>& row, int64 index) const {
    const auto from = advanced<repeated>(row, index);
    if constexpr (together == 1 || together == items) {
      return load_leaves<T, items, together == items, repeated>(from);
    } else {
      return detail::load_words<uint32, T, items>(from.at[0]);
    }
  }
  __device__ Held<T> load_one(const Sources<T>& row, int64 index) const {
    return load_element(advanced<repeated>(row, index));
  }
  __device__ Sources<T> source(const Sources<T>& input, int64 row) const {
    return moved(input, [&](auto leaf) { return row * row_strides[decltype(leaf)::value]; });
  }
  template <class A>
  __device__ Targets<A> target(const Targets<A>& output, int64 row) const {
    return advanced(output, row);
  }
};

template <template <int> class Dims>
inline constexpr bool is_nested = false;
template <>
inline constexpr bool is_nested<NestedLayout> = true;

// Rows and elements of any strides, in dimensions as of a Layout, an EvenLayout, or elements as of
// a NestedLayout.
template <class T, int outputs, template <int> class Rows, template <int> class Elements = Rows>
struct StridedRows {
  static constexpr int items = row_items<T>, leaves = num_leaves<T>;
  static constexpr bool in_one = false, are_neighbours = false;
  Rows<leaves + outputs> rows;  // operands: the inputs, the outputs
  Elements<leaves> elements;

  __device__ Pack<Held<T>, items> load(const Sources<T>& row, int64 index) const {
    Pack<Held<T>, items> pack;
    if constexpr (is_nested<Elements>) {
      elements.template for_each<items>(index, [&](int i, const int64(&offsets)[leaves]) {
        pack.items[i] = load_at(row, offsets);
      });
    } else {
#pragma unroll
      for (int i = 0; i < items; ++i) pack.items[i] = load_one(row, index + i);
    }
    return pack;
  }
  __device__ Held<T> load_one(const Sources<T>& row, int64 index) const {
    int64 offsets[leaves];
    elements.offsets(index, offsets);
    return load_at(row, offsets);
  }
  __device__ static Held<T> load_at(const Sources<T>& row, const int64 (&offsets)[leaves]) {
    return load_element(moved(row, [&](auto leaf) { return offsets[decltype(leaf)::value]; }));
  }
  __device__ Sources<T> source(const Sources<T>& input, int64 row) const {
    int64 offsets[leaves + outputs];
    rows.offsets(row, offsets);
    return moved(input, [&](auto leaf) { return offsets[decltype(leaf)::value]; });
  }
  template <class A>
  __device__ Targets<A> target(const Targets<A>& output, int64 row) const {
    int64 offsets[leaves + outputs];
    rows.offsets(row, offsets);
    return moved(output, [&](auto leaf) { return offsets[leaves + decltype(leaf)::value]; });
  }
};

template <class A, class T, class Access>
struct RowsParams {
  ReduceCommon<A, T> common;
  int64 num_rows, num_items;  // items per row
  int64 chunk_items;          // of a block; a multiple of the tile, num_items where a group has all
  Divisor blocks_per_row;
  Access access;
};

// Reduces elements [start, end), fewer than a tile of `loads` vectors per lane; lane 0 of the group
// gets the result. Each lane takes the same number of neighbouring vectors, of which it loads
// `at_once` before it folds them.
template <int width, int loads, int at_once, class Op, class A, class T, class Access, class Index>
__device__ inline A reduce_tail(const Access& access, const Sources<T>& row, int64 origin,
                                Index start, Index end) {
  constexpr int items = Access::items;
  origin += start;
  const int count = int(end - start), vectors = (count + items - 1) / items;
  const int share = loads == 1 ? 1 : (vectors + width - 1) / width;
  const int begin = int(threadIdx.x % width) * share;
  // A vector that is not whole is loaded apart where others are loaded at once.
  const int last = Access::in_one ? count / items : vectors;
  const int stop = begin + share < last ? begin + share : last;
  auto load_some = [&](int vector) {
    const int left = count - vector * items;
    Pack<Held<T>, items> pack;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      if (i < left) assign(pack.items[i], access.load_one(row, origin + vector * items + i));
    }
    return pack;
  };
  Running<Op, A> running{A{}};
#pragma unroll 1
  for (int vector = begin; vector < stop; vector += at_once) {
    Pack<Held<T>, items> packs[at_once];
#pragma unroll
    for (int k = 0; k < at_once; ++k) {  // without branches, or it would wait for one after another
      const int mine = vector + k < stop ? vector + k : stop - 1;
      if constexpr (Access::in_one) {
        packs[k] = access.load(row, origin + mine * items);
      } else {
        packs[k] = load_some(mine);
      }
    }
    A sums[at_once];
#pragma unroll
    for (int k = 0; k < at_once; ++k) {
      if constexpr (Access::in_one) {
        sums[k] = fold_pack<Op, A, Access::are_neighbours>(packs[k]);
      } else {
        const int left = count - (vector + k < stop ? vector + k : stop - 1) * items;
        sums[k] = left >= items ? fold_pack<Op, A, Access::are_neighbours>(packs[k])
                                : fold_some<Op, A>(packs[k], left);
      }
    }
#pragma unroll
    for (int k = 0; k < at_once; ++k) {
      if (vector + k < stop) running.append(sums[k]);
    }
    if (at_once >= loads) break;
  }
  if (last < vectors && begin <= last && last < begin + share) {
    A value = convert<A>(access.load_one(row, origin + last * items));
#pragma unroll 1
    for (int i = last * items + 1; i < count; ++i) {
      value = Op::apply(value, convert<A>(access.load_one(row, origin + i)));
    }
    running.append(value);
  }
  return reduce_group_partial<width, Op>(running.total, (vectors + share - 1) / share);
}

// Loads one tile of `loads` vectors per lane and folds each vector.
template <int width, int loads, class Op, class A, class T, class Access, class Index>
__device__ inline void load_tile(const Access& access, const Sources<T>& row, int64 origin,
                                 Index begin, A (&sums)[loads]) {
  constexpr int items = Access::items;
  const Index mine = begin + Index(threadIdx.x % width) * items;
  Pack<Held<T>, items> packs[loads];
#pragma unroll
  for (int k = 0; k < loads; ++k) packs[k] = access.load(row, origin + (mine + k * width * items));
#pragma unroll
  for (int k = 0; k < loads; ++k) sums[k] = fold_pack<Op, A, Access::are_neighbours>(packs[k]);
}

// Reduces every `step`-th tile of [begin, end), counted from `origin`: `begin` starts the first.
// Index is as narrow as the caller can make it: the addresses live in registers. Lane 0 of the
// group gets the result. `finish(tile_start, value)` is called, if the operator does not commute,
// after each tile; otherwise once at the end of the full tiles, and once for a partial tile.
template <int width, int loads, int tail_loads, class Op, class A, class T, class Access,
          class Index, class Finish>
__device__ inline void reduce_tiles(const Access& access, const Sources<T>& row, int64 origin,
                                    Index begin, Index end, Index step, Finish finish) {
  constexpr Index vector = width * Access::items;
  constexpr Index tile = loads * vector;
  if (begin + tile <= end) {
    const Index first = begin;
    A sums[loads];
    for (; begin + tile <= end; begin += step) {
      A next[loads];
      load_tile<width, loads, Op, A, T>(access, row, origin, begin, next);
      if constexpr (Op::commutative) {
#pragma unroll
        for (int k = 0; k < loads; ++k) {
          sums[k] = begin == first ? next[k] : Op::apply(sums[k], next[k]);
        }
      } else {
        finish(begin, reduce_group<width, Op>(next));
      }
    }
    if constexpr (Op::commutative) finish(first, reduce_group<width, Op>(sums));
  }
  if (begin < end) {
    finish(begin, reduce_tail<width, loads, tail_loads, Op, A, T>(access, row, origin, begin, end));
  }
}

// Joins the first `count` of a block's values (at least one) in order; called by one warp, whose
// lane 0 gets the result.
template <class Op, class A>
__device__ inline A join_slots_of_warp(const A* values, int count) {
  const int lane = threadIdx.x % warp_threads;
  const int piece = (count + warp_threads - 1) / warp_threads;
  const int begin = lane * piece;
  const int end = begin + piece < count ? begin + piece : count;
  A value{};
  if (begin < end) {
    value = values[begin];
#pragma unroll 1
    for (int i = begin + 1; i < end; ++i) value = Op::apply(value, values[i]);
  }
  const int active = ptx::popc(ptx::ballot_sync(all_lanes, begin < end));
  return reduce_group_partial<warp_threads, Op>(value, active);
}

template <class Op, class A, class T, class Access>
__device__ inline void store_row(const RowsParams<A, T, Access>& params, int64 row,
                                 const A& total) {
  A result = with_init<Op>(params.common.init, total);
  store_element(params.access.target(params.common.output, row), result);
}

// Reduces rows of one vector for each lane of a group, all loaded before any is combined.
template <class Policy, int width, class Op, class A, class T, class Access>
__device__ inline void reduce_whole_rows(const RowsParams<A, T, Access>& params, int64 first) {
  constexpr int rows = Policy::max_tiles, groups = Policy::block_threads / width;
  constexpr int items = Access::items;
  Pack<Held<T>, items> packs[rows];
#pragma unroll
  for (int i = 0; i < rows; ++i) {
    const Sources<T> input = params.access.source(params.common.input, first + int64(i) * groups);
    packs[i] = params.access.load(input, int64(threadIdx.x % width) * items);
  }
#pragma unroll
  for (int i = 0; i < rows; ++i) {
    A sum[] = {fold_pack<Op, A, Access::are_neighbours>(packs[i])};
    const A total = reduce_group<width, Op>(sum);
    if (threadIdx.x % width == 0) store_row<Op>(params, first + int64(i) * groups, total);
  }
}

// A group of `width` lanes reduces a whole row, or several one after the other.
template <class Policy, int width, class Op, class A, class T, class Access>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    reduce_rows_kernel(const __grid_constant__ ParamsFor<Op, RowsParams<A, T, Access>> params) {
  take_numbers<Op>(params);
  constexpr int groups = Policy::block_threads / width;
  constexpr int loads = Policy::loads_in_flight;
  constexpr int rows = Policy::max_tiles;  // of a group
  // Of a tail as many vectors as 16 registers hold: with more, fewer blocks run at once.
  constexpr int registers = Access::items * ((int(sizeof(Held<T>)) + 3) / 4);
  constexpr int most = registers < 16 ? 16 / registers : 1;
  constexpr int tail_loads = loads < most ? loads : most;
  constexpr int64 tile = int64(width) * Access::items * loads;
  const int64 first = int64(blockIdx.x) * groups * rows + threadIdx.x / width;
  if constexpr (rows > 1) {
    if (params.num_items == tile && int64(blockIdx.x + 1) * groups * rows <= params.num_rows) {
      reduce_whole_rows<Policy, width, Op, A, T>(params, first);
      return;
    }
  }
#pragma unroll 1
  for (int i = 0; i < rows; ++i) {
    const int64 row = first + int64(i) * groups;
    // Lanes of a warp shuffle together: a group past the last row repeats the last one's work.
    const int64 safe_row = row < params.num_rows ? row : params.num_rows - 1;
    const Sources<T> input = params.access.source(params.common.input, safe_row);
    Running<Op, A> running;
    reduce_tiles<width, loads, tail_loads, Op, A, T>(
        params.access, input, 0, int64(0), params.num_items, tile, [&](int64, const A& value) {
          if (threadIdx.x % width == 0) running.append(value);
        });
    if (row < params.num_rows && threadIdx.x % width == 0) {
      store_row<Op>(params, row, running.total);
    }
  }
}

template <class A, int slots, int warps>
struct BlocksShared {
  A values[slots];
  A joined[warps];
};

// A block reduces one chunk of a row; Policy::max_tiles tiles per warp at most.
template <class Policy, class Op, class A, class T, class Access>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    reduce_blocks_kernel(const __grid_constant__ ParamsFor<Op, RowsParams<A, T, Access>> params) {
  take_numbers<Op>(params);
  constexpr int warps = Policy::block_threads / warp_threads;
  constexpr int loads = Policy::loads_in_flight;
  constexpr int tile = warp_threads * Access::items * loads;
  constexpr int slots = warps * (Op::commutative ? 2 : Policy::max_tiles);
  auto& shared = ptx::shared_memory<BlocksShared<A, slots, warps>>();
  // Grids have fewer than 2^31 blocks; narrow numbers leave registers for loads.
  const int blocks_per_row = int(params.blocks_per_row.value);
  const int row = int(params.blocks_per_row.divide(blockIdx.x));
  const int part = int(blockIdx.x) - row * blocks_per_row;
  const Sources<T> input = params.access.source(params.common.input, row);
  const int64 begin = part * params.chunk_items;
  const int64 rest = params.num_items - begin;
  const int size = int(rest < params.chunk_items ? rest : params.chunk_items);
  const int warp = threadIdx.x / warp_threads;

  // A tile's value goes to the slot of its position. If the operator commutes a warp has one
  // value for its full tiles, in slot `warp`, and perhaps the row's last, partial tile.
  const int full_tiles = size / tile;
  const int num_full = Op::commutative && full_tiles > warps ? warps : full_tiles;
  auto keep = [&](int position, const A& value) {
    const bool is_partial = position + tile > size;
    if (threadIdx.x % warp_threads == 0) {
      shared.values[is_partial ? num_full : position / tile] = value;
    }
  };
  reduce_tiles<warp_threads, loads, 1, Op, A, T>(params.access, input, begin, warp * tile, size,
                                                 warps * tile, keep);
  ptx::syncthreads();
  const int count = num_full + (full_tiles * tile < size);
  A value{};
  if (warp == 0) value = join_slots_of_warp<Op>(shared.values, count);
  if (blocks_per_row == 1) {
    if (threadIdx.x == 0) store_row<Op>(params, row, value);
    return;
  }
  constexpr uint32 is_there = 1;
  const int before = blocks_per_row - 1;  // the blocks that the last one joins with its own
  uint64* partials = reinterpret_cast<uint64*>(params.common.partials) +
                     int64(row) * blocks_per_row * tagged_words<A>;
  if (part < before) {
    if (threadIdx.x == 0) store_tagged(partials, part, value, is_there);
    return;
  }
  const A joined =
      join_tagged<true, Op, Policy::block_threads>(partials, before, is_there, shared.joined);
  if (threadIdx.x == 0) store_row<Op>(params, row, Op::apply(joined, value));
}

}  // namespace gpualgo

#endif
