// A tile of keys and values in registers: loaded, the heads of runs found, and its runs folded by
// each warp.
#ifndef GPUALGO_BY_KEY_TILE_CUH
#define GPUALGO_BY_KEY_TILE_CUH

#include "by_key/marks.cuh"
#include "parts/convert.cuh"
#include "parts/fold.cuh"
#include "parts/intrinsics.cuh"
#include "parts/key_window.cuh"
#include "parts/keyed.cuh"
#include "parts/leaves.cuh"
#include "parts/operator.cuh"
#include "parts/ragged.cuh"
#include "parts/tile_io.cuh"
#include "parts/warp.cuh"
#include "parts/whole.cuh"
#include "segments/heads.cuh"
#include "select/items.cuh"

namespace gpualgo {

template <int block_threads_, int items_, int rows_, int min_blocks_, int shared_bytes_>
struct ByKeyPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int items = items_;            // of a lane in each row
  static constexpr int rows = rows_;              // of a warp; four at most
  static constexpr int min_blocks = min_blocks_;  // per multiprocessor
  static constexpr int shared_bytes = shared_bytes_;
};

enum class Way { reduce, inclusive, exclusive };

template <class A, class T, int outputs, class Access>
struct ByKeyParams {
  Init<A> init;
  Sources<T> input;  // the numbers of a key, then those of a value
  unsigned char* output[outputs];
  int64* num_runs;          // of a reduction
  const KeyWindow* window;  // null: none; narrow: tables have the results
  unsigned char* states;
  int64 num_items, num_tiles, num_words;
  int64 capacity;               // of the outputs
  int64 output_steps[outputs];  // bytes
  Access access;
};

// K: a key, or NoKey, where Equal is ByOffsets; A: what values are folded in;
// T: elements as they are read, keys' numbers first. Heads of runs begin with init where has_init
// is set (of a scan).
template <class Policy, class Equal, class Op, class K, class A, class T, class Params,
          bool has_init>
struct ByKeyTiles {
  using E = typename TileElement<K, A, T>::type;
  static constexpr bool is_marked = is_same<K, NoKey>;
  static constexpr bool has_starts = OffsetsOf<Equal>::has_starts;
  static constexpr bool sets_marks = OffsetsOf<Equal>::sets_marks;
  static constexpr bool loads_packs = decltype(Params::access)::in_one;
  static constexpr int items = Policy::items, rows = Policy::rows;
  static constexpr int warps = Policy::block_threads / warp_threads;
  static constexpr int row_items = warp_threads * items, warp_items = rows * row_items;
  static constexpr int tile_items = warps * warp_items;
  static constexpr int field_bits = 8;  // of a row's heads in a word of four
  static_assert(rows <= 4 && row_items < 1 << field_bits && 32 % items == 0);

  struct Tile {
    Pack<E, items> packs[rows];
    K earlier;       // in lane 0: the key before the warp's first
    uint32 heads;    // a bit for each element
    uint32 marks;    // where there are marks: the warp's words, one in each of the first lanes
    uint32 inside;   // there: heads, without what is in no segment
    A before[rows];  // the run that is open before the lane's elements of a row, if there are any
    uint32 open;     // a bit for each row: no run of the warp begins before these elements
    uint32 ranks;    // fields: how many runs begin in each row before these elements
    uint32 totals;   // fields: and in the whole row
    int first;       // where the warp's first run begins in the tile, if one does
    OpenRun<Op, A> whole;  // of the warp, for all lanes
  };

  const Params& params;
  int warp = threadIdx.x / warp_threads, lane = threadIdx.x % warp_threads;

  __device__ int count_of(int64 tile) const {
    const int64 rest = params.num_items - tile * tile_items;
    return rest < tile_items ? int(rest) : tile_items;
  }
  // Where the lane's elements of a row begin in their tile.
  __device__ int start_of(int row) const {
    return warp * warp_items + row * row_items + lane * items;
  }
  __device__ int place_of(int bit) const { return start_of(bit / items) + bit % items; }

