// Sorting tiles by comparisons: a part of a row each, or several short rows; stable.
//
// Algorithm  A thread sorts its neighbours in registers by odd-even transposition, which changes
//            places of neighbours alone and so keeps the order of equal ones. Then runs are merged
//            pairwise in shared memory, each thread writing as many elements, from where "merge
//            path" says (Odeh, Green, Mwassi, Shmueli and Birk 2012, doi:10.1109/IPDPSW.2012.202).
//            Of short rows each has threads of its own.
// Bytes      2 (k + v) per key of k bytes with values of v; launches: one; temporary storage: none.
//            Values are fetched when the order is known.
// In place   safe: a tile is read whole before any of it is written.
// Operator   a strict weak order, asked of elements of the input alone. The result does not depend
//            on which of them are compared.
#ifndef GPUALGO_MERGE_SORT_TILES_CUH
#define GPUALGO_MERGE_SORT_TILES_CUH

#include "merge_sort/order.cuh"
#include "parts/layout.cuh"
#include "parts/warp.cuh"

namespace gpualgo {

template <int key_leaves, int value_leaves>
struct SortTilesParams {
  const unsigned char* keys[key_leaves];
  const unsigned char* values[value_leaves];  // null: positions in the row are wanted
  unsigned char* output_keys[key_leaves];
  unsigned char* output_values[value_leaves];
  int64 num_tiles, num_rows, row_items;
  Divisor tiles_per_row;  // one where a tile has several rows
  int64 rows_per_tile;
  int64 threads_per_row;  // a power of two
  int64 row_magic;        // times a place in a tile, over 2^32: its row in there
};

template <class Policy, class Order, class T, class V>
struct TileSort {
  static constexpr int threads = Policy::block_threads;
  static constexpr int items = Policy::items;
  static constexpr int tile_items = Policy::tile_items;
  static_assert(tile_items <= 1 << 16 && items % 2 == 1);  // places in shared memory have no gaps
  using Params = SortTilesParams<num_leaves<T>, num_leaves<V>>;

  struct Shared {
    alignas(16) T keys[tile_items + items + 1];     // what is read
    uint16 places[has_values<V> ? tile_items : 1];  // in its part of the row
  };
  static_assert(sizeof(Shared) <= Policy::shared_bytes);

  const Params& params;
  Shared& shared;
  int64 begin;  // of the tile, in elements
  int64 first;  // its position in its row
  int total;    // elements of the tile
  int count;    // of the part of a row that this thread works on
  int base;     // where that lies in shared memory
  int place;    // this thread's first element in there
  T keys[items];
  uint32 places[items];

  __device__ TileSort(const Params& params, Shared& shared, int64 tile)
      : params(params), shared(shared) {
    const int width = int(params.threads_per_row);
    const int64 row = params.tiles_per_row.divide(tile);
    const int64 part = tile - row * params.tiles_per_row.value;
    const int64 first_row = row * params.rows_per_tile;
    first = part * tile_items;
    begin = first_row * params.row_items + first;
    const int64 left = params.row_items - first;
    int64 rows = params.num_rows - first_row;
    if (rows > params.rows_per_tile) rows = params.rows_per_tile;
    const int part_items = left < tile_items ? int(left) : tile_items;
    total = int(rows) * part_items;
    const int own_row = threadIdx.x / width;
    count = own_row < rows ? part_items : 0;
    base = own_row * width * items;
    place = threadIdx.x % width * items;
  }

  __device__ int longest() const {
    return params.row_items < tile_items ? int(params.row_items) : tile_items;
  }
  __device__ int row_of(int i) const {
    return int(ptx::umulhi(uint32(params.row_magic), uint32(i)));
  }
  // Where the tile's i-th element is kept: each row begins with a thread's first element.
  __device__ int slot_of(int i) const {
    const int row = row_of(i);
    return i + row * (int(params.threads_per_row) * items - int(params.row_items));
  }

