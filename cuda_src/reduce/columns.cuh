// Reduction over rows that lie side by side: result[c] = init (+) x[0][c] (+) … (+) x[n-1][c].
//
// Algorithm  As reduce/rows.cuh, but a thread owns `items` neighbouring columns and a block is
//            `width` such threads wide and `slots` rows tall. A slot takes a contiguous range of
//            the block's rows (every slots-th row if the operator commutes); slots join as a tree
//            in shared memory, blocks of one set of columns through `partials`. Where all columns
//            of a batch and their few rows are too little for a block, it spans several batches.
// Bytes, operator, bits: as reduce/rows.cuh.
#ifndef GPUALGO_REDUCE_COLUMNS_CUH
#define GPUALGO_REDUCE_COLUMNS_CUH

#include "parts/convert.cuh"
#include "parts/ptx.cuh"
#include "parts/whole.cuh"
#include "reduce/rows.cuh"

namespace gpualgo {

template <class A, class T, class Rows>
struct ColumnsParams {
  static constexpr int leaves = num_leaves<T>;
  ReduceCommon<A, T> common;
  int64 num_rows, rows_per_block;
  int64 num_columns;   // of a batch; where blocks span batches, of all
  Divisor num_blocks;  // that share a set of columns
  Divisor per_batch;   // tiles of columns; where blocks span batches, columns
  int64 column_strides[leaves], output_column_strides[num_leaves<A>];  // bytes
  Rows rows;                             // the reduced dimensions: a Layout or an EvenLayout
  Layout<leaves + num_leaves<A>> batch;  // the kept ones but the columns: inputs, outputs
};

constexpr int max_partial_bytes = 128;  // of a thread's registers

template <class A, int slots, int columns>
struct ColumnsShared {
  A values[slots][slots > 1 ? columns : 1];
  uint32 is_last;
};

template <class Op, class A, class T, int items>
__device__ inline void append_pack(A (&totals)[items], const Pack<T, items>& pack, bool is_first) {
#pragma unroll
  for (int i = 0; i < items; ++i) {
    A value = convert<A>(pack.items[i]);
    totals[i] = is_first ? value : appended<Op>(totals[i], value);
  }
}

// Joins packs, row after row, as a tree of neighbours before they meet the totals: what an operator
// makes of parts of elements that are constants, counts of one say, the compiler then knows.
template <class Op, class A, class T, int items, int loads>
__device__ inline void append_tree(A (&totals)[items], const Pack<T, items> (&packs)[loads],
                                   bool is_first) {
#pragma unroll
  for (int i = 0; i < items; ++i) {
    A parts[loads];
#pragma unroll
    for (int k = 0; k < loads; ++k) parts[k] = convert<A>(packs[k].items[i]);
#pragma unroll
    for (int distance = 1; distance < loads; distance *= 2) {
#pragma unroll
      for (int k = 0; k + distance < loads; k += 2 * distance) {
        parts[k] = Op::apply(parts[k], parts[k + distance]);
      }
    }
    totals[i] = is_first ? parts[0] : Op::apply(totals[i], parts[0]);
  }
}

// Reduces this thread's columns over its slot's share of rows [begin, end); `load(row)` gives
// `items` elements. Returns the share: slot s has a value if s * share < end - begin.
// Without trees the grouping does not depend on `loads`.
template <int slots, int loads, bool in_trees, class Op, class A, int items, class Load>
__device__ inline int64 reduce_slot(int64 begin, int64 end, Load load, A (&totals)[items]) {
  const int slot = threadIdx.x / (blockDim.x / slots);
  const int64 count = end - begin;
  const int64 share = (count + slots - 1) / slots;
  const int64 first = Op::commutative ? begin + slot : begin + slot * share;
  const int64 step = Op::commutative ? slots : 1;
  const int64 limit = Op::commutative || first + share > end ? end : first + share;
  int64 row = first;
  for (; row + (loads - 1) * step < limit; row += loads * step) {
    decltype(load(row)) packs[loads];
#pragma unroll
    for (int k = 0; k < loads; ++k) packs[k] = load(row + k * step);
    if constexpr (in_trees && num_leaves<A> > 1 && !has_append<Op, A>) {
      append_tree<Op>(totals, packs, row == first);
    } else {
#pragma unroll
      for (int k = 0; k < loads; ++k) append_pack<Op>(totals, packs[k], row == first && k == 0);
    }
  }
  for (; row < limit; row += step) append_pack<Op>(totals, load(row), row == first);
  return Op::commutative ? 1 : share;
}

// Joins the slots' totals of `count` rows in order; slot 0 gets the block's. All threads call it.
template <int slots, class Op, class A, int items, int columns>
__device__ inline void join_slots(int64 count, int64 share, A (&totals)[items],
                                  A (&shared)[slots][columns]) {
  if constexpr (slots == 1) return;
  const int width = blockDim.x / slots;
  const int slot = threadIdx.x / width;
  const int column = (threadIdx.x % width) * items;
#pragma unroll
  for (int i = 0; i < items; ++i) shared[slot][column + i] = totals[i];
  ptx::syncthreads();
  for (int distance = 1; distance < slots; distance *= 2) {
    if (slot % (2 * distance) == 0 && (slot + distance) * share < count) {
#pragma unroll
      for (int i = 0; i < items; ++i) {
        totals[i] = Op::apply(totals[i], shared[slot + distance][column + i]);
        shared[slot][column + i] = totals[i];
      }
    }
    ptx::syncthreads();
  }
}

template <class Policy, int width, int items, bool spans_batches, class Op, class A, class T,
          class Rows>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    reduce_columns_kernel(const __grid_constant__ ParamsFor<Op, ColumnsParams<A, T, Rows>> params) {
  take_numbers<Op>(params);
  constexpr int slots = Policy::block_threads / width;
  constexpr int columns = width * items;
  constexpr int loads = Policy::loads_in_flight;
  auto& shared = ptx::shared_memory<ColumnsShared<A, slots, columns>>();
  const int64 num_blocks = params.num_blocks.value;
  const int64 tile = params.num_blocks.divide(blockIdx.x);  // of batch and columns
  const int64 block = int64(blockIdx.x) - tile * num_blocks;
  const int64 mine = (threadIdx.x % width) * items;
  const int64 place = tile * columns + mine;
  const int64 batch = params.per_batch.divide(spans_batches ? place : tile);
  const int64 first = batch * params.per_batch.value;
  const int64 column = spans_batches ? place - first : (tile - first) * columns + mine;
  const bool is_inside = (spans_batches ? place : column) < params.num_columns;
  const int slot = threadIdx.x / width;
  constexpr int leaves = num_leaves<T>;
  int64 offsets[leaves + num_leaves<A>];
  params.batch.offsets(batch, offsets);

