// Merging pairs of sorted runs to one each: those of the last pass of a sort, or two arrays;
// stable.
//
// Algorithm  "Merge path" (Odeh, Green, Mwassi, Shmueli and Birk 2012,
//            doi:10.1109/IPDPSW.2012.202; Green, McColl and Bader 2012,
//            doi:10.1145/2304576.2304621): merge_splits_kernel finds by binary search which
//            elements of the two runs make each tile of the result. Of little data each block of
//            merge_kernel finds that itself, 32 places at once. A block has a tile: it loads the
//            elements that make it into shared memory, its threads each merge some into registers,
//            put them back, and the block writes them; those of its next tile are on their way
//            meanwhile, where there is room for both.
// Bytes      2 (k + v) per key of k bytes with values of v; launches: two; temporary storage: 32
//            bytes for each tile; of little data one launch and no storage. Values are read in the
//            order of the result, in which neighbours come from two stretches.
// Operator   a strict weak order, asked of elements of the input alone. The result does not depend
//            on which of them are compared; by another function elements may be lost, but nothing
//            is read or written out of bounds.
#ifndef GPUALGO_MERGE_SORT_MERGE_CUH
#define GPUALGO_MERGE_SORT_MERGE_CUH

#include "merge_sort/order.cuh"
#include "parts/layout.cuh"
#include "parts/warp.cuh"

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
  unsigned char* cuts;  // of each tile, as MergeCut
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

// Where a tile's elements lie in their arrays, and how many of them are the first run's.
struct alignas(32) MergeCut {
  int64 begin_a, begin_b, begin;
  int32 num_a, num_items;
};

// Returns the cut of a tile that takes elements `begin` to `end` of the first run.
template <class Params>
__device__ inline MergeCut cut_between(const Params& params, const MergeTile& at, int64 begin,
                                       int64 end) {
  const int64 most = begin + at.count;
  MergeCut cut;
  cut.begin_a = at.begin + begin;
  cut.begin_b = at.begin + params.second_begin + (at.place - begin);
  cut.begin = at.begin + at.place;
  // By a function that is no order they may be anything.
  cut.num_a = int32((end < begin ? begin : end > most ? most : end) - begin);
  cut.num_items = at.count;
  return cut;
}

// Of 32 lanes one more than of tiles: where a tile ends the next one begins.
template <class Policy, class Order, class T, int value_leaves>
__global__ void __launch_bounds__(Policy::block_threads) merge_splits_kernel(
    const __grid_constant__ ParamsFor<Order, MergeParams<num_leaves<T>, value_leaves>> params) {
  ptx::overlap_both<Policy::overlaps>();
  take_numbers<Order>(params);
  constexpr int tiles = warp_threads - 1, warps = Policy::block_threads / warp_threads;
  MergeCut* cuts = reinterpret_cast<MergeCut*>(params.cuts);
  const int lane = threadIdx.x % warp_threads;
  const int64 warp = int64(blockIdx.x) * warps + threadIdx.x / warp_threads;
  for (int64 first = warp * tiles; first < params.num_tiles;
       first += int64(gridDim.x) * warps * tiles) {
    const int64 tile = first + lane;
    MergeTile at{};
    int64 begin = 0;
    if (tile < params.num_tiles) {
      at = merge_tile<Policy::tile_items>(params, tile);
      const auto a = advanced(sources_of<T>(params.first.keys), at.begin);
      const auto b = advanced(sources_of<T>(params.second.keys), at.begin + params.second_begin);
      begin = split_at(at.place, at.num_a, at.num_b, [&](int64 in_b, int64 in_a) {
        const T of_b = load_element<T>(advanced(b, in_b));
        const T of_a = load_element<T>(advanced(a, in_a));
        return Order::before(of_b, of_a);
      });
    }
    const int64 next = shuffle_down(begin, 1);
    if (lane < tiles && tile < params.num_tiles) {
      const bool is_last = at.place + at.count == at.num_a + at.num_b;
      cuts[tile] = cut_between(params, at, begin, is_last ? at.num_a : next);
    }
  }
}

