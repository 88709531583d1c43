// Histogram with weights: sums[k][b0][b1]... of the weights of the samples of kept place k.
//
// Algorithm  As a reduction by index (by_index/tables.cuh) whose indices are the bins of samples:
//            each warp adds up its share of one place in a table of its own, and a second kernel
//            joins the tables in their order. More bins than a table holds: a kernel writes the
//            bin and the weight of each sample, which are reduced by index (by_index/buckets.cuh).
// Bytes      Tables: those of each sample's numbers and weight, once; of each share twice a sum and
//            a mark for each bin. Launches: two or three.
// Bits       Shares depend on lengths alone: the same bits on every run and every GPU.
#ifndef GPUALGO_HISTOGRAM_SUMS_CUH
#define GPUALGO_HISTOGRAM_SUMS_CUH

#include "by_index/tables.cuh"
#include "histogram/joint.cuh"
#include "parts/convert.cuh"
#include "parts/fold.cuh"
#include "parts/operator.cuh"

namespace gpualgo {

// R: what weights are converted to, the result's type; A: what they are added up in.
template <class A, class R, class W>
__device__ inline A addend(const W& weight) {
  return convert<A>(convert<R>(weight));
}

// A lane's samples first, first + step, ... before last, and their weights.
template <class T, class W, int count>
struct Samples {
  Pack<Held<T>, count> held;
  W weights[count];

  template <class Rows>
  __device__ void load(const Rows& rows, const Sources<T>& samples, const unsigned char* from,
                       int64 first, int64 step, int64 last) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int64 index = first + i * step;
      assign(held.items[i], Held<T>{});
      weights[i] = W{};
      if (index < last) rows.template load<T, W>(samples, from, index, held.items[i], weights[i]);
    }
  }

  // Finds their bins; -1: none.
  template <class R, class Open, class A>
  __device__ void find(const Open& bins, int64 first, int64 step, int64 last, int32 (&found)[count],
                       A (&items)[count]) const {
    bins.find(held, found);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (first + i * step >= last) found[i] = -1;
      items[i] = addend<A, R>(weights[i]);
    }
  }
};

// --- tables -----------------------------------------------------------------------------------

template <int leaves, class A, class Bins, class Access>
struct HistogramFold {
  const unsigned char* input[leaves];
  A* values;  // tables of shares one behind the other
  uint8* marks;
  int64 num_bins, share_items, num_shares;
  int64 value_bytes;               // of a warp's table
  int64 table_bytes;               // and with its marks
  JointRows<leaves, Access> rows;  // blocks_per_row: shares
  Bins bins;
};

template <class Policy, class Op, class T, class W, class R, class A, class Bins, class Access>
__global__ void __launch_bounds__(Policy::block_threads) histogram_fold_kernel(
    const __grid_constant__ ParamsFor<Op, HistogramFold<num_leaves<T> + 1, A, Bins, Access>>
        params) {
  take_numbers<Op>(params);
  using Table = WarpTable<Policy, Add, A>;
  const int warp = shuffle(threadIdx.x / warp_threads, 0), warps = blockDim.x / warp_threads;
  auto* shared = &ptx::dynamic_shared_memory<unsigned char>();
  const auto bins =
      params.bins.open(reinterpret_cast<uint32*>(shared + warps * params.table_bytes));
  ptx::syncthreads();
  const int64 share = int64(blockIdx.x) * warps + warp;
  if (share >= params.num_shares) return;
  const auto& rows = params.rows;
  const int64 place = rows.blocks_per_row.divide(share);
  const int64 begin = (share - place * rows.blocks_per_row.value) * params.share_items;
  const int64 end = begin + params.share_items;
  const Sources<T> samples = rows.template open<T>(params.input, place);
  const unsigned char* weights = rows.open_weights(params.input, place);
  Table table(shared + warp * params.table_bytes, params);
  const int64 last = end < rows.num_items ? end : rows.num_items;
  constexpr int step = Table::row_items;
  Samples<T, W, Table::rows> next;
  next.load(rows, samples, weights, begin + table.lane, step, last);
  uint32 number = 0;
#pragma unroll 1
  for (int64 first = begin; first < last; first += Table::rows * step, number += Table::rows) {
    int32 found[Table::rows];
    A items[Table::rows];
    next.template find<R>(bins, first + table.lane, step, last, found, items);
    // On its way while these are added.
    next.load(rows, samples, weights, first + Table::rows * step + table.lane, step, last);
    table.add(number, found, items);
  }
  table.write(share, params.num_bins, params.values, params.marks);
}

template <class A>
struct HistogramJoin {
  const A* values;
  const uint8* marks;
  A* group_values;  // of groups of tables; if there are none, results are written
  uint8* group_marks;
  unsigned char* output;
  int64 num_bins, num_tables;  // of a place
  int64 group;                 // tables that are joined into one
  Divisor columns, num_groups;
  Layout<1> places, cells;  // of the result
};

