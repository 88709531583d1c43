// Merging pairs of sorted runs to one each: those of the last pass of a sort, or two arrays;
// stable.
//
// Algorithm  "Merge path" (Odeh, Green, Mwassi, Shmueli and Birk 2012,
//            doi:10.1109/IPDPSW.2012.202; Green, McColl and Bader 2012,
//            doi:10.1145/2304576.2304621): merge_splits_kernel finds by binary search how many
//            elements of the first run come before each tile of the result. In merge_kernel a block
//            then has a tile: it loads the elements that make it into shared memory, its threads
//            each merge some into registers, put them back, and the block writes them.
// Bytes      2 (k + v) per key of k bytes with values of v; launches: two; temporary storage: 8
//            bytes for each tile. Values are read in the order of the result, in which neighbours
//            come from two stretches.
// Operator   a strict weak order, asked of elements of the input alone. The result does not depend
//            on which of them are compared; by another function elements may be lost, but nothing
//            is read or written out of bounds.
#ifndef GPUALGO_MERGE_SORT_MERGE_CUH
#define GPUALGO_MERGE_SORT_MERGE_CUH

#include "merge_sort/order.cuh"
#include "parts/layout.cuh"

namespace gpualgo {

template <int key_leaves, int value_leaves>
struct MergeRun {
  const unsigned char* keys[key_leaves];
  const unsigned char* values[value_leaves];
};

template <int key_leaves, int value_leaves>
struct MergeParams {
  MergeRun<key_leaves, value_leaves> first, second;  // where the runs of all pairs lie
  unsigned char* output_keys[key_leaves];
  unsigned char* output_values[value_leaves];
  unsigned char* splits;  // of each tile, as int64
  int64 num_tiles, row_items;
  int64 first_items, second_items;  // of the runs of a pair, at most
  int64 second_begin;               // of a pair's second run, behind the pair's begin
  Divisor tiles_per_row, tiles_per_pair;
};

// A pair of runs, and a tile of what it becomes.
struct MergeTile {
  int64 begin;  // of the pair, in elements
  int64 num_a, num_b;
  int64 place;  // of the tile within the pair
  int count;    // elements of the tile
};

template <int tile_items, class Params>
__device__ inline MergeTile merge_tile(const Params& params, int64 tile) {
  const int64 row = params.tiles_per_row.divide(tile);
  const int64 part = tile - row * params.tiles_per_row.value;
  const int64 pair_tile = params.tiles_per_pair.divide(part) * params.tiles_per_pair.value;
  const int64 begin = pair_tile * tile_items;
  const int64 left = params.row_items - begin;
  MergeTile result;
  result.begin = row * params.row_items + begin;
  result.num_a = left < params.first_items ? left : params.first_items;
  const int64 rest = left - result.num_a;
  result.num_b = rest < params.second_items ? rest : params.second_items;
  result.place = (part - pair_tile) * tile_items;
  const int64 after = result.num_a + result.num_b - result.place;
  result.count = after < tile_items ? int(after) : tile_items;
  return result;
}

template <class Policy, class Order, class T, int value_leaves>
__global__ void __launch_bounds__(Policy::block_threads) merge_splits_kernel(
    const __grid_constant__ ParamsFor<Order, MergeParams<num_leaves<T>, value_leaves>> params) {
  if constexpr (Policy::overlaps) {
    ptx::griddepcontrol_launch_dependents();
    ptx::griddepcontrol_wait();
  }
  take_numbers<Order>(params);
  int64* splits = reinterpret_cast<int64*>(params.splits);
  const int64 step = int64(gridDim.x) * Policy::block_threads;
  for (int64 tile = int64(blockIdx.x) * Policy::block_threads + threadIdx.x;
       tile < params.num_tiles; tile += step) {
    const MergeTile at = merge_tile<Policy::tile_items>(params, tile);
    const auto a = advanced(sources_of<T>(params.first.keys), at.begin);
    const auto b = advanced(sources_of<T>(params.second.keys), at.begin + params.second_begin);
    splits[tile] = split_at(at.place, at.num_a, at.num_b, [&](int64 in_b, int64 in_a) {
      const T of_b = load_element<T>(advanced(b, in_b)), of_a = load_element<T>(advanced(a, in_a));
      return Order::before(of_b, of_a);
    });
  }
}

template <class Policy, class Order, class T, class V>
struct TileMerge {
  static constexpr int threads = Policy::block_threads;
  static constexpr int items = Policy::items;
  static constexpr int tile_items = Policy::tile_items;
  static constexpr int room = sizeof(V) < 32 ? 32 / int(sizeof(V)) : 1;
  static constexpr int batch = room < items ? room : items;  // values at once
  static_assert(tile_items <= 1 << 16);
  using Params = MergeParams<num_leaves<T>, num_leaves<V>>;

  struct Shared {
    alignas(16) T keys[tile_items];                // of the first run, then of the second
    uint16 order[has_values<V> ? tile_items : 1];  // where among them each of the tile was
  };
  static_assert(sizeof(Shared) <= Policy::shared_bytes);