// As split_at, with 32 questions at once; of all lanes of a warp.
template <class Order, class T>
__device__ inline int64 split_by_warp(const Sources<T>& a, const Sources<T>& b, int64 place,
                                      int64 num_a, int64 num_b) {
  const int lane = threadIdx.x % warp_threads;
  int64 low = place > num_b ? place - num_b : 0, high = place < num_a ? place : num_a;
  while (low < high) {
    const int64 step = (high - low + warp_threads - 1) / warp_threads;
    const int64 wanted = low + (lane + 1) * step, count = wanted < high ? wanted : high;
    const T of_b = load_element<T>(advanced(b, place - count));
    const T of_a = load_element<T>(advanced(a, count - 1));
    const uint32 missed = ptx::ballot_sync(all_lanes, bool(Order::before(of_b, of_a)));
    if (missed == 0) return high;
    const int64 reached = low + (ptx::ffs(missed) - 1) * step;  // none, or by the lane before
    high = reached + step < high ? reached + step - 1 : high - 1;
    low = reached;
  }
  return low;
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

  static constexpr bool is_ahead = Policy::is_ahead;  // loads a tile while it merges another
  static constexpr int slots = slot_of<items>(tile_items + items) + 1;  // what is read

  struct Shared {
    alignas(16) T keys[is_ahead ? 2 : 1][slots];   // of the first run, then of the second
    uint16 order[has_values<V> ? tile_items : 1];  // where among them each of the tile was
    int64 splits[2];                               // where the tile begins and ends in its runs
  };
  static_assert(sizeof(Shared) <= Policy::shared_bytes);

  const Params& params;
  Shared& shared;
  MergeCut at;
  T* keys;  // of the tile at hand
  T own[items];

  __device__ TileMerge(const Params& params, Shared& shared) : params(params), shared(shared) {}

  // What this thread loads is what it has read of there, for the tile before.
  template <bool is_whole>
  __device__ void load(const MergeCut& cut, T* to) const {
    const auto a = advanced(sources_of<T>(params.first.keys), cut.begin_a + threadIdx.x);
    const auto b =
        advanced(sources_of<T>(params.second.keys), cut.begin_b - cut.num_a + threadIdx.x);
    const int left = cut.num_items - int(threadIdx.x), left_a = cut.num_a - int(threadIdx.x);
    if constexpr (is_ahead) {
#pragma unroll
      for (int k = 0; k < items; ++k) {
        const int i = k * threads;
        if (is_whole || i < left) {
          copy_element<true>(to + slot_of<items>(threadIdx.x + i),
                             advanced(either(i < left_a, a, b), i));
        }
      }
    } else {
      T loaded[items];
#pragma unroll
      for (int k = 0; k < items; ++k) {
        const int i = k * threads;
        if (is_whole || i < left) {
          loaded[k] = load_element<T>(advanced(either(i < left_a, a, b), i));
        }
      }
#pragma unroll
      for (int k = 0; k < items; ++k) {
        const int i = threadIdx.x + k * threads;
        if (is_whole || i < cut.num_items) assign(to[slot_of<items>(i)], loaded[k]);
      }
    }
  }
  __device__ void load(const MergeCut& cut, T* to) const {
    if (cut.num_items == tile_items) {
      load<true>(cut, to);
    } else {
      load<false>(cut, to);
    }
    end_copies<is_ahead>();
  }

  // Takes this thread's elements of the result.
  __device__ void merge_own() {
    const int place = threadIdx.x * items;
    if (place >= at.num_items) return;
    const int num_a = at.num_a, num_b = at.num_items - num_a;
    const int a = split_at(place, num_a, num_b, [&](int in_b, int in_a) {
      return Order::before(keys[slot_of<items>(num_a + in_b)], keys[slot_of<items>(in_a)]);
    });
    const int b = num_a + place - a;
    merge_steps<items, Order>(keys, a, num_a, b, at.num_items, own, [&](int k, int from) {
      if constexpr (has_values<V>) {
        if (place + k < at.num_items) shared.order[place + k] = uint16(from);
      }
    });
  }
  __device__ void put_own() {
    const int place = threadIdx.x * items, left = at.num_items - place;
    if (left >= items) {
#pragma unroll
      for (int k = 0; k < items; ++k) assign(keys[slot_of<items>(place + k)], own[k]);
      return;
    }
#pragma unroll
    for (int k = 0; k < items; ++k) {
      if (k < left) assign(keys[slot_of<items>(place + k)], own[k]);
    }
  }

  template <bool is_whole>
  __device__ void write() const {
    const auto target = advanced(targets_of<T>(params.output_keys), at.begin + threadIdx.x);
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int i = threadIdx.x + k * threads;
      if (is_whole || i < at.num_items)
        store_element(advanced(target, k * threads), keys[slot_of<items>(i)]);
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
    const auto a = advanced(sources_of<V>(params.first.values), at.begin_a);
    const auto b = advanced(sources_of<V>(params.second.values), at.begin_b - at.num_a);
    V values[batch];
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      const int i = first + k * threads;
      if (i < at.num_items) {
        const int from = shared.order[i];
        if (are_given) {
          values[k] = load_element<V>(advanced(either(from < at.num_a, a, b), from));
        } else {
          const int64 behind = params.first_items + at.begin_b - at.num_a;
          values[k] = position_value<V>((from < at.num_a ? at.begin_a : behind) + from);
        }
      }
    }
    const Targets<V> to = advanced(targets_of<V>(params.output_values), at.begin);
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      const int i = first + k * threads;
      if (i < at.num_items) store_element(advanced(to, i), values[k]);
    }
  }

  __device__ void merge_tile() {
    ptx::syncthreads();
    merge_own();
    ptx::syncthreads();
    put_own();
    ptx::syncthreads();
    if (at.num_items == tile_items) {
      write<true>();
    } else {
      write<false>();
    }
    if constexpr (has_values<V>) write_values();
  }

  // Returns where a tile's elements lie.
  __device__ MergeCut cut_of(int64 tile) const {
    if constexpr (!Policy::finds_cuts) {
      return reinterpret_cast<const MergeCut*>(params.cuts)[tile];
    } else {
      const MergeTile wanted = gpualgo::merge_tile<tile_items>(params, tile);
      const int edge = threadIdx.x / warp_threads;
      if (edge < 2) {
        const auto a = advanced(sources_of<T>(params.first.keys), wanted.begin);
        const auto b =
            advanced(sources_of<T>(params.second.keys), wanted.begin + params.second_begin);
        const int64 place = wanted.place + edge * wanted.count;
        const int64 split = split_by_warp<Order, T>(a, b, place, wanted.num_a, wanted.num_b);
        if (threadIdx.x % warp_threads == 0) shared.splits[edge] = split;
      }
      ptx::syncthreads();
      return cut_between(params, wanted, shared.splits[0], shared.splits[1]);
    }
  }

  // Merges the tiles that this block takes in turn with others.
  __device__ void run(int64 num_tiles) {
    keys = shared.keys[0];
    if constexpr (is_ahead) {
      if (blockIdx.x < num_tiles) run_ahead(num_tiles);
    } else {
      for (int64 tile = blockIdx.x; tile < num_tiles; tile += gridDim.x) {
        at = cut_of(tile);
        load(at, keys);
        merge_tile();
      }
    }
  }
  __device__ void run_ahead(int64 num_tiles) {
    at = cut_of(blockIdx.x);
    load(at, keys);
    if constexpr (Policy::finds_cuts) ptx::syncthreads();  // all have read the splits
    for (int64 tile = blockIdx.x + int64(gridDim.x); tile < num_tiles; tile += gridDim.x) {
      const MergeCut next = cut_of(tile);
      T* const others = shared.keys[keys == shared.keys[0]];
      load(next, others);
      wait_copies<true, 1>();
      merge_tile();
      at = next;
      keys = others;
    }
    wait_copies<true, 0>();
    merge_tile();
  }
};

template <class Policy, class Order, class T, class V>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks) merge_kernel(
    const __grid_constant__ ParamsFor<Order, MergeParams<num_leaves<T>, num_leaves<V>>> params) {
  ptx::overlap_both<Policy::overlaps>();
  take_numbers<Order>(params);
  using Work = TileMerge<Policy, Order, T, V>;
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  Work(params, shared).run(params.num_tiles);
}

}  // namespace gpualgo

#endif
