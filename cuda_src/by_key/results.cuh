// Results of a tile of runs: put into shared memory, and written from there.
#ifndef GPUALGO_BY_KEY_RESULTS_CUH
#define GPUALGO_BY_KEY_RESULTS_CUH

#include "by_key/tile.cuh"
#include "parts/fold.cuh"
#include "parts/leaves.cuh"
#include "parts/ptx.cuh"
#include "parts/tile_io.cuh"

namespace gpualgo {

template <class Tiles, Way way, class Op, class K, class A, class Params, bool has_init>
struct ByKeyResults {
  static constexpr bool reduces = way == Way::reduce;
  static constexpr int keys = reduces ? num_leaves<K> : 0;  // outputs before the values'
  static constexpr int outputs = keys + num_leaves<A>;
  static constexpr int items = Tiles::items, rows = Tiles::rows, tile_items = Tiles::tile_items;
  static constexpr int threads = Tiles::warps * warp_threads;
  using Tile = typename Tiles::Tile;

  template <int output>
  __device__ static constexpr int number_bytes() {
    if constexpr (output < keys) {
      return int(sizeof(Leaf<K, output>));
    } else {
      return int(sizeof(Leaf<A, output - keys>));
    }
  }
  // Where the numbers of an output lie in a stage: each output's follow one another.
  template <int output>
  __device__ static constexpr int section() {
    if constexpr (output == 0) {
      return 0;
    } else {
      constexpr int bytes = tile_items * number_bytes<output - 1>();
      return section<output - 1>() + (bytes + vector_bytes - 1) / vector_bytes * vector_bytes;
    }
  }
  static constexpr int stage_bytes = section<outputs>();

  struct Staged {
    int64 tile = -1;
    int count = 0;           // elements
    int first = tile_items;  // where its first run begins
    int num_runs = 0;        // that begin in it; of a scan, 0
  };

  const Params& params;
  Tiles tiles{params};

  // --- into a stage ---