  __device__ static K key_of(const E& element) {
    K key;
    for_each_leaf<K>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      leaf_of<i>(key) = leaf_of<i>(element);
    });
    return key;
  }
  __device__ static A value_of(const E& element) {
    A value;
    for_each_leaf<A>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      leaf_of<i>(value) = convert<Leaf<A, i>>(leaf_of<num_leaves<K> + i>(element));
    });
    return value;
  }
  // Where runs begin that take an initial value, a bit for each element.
  __device__ static uint32 begins_of(const Tile& held) {
    return is_marked ? held.inside : held.heads;
  }
  // Whether anything precedes a lane's element in its run: `value`, or the initial value, which is
  // put there. is_first: no element does.
  __device__ bool is_preceded(const Tile& held, int row, int k, bool is_first, A& value) const {
    const int bit = row * items + k;
    if constexpr (has_init) {
      if (ptx::computed_now(begins_of(held) >> bit & 1)) {
        memcpy(&value, params.init.value, sizeof(A));
        return true;
      }
    }
    return !is_first && !(held.heads >> bit & 1);
  }

  // A key alone: values may be overwritten by then.
  __device__ K load_key(int64 index) const {
    if constexpr (is_computed<T>) {
      return key_of(params.access.template load_one<T>(params.input, index));
    } else {
      return params.access.template load_first<K>(params.input, index);
    }
  }

  __device__ void load(Tile& held, int64 tile) const {
    const int64 begin = tile * tile_items;
    const int count = count_of(tile);
    const int64 first = begin + start_of(0);
    if constexpr (is_marked && !sets_marks) take_marks(held, tile);
    if constexpr (!is_marked) {
      assign(held.earlier, K{});
      if (lane == 0 && first > 0 && first < params.num_items) {
        assign(held.earlier, load_key(first - 1));
      }
    }
    if (loads_packs && count == tile_items) {
#pragma unroll
      for (int row = 0; row < rows; ++row) {
        const auto pack =
            params.access.template load<T, items>(params.input, begin + start_of(row));
#pragma unroll
        for (int k = 0; k < items; ++k) {
          assign(held.packs[row].items[k], convert<E>(pack.items[k]));
        }
      }
      return;
    }
#pragma unroll
    for (int row = 0; row < rows; ++row) {
#pragma unroll
      for (int k = 0; k < items; ++k) {
        const int i = start_of(row) + k;
        assign(held.packs[row].items[k], E{});  // lanes hand on what nobody looks at
        if (i < count) {
          assign(held.packs[row].items[k],
                 convert<E>(params.access.template load_one<T>(params.input, begin + i)));
        }
      }
    }
  }

  // A word of the warp's marks, one in each of the first lanes.
  __device__ uint32* marks_of(int64 tile) const {
    return params.heads + (tile * tile_items + warp * warp_items) / 32 + lane;
  }
  __device__ void take_marks(Tile& held, int64 tile) const {
    const bool is_there = lane < warp_items / 32 && warp * warp_items + lane * 32 < count_of(tile);
    held.marks = is_there ? *marks_of(tile) : 0;
  }

  // Finds the heads of runs. is_full: no element is missing.
  template <bool is_full>
  __device__ void mark(Tile& held, int64 tile) const {
    const int count = is_full ? tile_items : count_of(tile);
    held.heads = 0;
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      K before = key_before(held, row);
#pragma unroll
      for (int k = 0; k < items; ++k) {
        const K key = key_of(held.packs[row].items[k]);
        const bool is_there = is_full || k < rest_of(row, count);
        const bool is_first = row == 0 && k == 0 && threadIdx.x == 0 && tile == 0;  // of all
        if (is_there && (is_first || !Equal::apply(before, key))) {
          held.heads |= 1u << (row * items + k);
        }
        assign(before, key);
      }
    }
  }
  // The same by marks; each element in no segment is a run of its own.
  template <bool is_full>
  __device__ void mark_segments(Tile& held, int64 tile) const {
    const int count = is_full ? tile_items : count_of(tile);
    if (sets_marks && held.marks != 0) *marks_of(tile) = 0;
    held.inside = 0;
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      const uint32 word = shuffle(held.marks, (row * row_items + lane * items) / 32);
      held.inside |= row_of(word >> lane * items % 32, 0) << row * items;
    }
    held.heads = held.inside;
    const int64 begin = tile * tile_items;
    const int64 first = params.bounds[0] - begin, last = params.bounds[1] - begin;
    if (first <= 0 && last >= count) return;
