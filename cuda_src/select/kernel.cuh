// Selection: the elements that are kept, in their order, without gaps; and the rest behind them. Or
// the first elements of runs, and how long these are.
//
// Algorithm  One pass (Merrill and Garland, "Single-pass parallel prefix scan with decoupled
//            look-back", NVIDIA NVR-2016-002, 2016). Blocks take tiles in order. A tile is loaded
//            into registers and marked; lanes rank what they keep by a scan of their counts, all
//            rows in one word; the tile's count is published, and what is kept is moved up in
//            shared memory, and the next one is being loaded. Only then the block looks back for
//            the tile that it staged before, whose predecessors have had that long to publish, and
//            writes it. With a rest, a count of all that is kept was made before (see the host's
//            side).
// Bytes      sizeof(T) and the mark per element, sizeof(T) per element that is kept; launches: one.
//            Temporary storage: 8 bytes per tile (16 from 2^32 elements on), and 256.
// Predicate  Called on elements alone, in any order: once on each, on the last few of all more
//            often where their tile has room for more.
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

// keeps_rest: what is not kept is written, too. gives_lengths: of runs, behind an element's
// numbers.
template <class Policy, class Keep, class T, class Count, class Access, bool keeps_rest,
          bool gives_lengths>
struct Select {
  using Tiles = SelectTiles<Policy, Keep, T, Access, gives_lengths>;
  using Sum = Either<gives_lengths, RunHeads<Count>, Count>;
  using Tile = typename Tiles::Tile;
  using E = typename Tiles::Kept;
  static constexpr int items = Tiles::items, rows = Tiles::rows, outputs = Tiles::outputs;
  static constexpr int warps = Tiles::warps, tile_items = Tiles::tile_items;

  // Where the numbers of a leaf lie in a stage: each leaf's follow one another.
  template <int leaf>
  __device__ static constexpr int section() {
    if constexpr (leaf == 0) {
      return 0;
    } else if constexpr (Policy::makes_late) {  // where in the tile they are is what is staged
      return tile_items * int(sizeof(uint16));
    } else {
      constexpr int bytes = tile_items * int(sizeof(Leaf<E, leaf - 1>));
      return section<leaf - 1>() + (bytes + vector_bytes - 1) / vector_bytes * vector_bytes;
    }
  }
  // Behind all leaves, where in the tile runs begin.
  static constexpr int heads = section<outputs>();
  static constexpr int stage_bytes = heads + (gives_lengths ? tile_items * int(sizeof(uint16)) : 0);
  static_assert(tile_items <= 1 << 15);  // counts of 16 bits

  static constexpr bool has_redux = Policy::has_redux;
  // Of 2^28 float32 on an H200, half of them kept: 1 warp 496 us, 4 505, 16 546.
  static constexpr int looking = warps < 2 ? warps : 2;
  using Before = SumBefore<Sum, looking, has_redux>;

