// Scan of lines that lie side by side, where they are very many or short: a thread walks down a
// vector's width of neighbouring lines.
//
// Bytes      sizeof(T) + sizeof(A) per element; launches: one. Temporary storage: none.
// Operator   As scan/tiles.cuh.
// Bits       Each line is folded element by element.
#ifndef GPUALGO_SCAN_WALKS_CUH
#define GPUALGO_SCAN_WALKS_CUH

#include "parts/convert.cuh"
#include "scan/lines.cuh"

namespace gpualgo {

// An operator on neighbouring columns.
template <class Op>
struct Each {
  template <class A, int items>
  __device__ static Pack<A, items> apply(const Pack<A, items>& a, const Pack<A, items>& b) {
    Pack<A, items> result;
#pragma unroll
    for (int i = 0; i < items; ++i) result.items[i] = Op::apply(a.items[i], b.items[i]);
    return result;
  }
};

template <class A, class T, int items>
__device__ inline Pack<A, items> convert_pack(const Pack<T, items>& pack) {
  Pack<A, items> result;
#pragma unroll
  for (int i = 0; i < items; ++i) result.items[i] = convert<A>(pack.items[i]);
  return result;
}

template <class Op, int items, class A, class T>
__device__ inline Running<Each<Op>, Pack<A, items>> start_of(const ScanCommon<A, T>& common) {
  Running<Each<Op>, Pack<A, items>> start;
  if (has_init(common)) {
    const A value = read_init(common);
    Pack<A, items> pack;
#pragma unroll
    for (int i = 0; i < items; ++i) pack.items[i] = value;
    start.append(pack);
  }
  return start;
}

// Scans rows [begin, end) of some columns: load(row) gives their elements, store(row, results)
// takes the results. Loads of several rows are under way before the first store.
template <int loads, bool is_exclusive, class Op, class A, class T, int items, class Index,
          class Load, class Store>
__device__ inline void scan_column(Index begin, Index end, Running<Each<Op>, Pack<A, items>> before,
                                   Load load, Store store) {
  auto step = [&](const Pack<T, items>& elements) {
    const Pack<A, items> old = before.total;
    before.append(convert_pack<A>(elements));
    return is_exclusive ? old : before.total;
  };
  Index row = begin;
  if (before.is_empty && row < end) {
    store(row, step(load(row)));
    ++row;
  }
  before.is_empty = false;  // which the compiler cannot see
#pragma unroll 1
  for (; row + loads <= end; row += loads) {
    Pack<T, items> elements[loads];
#pragma unroll
    for (int k = 0; k < loads; ++k) elements[k] = load(row + k);
#pragma unroll
    for (int k = 0; k < loads; ++k) store(row + k, step(elements[k]));
  }
#pragma unroll 1
  for (; row < end; ++row) store(row, step(load(row)));
}

template <int block_threads_, int items_, int loads_, int min_blocks_>
struct ScanWalksPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int items = items_;            // neighbouring columns of a thread
  static constexpr int loads = loads_;            // rows that a thread loads at once
  static constexpr int min_blocks = min_blocks_;  // per multiprocessor
};

template <class A, class T>
struct ScanWalksParams {
  static constexpr int leaves = num_leaves<T>;
  ScanCommon<A, T> common;
  int64 num_rows, num_walks;      // a walk: `items` neighbouring columns
  int64 row_strides[2 * leaves];  // bytes: inputs, outputs
  Layout<2 * leaves> walks;
};

template <class Policy, bool is_exclusive, class Op, class A, class T>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    scan_walks_kernel(const __grid_constant__ ParamsFor<Op, ScanWalksParams<A, T>> params) {
  take_numbers<Op>(params);
  constexpr int items = Policy::items;
  const int64 walk = int64(blockIdx.x) * Policy::block_threads + threadIdx.x;
  if (walk >= params.num_walks) return;
  constexpr int leaves = num_leaves<T>;
  int64 offsets[2 * leaves];
  params.walks.offsets(walk, offsets);
  const Sources<T> input =
      moved(params.common.input, [&](auto leaf) { return offsets[decltype(leaf)::value]; });
  const Targets<A> output = moved(
      params.common.output, [&](auto leaf) { return offsets[leaves + decltype(leaf)::value]; });
  scan_column<Policy::loads, is_exclusive, Op, A, T, items>(
      int64(0), params.num_rows, start_of<Op, items>(params.common),
      [&](int64 row) {
        return load_leaves<T, items, true>(moved(
            input, [&](auto leaf) { return row * params.row_strides[decltype(leaf)::value]; }));
      },
      [&](int64 row, const Pack<A, items>& results) {
        const Targets<A> to = moved(output, [&](auto leaf) {
          return row * params.row_strides[leaves + decltype(leaf)::value];
        });
        store_leaves(to, results);
      });
}

}  // namespace gpualgo

#endif
