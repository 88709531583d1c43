// Selection: the elements that are kept, in their order, without gaps; and the rest behind them. Or
// the first elements of runs, and how long these are.
//
// Algorithm  One pass (Merrill and Garland, "Single-pass parallel prefix scan with decoupled
//            look-back", NVIDIA NVR-2016-002, 2016). Blocks take tiles in order. A tile is loaded
//            into registers and marked; lanes rank what they keep by a scan of their counts, four
//            rows in one word; the tile's count is published, and what is kept is moved up in
//            shared memory. Only then the block looks back for the tile that it took before, whose
//            predecessors have had that long to publish, and writes it while the next one is being
//            loaded. With a rest, a count of all that is kept was made before (see the host's
//            side).
// Bytes      sizeof(T) and the mark per element, sizeof(T) per element that is kept; launches: one.
//            Temporary storage: 8 bytes per tile (16 from 2^32 elements on), and 256.
// Predicate  Called once for each element, in any order, and on nothing else.
// Bits       Elements are moved as they are; counts are integers.
#ifndef GPUALGO_SELECT_KERNEL_CUH
#define GPUALGO_SELECT_KERNEL_CUH

#include "parts/intrinsics.cuh"
#include "parts/leaves.cuh"
#include "parts/lookback.cuh"
#include "parts/operator.cuh"
#include "parts/prefix_sum.cuh"
#include "parts/ptx.cuh"
#include "parts/tile_io.cuh"
#include "parts/warp.cuh"
#include "select/tile.cuh"

namespace gpualgo {

namespace detail {

template <class Count, bool gives_lengths>
struct SumOf {
  using type = Count;
};
template <class Count>
struct SumOf<Count, true> {
  using type = RunHeads<Count>;
};

}  // namespace detail

// keeps_rest: what is not kept is written, too. gives_lengths: of runs, behind an element's
// numbers.
template <class Policy, class Keep, class T, class Count, class Access, bool keeps_rest,
          bool gives_lengths>
struct Select {
  using Tiles = SelectTiles<Policy, Keep, T, Access, gives_lengths>;
  using Sum = typename detail::SumOf<Count, gives_lengths>::type;
  using Tile = typename Tiles::Tile;
  using E = typename Tiles::E;
  static constexpr int items = Tiles::items, rows = Tiles::rows, outputs = Tiles::outputs;
  static constexpr int warps = Tiles::warps, tile_items = Tiles::tile_items;

  // Where the numbers of a leaf lie in a stage: each leaf's follow one another.
  template <int leaf>
  __device__ static constexpr int section() {
    if constexpr (leaf == 0) {
      return 0;
    } else {
      constexpr int bytes = tile_items * int(sizeof(Leaf<E, leaf - 1>));
      return section<leaf - 1>() + (bytes + vector_bytes - 1) / vector_bytes * vector_bytes;
    }
  }
  // Behind all leaves, where in the tile runs begin.
  static constexpr int heads = section<outputs>();
  static constexpr int stage_bytes = heads + (gives_lengths ? tile_items * int(sizeof(int)) : 0);

  struct Shared {
    alignas(vector_bytes) unsigned char stages[2][stage_bytes];
    Sum before;         // the tile that is written next
    uint32 next;        // the tile that is taken
    int totals[warps];  // what each keeps of the tile at hand
    int lasts[warps];   // the last element that it keeps
  };
  static_assert(sizeof(Shared) <= Policy::shared_bytes);

  struct Staged {
    int64 tile = -1;
    int kept = 0, count = 0;
    int last = 0;  // element that is kept
  };

  const typename Tiles::Params& params;
  Shared& shared;
  TileStates states;
  Tiles tiles{params};
  int warp = tiles.warp, lane = tiles.lane;