template <class Policy, bool is_last, class R, class A>
__global__ void __launch_bounds__(Policy::block_threads)
    histogram_join_kernel(const __grid_constant__ HistogramJoin<A> params) {
  using Join = TableJoin<Policy, Add, A>;
  auto& shared = ptx::shared_memory<typename Join::Shared>();
  const int64 target = params.columns.divide(blockIdx.x);  // a place's group
  const int64 column = blockIdx.x - target * params.columns.value;
  const int64 place = params.num_groups.divide(target);
  const int64 begin = (target - place * params.num_groups.value) * params.group;
  const int64 end =
      begin + params.group < params.num_tables ? begin + params.group : params.num_tables;
  const int64 k = column * warp_threads + threadIdx.x % warp_threads;
  const int64 first = place * params.num_tables;
  const Join join{params.values, params.marks, params.num_bins};
  const Running<Add, A> total = join.run(shared, {first + begin, first + end}, k);
  if (threadIdx.x >= warp_threads || k >= params.num_bins) return;
  if constexpr (is_last) {
    const A sum = total.is_empty ? A{} : Add::apply(A{}, total.total);  // no sum is -0.0
    *reinterpret_cast<R*>(params.output + params.places.offset(place) + params.cells.offset(k)) =
        convert<R>(sum);
  } else {
    params.group_marks[target * params.num_bins + k] = !total.is_empty;
    if (!total.is_empty) params.group_values[target * params.num_bins + k] = total.total;
  }
}

// --- pairs of a bin and a weight ----------------------------------------------------------------

template <int leaves, class A, class Key, class Bins, class Access>
struct HistogramPairs {
  const unsigned char* input[leaves];
  Key* keys;  // bins of all places
  A* weights;
  int64 num_bins;
  JointRows<leaves, Access> rows;
  Bins bins;
};

// A sample in no bin adds nothing to the first one.
template <class Policy, class Op, class T, class W, class R, class A, class Key, class Bins,
          class Access>
__global__ void __launch_bounds__(Policy::block_threads) histogram_pairs_kernel(
    const __grid_constant__ ParamsFor<Op, HistogramPairs<num_leaves<T> + 1, A, Key, Bins, Access>>
        params) {
  take_numbers<Op>(params);
  const auto bins = params.bins.open(&ptx::dynamic_shared_memory<uint32>());
  ptx::syncthreads();
  const auto& rows = params.rows;
  constexpr int count = Policy::rows;
  const int64 place = rows.row();
  const int64 begin = (blockIdx.x - place * rows.blocks_per_row.value) * count * blockDim.x;
  const Sources<T> samples = rows.template open<T>(params.input, place);
  const unsigned char* weights = rows.open_weights(params.input, place);
  int32 found[count];
  A items[count];
  const int64 first = begin + threadIdx.x;
  Samples<T, W, count> here;
  here.load(rows, samples, weights, first, blockDim.x, rows.num_items);
  here.template find<R>(bins, first, blockDim.x, rows.num_items, found, items);
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int64 index = first + i * int64(blockDim.x);
    if (index >= rows.num_items) break;
    const bool is_there = found[i] >= 0;
    params.keys[place * rows.num_items + index] =
        is_there ? Key(place) * Key(params.num_bins) + Key(found[i]) : Key(0);
    params.weights[place * rows.num_items + index] = is_there ? items[i] : A{};
  }
}

// --- results ------------------------------------------------------------------------------------

template <class A, class R>
struct HistogramWrite {
  Init<R> weight;  // of each sample, if sums are counts
  const A* sums;
  unsigned char* output;
  int64 num_slots, num_bins;
  Divisor bins_per_place;
  Layout<1> places, cells;  // of the result
};

// Times a number of samples, rounded once.
template <class R>
__device__ inline R times(const R& weight, int64 count) {
  if constexpr (is_complex<R>) {
    return {times(weight.real, count), times(weight.imag, count)};
  } else if constexpr (is_float<R>) {
    return count == 0 ? R{} : convert<R>(convert<double>(weight) * double(count) + 0.0);
  } else {
    return R(uint64(weight) * uint64(count));
  }
}

template <int block_threads, bool are_counts, class A, class R>
__global__ void __launch_bounds__(block_threads)
    histogram_write_kernel(const __grid_constant__ HistogramWrite<A, R> params) {
  const int64 slot = int64(blockIdx.x) * block_threads + threadIdx.x;
  if (slot >= params.num_slots) return;
  const int64 place = params.bins_per_place.divide(slot);
  R result;
  if constexpr (are_counts) {
    R weight;
    memcpy(&weight, params.weight.value, sizeof(R));
    result = times(weight, params.sums[slot]);
  } else {
    result = convert<R>(Add::apply(A{}, params.sums[slot]));  // no sum is -0.0
  }
  *reinterpret_cast<R*>(params.output + params.places.offset(place) +
                        params.cells.offset(slot - place * params.num_bins)) = result;
}

}  // namespace gpualgo

#endif