  const Sources<T> input = moved(params.common.input, [&](auto leaf) {
    constexpr int i = decltype(leaf)::value;
    return offsets[i] + column * params.column_strides[i];
  });
  const int64 begin = block * params.rows_per_block;
  const int64 limit = begin + params.rows_per_block;
  // A thread outside the columns has no rows.
  const int64 end = !is_inside ? begin : limit < params.num_rows ? limit : params.num_rows;
  A totals[items];
  auto load = [&](int64 row) {
    int64 to_row[leaves];
    params.rows.offsets(row, to_row);
    return load_leaves<T, items, true>(
        moved(input, [&](auto leaf) { return to_row[decltype(leaf)::value]; }));
  };
  int64 share = reduce_slot<slots, loads, true, Op>(begin, end, load, totals);
  join_slots<slots, Op>(end - begin, share, totals, shared.values);

  auto store = [&] {
    if (slot != 0 || !is_inside) return;
    const Targets<A> output =
        moved(params.common.output, [&](auto leaf) { return offsets[leaves + leaf.value]; });
#pragma unroll
    for (int i = 0; i < items; ++i) {
      A result = with_init<Op>(params.common.init, totals[i]);
      store_element(
          moved(output,
                [&](auto leaf) { return (column + i) * params.output_column_strides[leaf.value]; }),
          result);
    }
  };
  if (num_blocks == 1) {
    store();
    return;
  }
  // Partials lie as [tile][block][column].
  A* partials = reinterpret_cast<A*>(params.common.partials) + tile * num_blocks * columns +
                (threadIdx.x % width) * items;
  if (slot == 0 && is_inside) {
#pragma unroll
    for (int i = 0; i < items; ++i) {
      store_whole(partials + block * columns + i, totals[i]);
    }
  }
  ptx::syncthreads();
  if (threadIdx.x == 0) {
    shared.is_last = ptx::atom_add_acq_rel_gpu<1>(params.common.tickets + tile) == num_blocks - 1;
  }
  ptx::syncthreads();
  if (!shared.is_last) return;
  auto load_partial = [&](int64 index) {
    Pack<A, items> pack;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      pack.items[i] = load_cg(partials + index * columns + i);
    }
    return pack;
  };
  const int64 num_partials = is_inside ? num_blocks : 0;
  constexpr int whole = loads * items * int(sizeof(A));  // bytes, if as many were loaded at once
  constexpr int partial_loads = whole <= max_partial_bytes ? loads : 1;
  // How many are loaded at once depends on items, and these on alignment, as no grouping may.
  share = reduce_slot<slots, partial_loads, false, Op>(0, num_partials, load_partial, totals);
  join_slots<slots, Op>(num_partials, share, totals, shared.values);
  store();
  if (threadIdx.x == 0) params.common.tickets[tile] = 0;
}

}  // namespace gpualgo

#endif