  const Params& params;
  Shared& shared;
  MergeTile at;
  int64 begin_a, begin_b;  // of the stretches that make the tile, in their arrays
  int num_a, num_b;
  T own[items];

  __device__ TileMerge(const Params& params, Shared& shared, int64 tile)
      : params(params), shared(shared), at(merge_tile<tile_items>(params, tile)) {
    const int64* splits = reinterpret_cast<const int64*>(params.splits);
    const int64 i = splits[tile];
    const bool is_last = at.place + at.count == at.num_a + at.num_b;
    int64 end = is_last ? at.num_a : splits[tile + 1];
    // By a function that is no order they may be anything.
    end = end < i ? i : end > i + at.count ? i + at.count : end;
    num_a = int(end - i);
    num_b = at.count - num_a;
    begin_a = at.begin + i;
    begin_b = at.begin + params.second_begin + (at.place - i);
  }

  template <bool is_whole>
  __device__ void load() {
    const auto a = advanced(sources_of<T>(params.first.keys), begin_a + threadIdx.x);
    const auto b = advanced(sources_of<T>(params.second.keys), begin_b - num_a + threadIdx.x);
    const int left = at.count - int(threadIdx.x), left_a = num_a - int(threadIdx.x);
    T loaded[items];
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int i = k * threads;
      if (is_whole || i < left) loaded[k] = load_element<T>(advanced(either(i < left_a, a, b), i));
    }
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int i = threadIdx.x + k * threads;
      if (is_whole || i < at.count) assign(shared.keys[i], loaded[k]);
    }
  }

  // Takes this thread's elements of the result.
  __device__ void merge_own() {
    const int place = threadIdx.x * items;
    if (place >= at.count) return;
    const int a = split_at(place, num_a, num_b, [&](int in_b, int in_a) {
      return Order::before(shared.keys[num_a + in_b], shared.keys[in_a]);
    });
    const int b = num_a + place - a;
    merge_steps<items, Order>(shared.keys, a, num_a, b, at.count, own, [&](int k, int from) {
      if constexpr (has_values<V>) {
        if (place + k < at.count) shared.order[place + k] = uint16(from);
      }
    });
  }
  __device__ void put_own() {
    const int place = threadIdx.x * items, left = at.count - place;
    if (left >= items) {
#pragma unroll
      for (int k = 0; k < items; ++k) assign(shared.keys[place + k], own[k]);
      return;
    }
#pragma unroll
    for (int k = 0; k < items; ++k) {
      if (k < left) assign(shared.keys[place + k], own[k]);
    }
  }

  template <bool is_whole>
  __device__ void write() const {
    const int64 begin = at.begin + at.place;
    const auto target = advanced(targets_of<T>(params.output_keys), begin + threadIdx.x);
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int i = threadIdx.x + k * threads;
      if (is_whole || i < at.count) store_element(advanced(target, k * threads), shared.keys[i]);
    }
  }

  __device__ void write_values() const {
#pragma unroll 1
    for (int k = 0; k < items; k += batch) write_values(threadIdx.x + k * threads);
  }
  // Writes `batch` of this thread's values, the first for element `first` of the tile.
  __device__ void write_values(int first) const {
    // Without any: positions, those of the second run behind those of the first.
    const bool are_given = params.first.values[0] || params.second.values[0];
    const auto a = advanced(sources_of<V>(params.first.values), begin_a);
    const auto b = advanced(sources_of<V>(params.second.values), begin_b - num_a);
    V values[batch];
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      const int i = first + k * threads;
      if (i < at.count) {
        const int from = shared.order[i];
        if (are_given) {
          values[k] = load_element<V>(advanced(either(from < num_a, a, b), from));
        } else {
          const int64 behind = params.first_items + begin_b - num_a;
          values[k] = position_value<V>((from < num_a ? begin_a : behind) + from);
        }
      }
    }
    const Targets<V> to = advanced(targets_of<V>(params.output_values), at.begin + at.place);
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      const int i = first + k * threads;
      if (i < at.count) store_element(advanced(to, i), values[k]);
    }
  }

  __device__ void run() {
    const bool is_whole = at.count == tile_items;
    if (is_whole) {
      load<true>();
    } else {
      load<false>();
    }
    ptx::syncthreads();
    merge_own();
    ptx::syncthreads();
    put_own();
    ptx::syncthreads();
    if (is_whole) {
      write<true>();
    } else {
      write<false>();
    }
    if constexpr (has_values<V>) write_values();
    ptx::syncthreads();  // before the next tile takes the place of this one
  }
};

template <class Policy, class Order, class T, class V>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks) merge_kernel(
    const __grid_constant__ ParamsFor<Order, MergeParams<num_leaves<T>, num_leaves<V>>> params) {
  if constexpr (Policy::overlaps) {
    ptx::griddepcontrol_launch_dependents();
    ptx::griddepcontrol_wait();
  }
  take_numbers<Order>(params);
  using Work = TileMerge<Policy, Order, T, V>;
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  for (int64 tile = blockIdx.x; tile < params.num_tiles; tile += gridDim.x) {
    Work(params, shared, tile).run();
  }
}

}  // namespace gpualgo

#endif