  template <class E>
  __device__ static void put_key(unsigned char* to, int place, const E& element) {
    for_each_leaf<K>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      reinterpret_cast<Leaf<K, i>*>(to + section<i>())[place] = leaf_of<i>(element);
    });
  }
  __device__ static void put_value(unsigned char* to, int place, const A& value) {
    for_each_leaf<A>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      reinterpret_cast<Leaf<A, i>*>(to + section<keys + i>())[place] = leaf_of<i>(value);
    });
  }
  __device__ static void put_values(unsigned char* to, int place, const Pack<A, items>& values) {
    for_each_leaf<A>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      Pack<Leaf<A, i>, items> numbers;
#pragma unroll
      for (int k = 0; k < items; ++k) numbers.items[k] = leaf_of<i>(values.items[k]);
      store_pack(to + section<keys + i>() + place * int(sizeof(Leaf<A, i>)), numbers);
    });
  }
  __device__ static A value_at(const unsigned char* from, int place) {
    A value;
    for_each_leaf<A>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      leaf_of<i>(value) = reinterpret_cast<const Leaf<A, i>*>(from + section<keys + i>())[place];
    });
    return value;
  }

  // Keys of the runs that begin in the tile, and beside each the aggregate of the run before it.
  // `begin`: how many begin in earlier warps.
  template <bool is_full>
  __device__ void stage_runs(unsigned char* to, const Tile& held, int begin, int count) const {
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      int place = begin + Tiles::field(held.ranks, row);
      begin += Tiles::field(held.totals, row);
      const int rest = tiles.rest_of(row, count);
      A value;
      assign(value, held.before[row]);
#pragma unroll
      for (int k = 0; k < items; ++k) {
        if (!is_full && k >= rest) break;
        const auto& element = held.packs[row].items[k];
        const A own = Tiles::value_of(element);
        const bool is_first = row == 0 && k == 0 && threadIdx.x == 0;  // of the tile
        if (held.heads >> (row * items + k) & 1) {
          put_key(to, place, element);
          if (!is_first) put_value(to, place, value);
          ++place;
          assign(value, own);
        } else if (is_first) {
          assign(value, own);
        } else if (k < items - 1) {  // else nobody asks
          const A joined = Op::apply(value, own);
          assign(value, joined);
        }
      }
    }
  }

  // The results of elements, but for what precedes the tile.
  template <bool is_full>
  __device__ void stage_results(unsigned char* to, const Tile& held, int count) const {
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      const int rest = tiles.rest_of(row, count);
      A value;
      assign(value, held.before[row]);
      Pack<A, items> results{};
#pragma unroll
      for (int k = 0; k < items; ++k) {
        if (!is_full && k >= rest) break;
        const A own = Tiles::value_of(held.packs[row].items[k]);
        const bool is_first = row == 0 && k == 0 && threadIdx.x == 0;  // of the tile
        const bool is_preceded = tiles.is_preceded(held, row, k, is_first, value);
        if constexpr (way == Way::exclusive) assign(results.items[k], is_preceded ? value : own);
        const A joined = is_preceded ? Op::apply(value, own) : own;
        assign(value, joined);
        if constexpr (way == Way::inclusive) assign(results.items[k], value);
      }
      if (is_full || rest > 0) put_values(to, tiles.start_of(row), results);
    }
  }

  // --- out of a stage ---

  // `carry`: the run that is open before the tile; `tail`: at its end. `before`: runs before it.
  __device__ void write_runs(const Staged& staged, const unsigned char* from, int64 before,
                             const A& carry, const A& tail) const {
    const int num_keys = room_for(before, staged.num_runs);
    for_each_leaf<K>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      copy_out<Leaf<K, i>, i>(from, 0, num_keys, before);
    });
    // Beside each key, one further in front, the aggregate of the run before; not of the first two.
    const int num_values = room_for(before - 1, staged.num_runs);
    if constexpr (has_init) {
      for (int k = threadIdx.x; k < num_values; k += threads) {
        if (k > 0) put_aggregate(before + k - 1, value_at(from, k));
      }
    } else {
      for_each_leaf<A>([&](auto leaf) {
        constexpr int i = decltype(leaf)::value;
        copy_out<Leaf<A, i>, keys + i>(from, 1, num_values, before - 1);
      });
    }
    if (threadIdx.x != 0) return;
    if (staged.num_runs > 0 && before > 0) {
      A value;
      assign(value, carry);
      if (staged.first > 0) {
        const A joined = Op::apply(value, value_at(from, 0));
        assign(value, joined);
      }
      put_aggregate(before - 1, value);
    }
    if (staged.tile < params.num_tiles - 1) return;
    const int64 num_runs = before + staged.num_runs;
    *params.num_runs = num_runs;
    put_aggregate(num_runs - 1, tail);
  }
  // How many of `count` results from a place on the outputs have room for.
  __device__ int room_for(int64 place, int count) const {
    const int64 room = params.capacity - place;
    return room < count ? room > 0 ? int(room) : 0 : count;
  }
  __device__ void put_aggregate(int64 run, const A& value) const {
    if (run >= params.capacity) return;
    A result;
    assign(result, value);
    if constexpr (has_init) assign(result, with_init<Op>(params.init, value));
    for_each_leaf<A>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      unsigned char* to = params.output[keys + i] + run * params.output_steps[keys + i];
      *reinterpret_cast<Leaf<A, i>*>(to) = leaf_of<i>(result);
    });
  }

  // Joins what is open before a tile to what precedes its first head, in the stage. All threads
  // call it.
  __device__ void complete(const Staged& staged, unsigned char* stage, const A& carry) const {
    const int open = staged.first < staged.count ? staged.first : staged.count;
    if (staged.tile == 0 || open == 0) return;
    int k = threadIdx.x;
    if (way == Way::exclusive && k == 0) {
      put_value(stage, 0, carry);
      k = threads;
    }
    for (; k < open; k += threads) put_value(stage, k, Op::apply(carry, value_at(stage, k)));
    ptx::syncthreads();
  }
  __device__ void write_results(const Staged& staged, const unsigned char* from) const {
    for_each_leaf<A>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      copy_out<Leaf<A, i>, i>(from, 0, staged.count, staged.tile * tile_items);
    });
  }

  // Writes numbers [begin, count) of a stage to an output, number 0 to a place there.
  template <class Number, int output>
  __device__ void copy_out(const unsigned char* from, int begin, int count, int64 place) const {
    const auto* numbers = reinterpret_cast<const Number*>(from + section<output>());
    const int64 step = params.output_steps[output];
    unsigned char* to = params.output[output] + place * step;
    constexpr int pack = vector_bytes / int(sizeof(Number));
    const bool is_dense = step == int64(sizeof(Number));
    if (!reduces && is_dense && reinterpret_cast<uint64>(to) % vector_bytes == 0) {
      const int packs = count / pack;
#pragma unroll 4
      for (int k = threadIdx.x; k < packs; k += threads) {
        store_pack(to + k * vector_bytes, load_pack<uint8, vector_bytes>(numbers + k * pack));
      }
      begin = packs * pack;
    }
    if (is_dense) {
      Number* dense = reinterpret_cast<Number*>(to);
#pragma unroll 4
      for (int k = begin + threadIdx.x; k < count; k += threads) dense[k] = numbers[k];
      return;
    }
    for (int k = begin + threadIdx.x; k < count; k += threads) {
      *reinterpret_cast<Number*>(to + k * step) = numbers[k];
    }
  }
};

}  // namespace gpualgo

#endif