  // Moves the warp's elements up in a stage: those that are kept from `begin` on; the others, if
  // they are wanted, behind the tile's `num_kept` ones.
  __device__ void stage(unsigned char* to, const Tile& held, int begin, int num_kept,
                        int count) const {
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      int place = begin + held.starts[row] + Tiles::field(held.before, row);
#pragma unroll
      for (int k = 0; k < items; ++k) {
        const bool is_kept = held.kept >> (row * items + k) & 1;
        const int i = tiles.start_of(row) + k;
        if (is_kept) {
          put(to, place, held.packs[row].items[k]);
          if constexpr (gives_lengths) reinterpret_cast<int*>(to + heads)[place] = i;
        } else if (keeps_rest && i < count) {
          put(to, num_kept + i - place, held.packs[row].items[k]);
        }
        place += is_kept;
      }
    }
  }
  __device__ static void put(unsigned char* to, int place, const E& element) {
    for_each_leaf<E>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      if constexpr (i < outputs) {
        reinterpret_cast<Leaf<E, i>*>(to + section<i>())[place] = leaf_of<i>(element);
      }
    });
  }

  // Writes `count` elements of a stage, from number `begin` on, to places in the outputs.
  __device__ void write(const unsigned char* from, int begin, int64 place, int count) const {
    if (place + count > params.capacity) {
      count = place < params.capacity ? int(params.capacity - place) : 0;
    }
    for_each_leaf<E>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      if constexpr (i < outputs) {
        using Number = Leaf<E, i>;
        const auto* numbers = reinterpret_cast<const Number*>(from + section<i>()) + begin;
        const int64 step = params.output_steps[i];
        unsigned char* to = params.output[i] + place * step;
#pragma unroll 4
        for (int k = threadIdx.x; k < count; k += Policy::block_threads) {
          *reinterpret_cast<Number*>(to + k * step) = numbers[k];
        }
      }
    });
  }

  // The last element of the tile that a warp keeps; -1 if it keeps none. Its lanes all get it.
  __device__ int last_of(const Tile& held) const {
    int last = -1;
#pragma unroll
    for (int row = 0; row < rows; ++row) {
#pragma unroll
      for (int k = 0; k < items; ++k) {
        if (held.kept >> (row * items + k) & 1) last = tiles.start_of(row) + k;
      }
    }
#pragma unroll
    for (int delta = 1; delta < warp_threads; delta *= 2) {
      const int other = shuffle_xor(last, delta);
      last = last < other ? other : last;
    }
    return last;
  }

  __device__ static Count count_in(const Count& sum) { return sum; }
  __device__ static Count count_in(const RunHeads<Count>& sum) { return sum.count; }
  __device__ static Sum sum_of(const Staged& staged) {
    if constexpr (gives_lengths) {
      if (staged.kept == 0) return {};
      return {Count(staged.kept), Count(staged.tile * tile_items + staged.last)};
    } else {
      return Count(staged.kept);
    }
  }

  // Finds what precedes a staged tile, and tells the tiles behind it. Called by the first warp.
  __device__ void look_back(const Staged& staged) {
    const Sum before = sum_before<Sum>(states, staged.tile);
    if (threadIdx.x != 0) return;
    const Sum total = joined(before, sum_of(staged));
    if (staged.tile > 0) states.publish(staged.tile, total, prefix);
    shared.before = before;
    if (keeps_rest || staged.tile < params.num_tiles - 1) return;
    const int64 num_kept = int64(count_in(total));
    *params.num_kept = num_kept;
    if constexpr (gives_lengths) put_length(num_kept - 1, params.num_items - int64(total.last));
  }

  __device__ void write(const Staged& staged, const unsigned char* from) const {
    const int64 before = int64(count_in(shared.before));
    write(from, 0, before, staged.kept);
    if constexpr (keeps_rest) {
      const int64 rest = *params.num_kept + staged.tile * tile_items - before;
      write(from, staged.kept, rest, staged.count - staged.kept);
    }
    if constexpr (gives_lengths) write_lengths(staged, from, before);
  }

  // Writes how long the runs are that end where one of the tile begins.
  __device__ void write_lengths(const Staged& staged, const unsigned char* from,
                                int64 before) const {
    const int* begins = reinterpret_cast<const int*>(from + heads);
    const int64 tile = staged.tile * tile_items;
    for (int k = threadIdx.x; k < staged.kept; k += Policy::block_threads) {
      const int64 last = k > 0 ? tile + begins[k - 1] : int64(shared.before.last);
      if (before + k > 0) put_length(before + k - 1, tile + begins[k] - last);
    }
  }
  __device__ void put_length(int64 run, int64 length) const {
    if (run >= params.capacity) return;
    unsigned char* to = params.output[outputs] + run * params.output_steps[outputs];
    *reinterpret_cast<int64*>(to) = length;
  }

  __device__ void run() {
    if (threadIdx.x == 0) shared.next = states.take();
    ptx::syncthreads();
    int64 tile = shared.next;
    Tile held;
    if (tile < params.num_tiles) tiles.load(held, tile);
    Staged last;
    for (int parity = 0;; parity ^= 1) {
      const bool is_tile = tile < params.num_tiles;
      Staged staged;
      if (is_tile) {
        staged.tile = tile;
        staged.count = tiles.count_of(tile);
        tiles.mark(held, tile);
        if (lane == 0) shared.totals[warp] = held.total;
        if constexpr (gives_lengths) {
          const int last = last_of(held);
          if (lane == 0) shared.lasts[warp] = last;
        }
      }
      ptx::syncthreads();  // behind it, the stage is free again
      if (is_tile) {
        int begin = 0;
#pragma unroll
        for (int i = 0; i < warps; ++i) {
          if (i < warp) begin += shared.totals[i];
          staged.kept += shared.totals[i];
          if (gives_lengths && shared.lasts[i] >= 0) staged.last = shared.lasts[i];
        }
        if (threadIdx.x == 0) {
          states.publish(tile, sum_of(staged), tile == 0 ? prefix : aggregate);
          shared.next = states.take();
        }
        stage(shared.stages[parity], held, begin, staged.kept, staged.count);
      }
      if (last.tile >= 0 && warp == 0) look_back(last);
      ptx::syncthreads();
      if (is_tile) {
        tile = shared.next;
        if (tile < params.num_tiles) tiles.load(held, tile);
      }
      if (last.tile >= 0) write(last, shared.stages[parity ^ 1]);
      if (!is_tile) break;
      last = staged;
    }
    if (threadIdx.x == 0) states.finish(params.num_words);
  }
};

template <class Policy, class Keep, class T, class Count, class Access, bool keeps_rest,
          bool gives_lengths>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks) select_kernel(
    const __grid_constant__
        ParamsFor<typename Keep::Operator,
                  typename SelectTiles<Policy, Keep, T, Access, gives_lengths>::Params>
            params) {
  take_numbers<typename Keep::Operator>(params);
  using Work = Select<Policy, Keep, T, Count, Access, keeps_rest, gives_lengths>;
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  Work work{params, shared, TileStates(params.states)};
  work.run();
}

}  // namespace gpualgo

#endif