  __device__ void load() {
    const Sources<T> source = advanced(sources_of<T>(params.keys), begin);
    T loaded[items];
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int i = threadIdx.x + k * threads;
      if (i < total) loaded[k] = load_element<T>(advanced(source, i));
    }
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int i = threadIdx.x + k * threads;
      if (i < total) assign(shared.keys[slot_of(i)], loaded[k]);
    }
  }

  // Sorts this thread's elements, of which the last may be missing.
  template <bool is_whole>
  __device__ void sort_own() {
#pragma unroll
    for (int k = 0; k < items; ++k) {
      places[k] = place + k;
      if (is_whole || place + k < count) assign(keys[k], shared.keys[base + place + k]);
    }
#pragma unroll 1
    for (int round = 0; round < items; round += 2) {
#pragma unroll
      for (int phase = 0; phase < 2; ++phase) {
#pragma unroll
        for (int k = phase; k + 1 < items; k += 2) {
          if constexpr (is_whole) {
            exchange_if(Order::before(keys[k + 1], keys[k]), k, k + 1);
          } else if (place + k + 1 < count) {
            exchange_if(Order::before(keys[k + 1], keys[k]), k, k + 1);
          }
        }
      }
    }
  }

  __device__ void exchange_if(bool is_due, int i, int j) {
    T first, second;
    choose(first, is_due, keys[j], keys[i]);
    choose(second, is_due, keys[i], keys[j]);
    assign(keys[i], first);
    assign(keys[j], second);
    const uint32 place_i = places[i], place_j = places[j];
    places[i] = is_due ? place_j : place_i;
    places[j] = is_due ? place_i : place_j;
  }

  __device__ void put_own() {
#pragma unroll
    for (int k = 0; k < items; ++k) {
      if (place + k < count) {
        assign(shared.keys[base + place + k], keys[k]);
        if constexpr (has_values<V>) shared.places[base + place + k] = uint16(places[k]);
      }
    }
  }

  // Takes this thread's elements of two neighbouring runs, merged.
  __device__ void merge_runs(int run) {
    const int pair = place / (2 * run) * (2 * run);
    const int rest = count - pair;
    const int num_a = rest < run ? (rest < 0 ? 0 : rest) : run;
    const int num_b = rest < 2 * run ? (rest < run ? 0 : rest - run) : run;
    const int a = base + pair, b = a + run, end = b + num_b;
    const int diagonal = place - pair;
    if (diagonal >= num_a + num_b) return;
    const int i = split_at(diagonal, num_a, num_b, [&](int in_b, int in_a) {
      return Order::before(shared.keys[b + in_b], shared.keys[a + in_a]);
    });
    merge_steps<items, Order>(shared.keys, a + i, a + num_a, b + diagonal - i, end, keys,
                              [&](int k, int from) {
                                if constexpr (has_values<V>) places[k] = shared.places[from];
                              });
  }

  // What a thread reads of shared memory is what it writes for the next tile.
  __device__ void write() const {
    const Targets<T> target = advanced(targets_of<T>(params.output_keys), begin);
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int i = threadIdx.x + k * threads;
      if (i < total) store_element(advanced(target, i), shared.keys[slot_of(i)]);
    }
    if constexpr (has_values<V>) {
      const bool are_given = params.values[0] != nullptr;
      const Sources<V> source = advanced(sources_of<V>(params.values), are_given ? begin : 0);
      V values[items];
#pragma unroll
      for (int k = 0; k < items; ++k) {
        const int i = threadIdx.x + k * threads;
        if (i < total) {
          const int from = shared.places[slot_of(i)];
          if (are_given) {
            const int64 row_begin = row_of(i) * params.row_items;
            values[k] = load_element<V>(advanced(source, row_begin + from));
          } else {
            values[k] = position_value<V>(first + from);
          }
        }
      }
      ptx::syncthreads();  // all are read before any is written, which may be in place
      const Targets<V> to = advanced(targets_of<V>(params.output_values), begin);
#pragma unroll
      for (int k = 0; k < items; ++k) {
        const int i = threadIdx.x + k * threads;
        if (i < total) store_element(advanced(to, i), values[k]);
      }
    }
  }

  __device__ static void sync(bool is_of_warp) {
    if (is_of_warp) {
      ptx::syncwarp();
    } else {
      ptx::syncthreads();
    }
  }

  __device__ void run() {
    load();
    ptx::syncthreads();
    if (place + items <= count) {
      sort_own<true>();
    } else {
      sort_own<false>();
    }
#pragma unroll 1
    for (int run = items; run < longest(); run *= 2) {
      const bool is_of_warp = !Order::takes_any && 2 * run <= warp_threads * items;
      put_own();
      sync(is_of_warp);
      merge_runs(run);
      sync(is_of_warp);
    }
    put_own();
    ptx::syncthreads();
    write();
  }
};

template <class Policy, class Order, class T, class V>
__global__ void __launch_bounds__(Policy::block_threads,
                                  has_values<V> ? (Policy::min_blocks + 1) / 2 : Policy::min_blocks)
    sort_tiles_kernel(
        const __grid_constant__ ParamsFor<Order, SortTilesParams<num_leaves<T>, num_leaves<V>>>
            params) {
  if constexpr (Policy::overlaps) ptx::griddepcontrol_launch_dependents();
  take_numbers<Order>(params);
  using Work = TileSort<Policy, Order, T, V>;
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  for (int64 tile = blockIdx.x; tile < params.num_tiles; tile += gridDim.x) {
    Work(params, shared, tile).run();
  }
}

}  // namespace gpualgo

#endif