  struct Shared {
    alignas(vector_bytes) unsigned char stages[2][stage_bytes];
    typename Before::Shared before;
    uint32 next[2];     // tiles that are taken
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
        const int i = tiles.start_of(row) + k;
        if (held.kept >> (row * items + k) & 1) {
          put(to, place, i, held.loaded[row].kept.at(k));
          if constexpr (gives_lengths) reinterpret_cast<uint16*>(to + heads)[place] = uint16(i);
          ++place;
        } else if (keeps_rest && i < count) {
          put(to, num_kept + i - place, i, held.loaded[row].kept.at(k));
        }
      }
    }
  }
  __device__ static void put(unsigned char* to, int place, int i, const E& element) {
    if constexpr (Policy::makes_late) {
      reinterpret_cast<uint16*>(to)[place] = uint16(i);
      return;
    }
    for_each_leaf<E>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      if constexpr (i < outputs) {
        reinterpret_cast<Leaf<E, i>*>(to + section<i>())[place] = leaf_of<i>(element);
      }
    });
  }

  // Writes `count` elements of a tile's stage, from number `begin` on, to places in the outputs.
  __device__ void write(int64 tile, const unsigned char* from, int begin, int64 place,
                        int count) const {
    if (place + count > params.capacity) {
      count = place < params.capacity ? int(params.capacity - place) : 0;
    }
    for_each_leaf<E>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      if constexpr (i < outputs) {
        using Number = Leaf<E, i>;
        const int64 step = params.output_steps[i];
        unsigned char* to = params.output[i] + place * step;
        if constexpr (Policy::makes_late) {
          const auto* places = reinterpret_cast<const uint16*>(from) + begin;
          put_all<Number>(to, step, 0, count, [&](int k) {
            const int64 at = tile * tile_items + places[k];
            return leaf_of<i>(params.access.template load_one<T>(params.input, at));
          });
        } else {
          const auto* numbers = reinterpret_cast<const Number*>(from + section<i>()) + begin;
          put_all<Number>(to, step, 0, count, [&](int k) { return numbers[k]; });
        }
      }
    });
  }
  // Writes number_of(k) to place k of an output, for all from `begin` to `end`.
  template <class Number, class NumberOf>
  __device__ static void put_all(unsigned char* to, int64 step, int begin, int end,
                                 NumberOf number_of) {
    if (step == int64(sizeof(Number))) {
#pragma unroll 4
      for (int k = begin + threadIdx.x; k < end; k += Policy::block_threads) {
        reinterpret_cast<Number*>(to)[k] = number_of(k);
      }
      return;
    }
#pragma unroll 1
    for (int k = begin + threadIdx.x; k < end; k += Policy::block_threads) {
      *reinterpret_cast<Number*>(to + k * step) = number_of(k);
    }
  }

  // The last element of the tile that a warp keeps; 0 if it keeps none. Its lanes all get it.
  __device__ int last_of(const Tile& held) const {
    int last = 0;
    if (held.kept != 0) {
      const int bit = last_bit(held.kept);
      last = tiles.start_of(bit / items) + bit % items;
    }
    return int(warp_max<has_redux>(uint32(last)));
  }
  __device__ static int last_bit(uint32 bits) { return 31 - ptx::clz(bits); }
  __device__ static int last_bit(uint64 bits) {
    const uint32 high = uint32(bits >> 32);
    return high != 0 ? 32 + last_bit(high) : last_bit(uint32(bits));
  }
  // Adds up what the warps keep; returns how many come before this warp's.
  __device__ int add_totals(Staged& staged) const {
    const int total = lane < warps ? shared.totals[lane] : 0;
    const uint32 sums = warp_sum<has_redux>(uint32(total) << 16 | (lane < warp ? total : 0));
    staged.kept = int(sums >> 16);
    if constexpr (gives_lengths) {
      if (warp == 0)
        staged.last = int(warp_max<has_redux>(uint32(lane < warps ? shared.lasts[lane] : 0)));
    }
    return int(sums & 0xffff);
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

  // Tells the tiles behind a staged one how many precede them. Called by one thread.
  __device__ void publish(const Staged& staged, const Sum& before) {
    const Sum total = joined(before, sum_of(staged));
    if (staged.tile > 0) states.publish(staged.tile, total, prefix);
    if (keeps_rest || staged.tile < params.num_tiles - 1) return;
    const int64 num_kept = int64(count_in(total));
    *params.num_kept = num_kept;
    if constexpr (gives_lengths) put_length(num_kept - 1, params.num_items - int64(total.last));
  }

  __device__ void write(const Staged& staged, const Sum& sum_before,
                        const unsigned char* from) const {
    const int64 before = int64(count_in(sum_before));
    write(staged.tile, from, 0, before, staged.kept);
    if constexpr (keeps_rest) {
      const int64 rest = *params.num_kept + staged.tile * tile_items - before;
      write(staged.tile, from, staged.kept, rest, staged.count - staged.kept);
    }
    if constexpr (gives_lengths) write_lengths(staged, sum_before, from);
  }

  // Writes how long the runs are that end where one of the tile begins.
  __device__ void write_lengths(const Staged& staged, const Sum& sum_before,
                                const unsigned char* from) const {
    const int64 before = int64(sum_before.count);
    const uint16* begins = reinterpret_cast<const uint16*>(from + heads);
    if (threadIdx.x == 0 && staged.kept > 0 && before > 0) {
      const int64 begin = staged.tile * tile_items + begins[0];
      put_length(before - 1, begin - int64(sum_before.last));
    }
    const int64 room = params.capacity - (before - 1);
    const int end = staged.kept < room ? staged.kept : room > 0 ? int(room) : 0;
    const int64 step = params.output_steps[outputs];
    unsigned char* to = params.output[outputs] + (before - 1) * step;
    put_all<int64>(to, step, 1, end, [&](int k) { return int64(begins[k] - begins[k - 1]); });
  }
  __device__ void put_length(int64 run, int64 length) const {
    if (run >= params.capacity) return;
    unsigned char* to = params.output[outputs] + run * params.output_steps[outputs];
    *reinterpret_cast<int64*>(to) = length;
  }

  // Takes a tile, of which there are none left where each block has had one.
  __device__ uint32 take(bool is_first) const {
    return is_first || params.num_tiles > gridDim.x ? states.take() : uint32(params.num_tiles);
  }

  __device__ void run() {
    if (threadIdx.x == 0) shared.next[0] = take(true);
    ptx::syncthreads();
    int64 tile = shared.next[0];
    Tile held;
    if (tile < params.num_tiles) tiles.load(held, tile);
    if (threadIdx.x == 0) shared.next[1] = take(false);
    Staged last;
    for (int parity = 0;; parity ^= 1) {
      const bool is_tile = tile < params.num_tiles, is_last = last.tile >= 0;
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
      Before before;
      if (is_last) before.start(states, last.tile);
      uint32 after = 0;
      if (is_tile) {
        const int begin = add_totals(staged);
        if (threadIdx.x == 0) {
          states.publish(tile, sum_of(staged), tile == 0 ? prefix : aggregate);
          after = take(false);
        }
        stage(shared.stages[parity], held, begin, staged.kept, staged.count);
        tile = shared.next[parity ^ 1];
        if (tile < params.num_tiles) tiles.load(held, tile);
      }
      if (is_last) before.share(shared.before, states, last.tile);
      if (threadIdx.x == 0) shared.next[parity] = after;
      ptx::syncthreads();
      if (is_last) {
        const Sum sum = before.finish(shared.before, states, last.tile);
        if (threadIdx.x == 0) publish(last, sum);
        write(last, sum, shared.stages[parity ^ 1]);
      }
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