#pragma unroll
    for (int row = 0; row < rows; ++row) {
#pragma unroll
      for (int k = 0; k < items; ++k) {
        const int place = start_of(row) + k;
        const uint32 bit = 1u << (row * items + k);
        if (place >= count || (place >= first && place < last)) continue;
        held.heads |= bit;
        held.inside &= ~bit;
      }
    }
  }

  // Calls fn(bit, start) for each of a lane's elements at which a segment begins, with the
  // segment's start, once runs are ranked. All lanes call it. Not part of an unrolled loop, as a
  // search takes registers.
  template <class Fn>
  __device__ void at_starts(const Tile& held, int64 tile, Fn fn) const {
    const Offsets<typename Equal::Index> offsets{params.offsets, params.offset_step,
                                                 params.num_items};
    int place = held.inside == 0 ? tile_items : place_of(ptx::ffs(held.inside) - 1);
#pragma unroll
    for (int delta = 1; delta < warp_threads; delta *= 2) {
      const int other = shuffle_xor(place, delta);
      if (other < place) place = other;
    }
    if (place == tile_items) return;
    const int64 begin = tile * tile_items;
    const int64 segment = int64(params.firsts[(begin + place) / stretch_items]);
#pragma unroll 1
    for (uint32 bits = held.inside; bits != 0; bits &= bits - 1) {
      const int bit = ptx::ffs(bits) - 1, row = bit / items;
      int rank = field(held.ranks, row) + ptx::popc(row_of(held.inside & ~bits, row));
#pragma unroll
      for (int i = 0; i < rows - 1; ++i) rank += i < row ? field(held.totals, i) : 0;
      const int64 own =
          segment_from(segment + rank, offsets, params.num_offsets - 1, begin + place_of(bit));
      fn(bit, load_element(moved(params.starts, [&](auto leaf) {
           return own * params.start_steps[decltype(leaf)::value];
         })));
    }
  }
  // Puts starts before the elements at which segments begin.
  __device__ void put_starts(Tile& held, int64 tile) const {
    at_starts(held, tile, [&](int bit, const A& start) {
      A value{};
#pragma unroll
      for (int i = 0; i < rows * items; ++i) {
        assign(value, either(i == bit, held.packs[i / items].items[i % items], value));
      }
      const A joined = Op::apply(start, value);
#pragma unroll
      for (int i = 0; i < rows * items; ++i) {
        A& own = held.packs[i / items].items[i % items];
        assign(own, either(i == bit, joined, own));
      }
    });
  }

  // The key before a lane's first one of a row.
  __device__ K key_before(const Tile& held, int row) const {
    K key = shuffle_up(key_of(held.packs[row].items[items - 1]), 1);
    if (row == 0) {
      if (lane == 0) assign(key, held.earlier);
    } else {
      const int last = row - (row > 0);
      const K of_row = shuffle(key_of(held.packs[last].items[items - 1]), warp_threads - 1);
      if (lane == 0) assign(key, of_row);
    }
    return key;
  }
  // Of bits of the lane's elements, those of a row.
  __device__ static uint32 row_of(uint32 bits, int row) {
    return bits >> (row * items) & uint32((1ull << items) - 1);
  }
  // How many of the lane's elements of a row there are; more than `items`, perhaps, or less than 0.
  __device__ int rest_of(int row, int count) const { return count - start_of(row); }

  // Folds the runs of each row's lanes, the rows' of the warp, and keeps what precedes the lane's.
  template <bool is_full>
  __device__ void fold(Tile& held, int count) const {
    held.whole.is_empty = true;
    held.whole.begins = false;
    held.open = 0;
    held.first = tile_items;
#pragma unroll
    for (int row = rows - 1; row >= 0; --row) {
      const uint32 heads = ptx::ballot_sync(all_lanes, row_of(held.heads, row) != 0);
      if (heads == 0) continue;
      const int lane_of_first = ptx::ffs(heads) - 1;
      const uint32 bits = shuffle(row_of(held.heads, row), lane_of_first);
      held.first = start_of(row) + (lane_of_first - lane) * items + ptx::ffs(bits) - 1;
    }
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      const int rest = count - (warp * warp_items + row * row_items);
      int active = warp_threads;
      if (!is_full && rest < row_items) active = rest <= 0 ? 0 : (rest + items - 1) / items;
      const uint32 heads = ptx::ballot_sync(all_lanes, row_of(held.heads, row) != 0);
      const A tail = fold_lane<is_full>(held, row, rest_of(row, count));
      const A inclusive = scan_runs<Op>(tail, heads, active);
      assign(held.before[row], shuffle_up(inclusive, 1));
      const bool is_open = (heads & lanes_before()) == 0;
      if (row > 0 && is_open && lane < active) {
        if (lane == 0) {
          assign(held.before[row], held.whole.value);
        } else {
          const A joined = Op::apply(held.whole.value, held.before[row]);
          assign(held.before[row], joined);
        }
      }
      if (is_open && !held.whole.begins) held.open |= 1u << row;
      if (is_full || active > 0) held.whole.append(shuffle(inclusive, active - 1), heads != 0);
    }
  }
  // The fold of a lane's elements of a row, from where its last run begins.
  template <bool is_full>
  __device__ A fold_lane(const Tile& held, int row, int rest) const {
    A tail{};
#pragma unroll
    for (int k = 0; k < items; ++k) {
      if (!is_full && k >= rest) break;
      const A value = value_of(held.packs[row].items[k]);
      const A joined = is_preceded(held, row, k, k == 0, tail) ? Op::apply(tail, value) : value;
      assign(tail, joined);
    }
    return tail;
  }

  // Puts what earlier warps of the tile leave open before the lane's elements.
  __device__ void join(Tile& held, const A& within, int count) const {
    if (warp == 0) return;
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      if (!(held.open >> row & 1) || rest_of(row, count) <= 0) continue;
      if (row == 0 && lane == 0) {
        assign(held.before[row], within);
      } else {
        const A joined = Op::apply(within, held.before[row]);
        assign(held.before[row], joined);
      }
    }
  }

  // Counts the runs that begin in each row: before the lane's elements, and in all.
  __device__ void rank(Tile& held) const {
    uint32 own = 0;
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      own |= uint32(ptx::popc(row_of(begins_of(held), row))) << row * field_bits;
    }
    const uint32 sums = sum_up_to(own);
    held.ranks = sums - own;
    held.totals = shuffle(sums, warp_threads - 1);
  }
  __device__ static int field(uint32 word, int row) {
    return int(word >> row * field_bits) & ((1 << field_bits) - 1);
  }
  // How many runs begin in the warp, once they are ranked.
  __device__ static int total_of(const Tile& held) {
    int total = 0;
#pragma unroll
    for (int row = 0; row < rows; ++row) total += field(held.totals, row);
    return total;
  }
};

}  // namespace gpualgo

#endif
