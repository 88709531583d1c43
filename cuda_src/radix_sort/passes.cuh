// Least-significant-digit radix sort of one or many long rows, with values or to indices; stable.
//
// Algorithm  "Onesweep" (Adinets and Merrill 2022, arXiv:2206.01784): radix_sort/histogram.cuh
//            counts the digits of all passes; then each pass reads a tile, publishes its counts,
//            ranks its keys (parts/block_rank.cuh), looks back for what precedes it
//            (parts/lookback.cuh), puts the tile in order in shared memory and writes each digit's
//            run to its place. Blocks stay and load their next tile while they write one.
// Bytes      k + passes * 2 (k + v) per key of k bytes with a value of v; launches: 1 + passes. A
//            pass that would change nothing returns at once.
// Storage    A copy of keys and values; a table of `ring` tile states, of 256 words of 8 bytes
//            each, that the tiles of a pass use in turn.
// Keys       move as the bits they are; the order is radix_sort/keys.cuh's. Keys and values of one
//            size may be joined in words, in shared memory and in the copy: every second pass
//            joins them, the ones between take them apart.
// One file of more than 300 lines, as a tile's steps share its registers and are read in order.
#ifndef GPUALGO_RADIX_SORT_PASSES_CUH
#define GPUALGO_RADIX_SORT_PASSES_CUH

#include "parts/block_rank.cuh"
#include "parts/lookback.cuh"
#include "parts/ptx.cuh"
#include "radix_sort/histogram.cuh"
#include "radix_sort/moved.cuh"
#include "radix_sort/ring.cuh"

namespace gpualgo {

template <int block_threads_, int items_, int min_blocks_, int window_, int shared_bytes_,
          bool joins_, bool values_follow_, bool prefetches_, bool overlaps_>
struct RadixPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int items = items_;            // keys per thread
  static constexpr int min_blocks = min_blocks_;  // per multiprocessor
  static constexpr int window = window_;          // tile states that a thread reads at once
  static constexpr int shared_bytes = shared_bytes_;
  static constexpr bool joins = joins_;  // keys and values, in shared memory and in the first side
  static constexpr bool values_follow = values_follow_;  // through where the keys were
  static constexpr bool prefetches = prefetches_;  // the next tile's keys, to L2 (sm_90 and later)
  static constexpr bool overlaps = overlaps_;      // launched while the kernel before still runs
};

// Keys and their values; values may be missing, keys where only indices are wanted. Where keys and
// values are joined, keys are what lies there.
struct RadixBuffer {
  unsigned char* keys;
  unsigned char* values;
};

template <class Index>
struct RadixPassParams {
  RadixBuffer input, output;
  RadixBuffer sides[2];  // where passes that are not the last write; the second may be the output
  unsigned char* states;
  RadixTables<Index> tables;
  int64 num_tiles, row_items;
  Divisor tiles_per_row;
  int64 num_words;      // of all states, of whatever kernel
  uint32 ring;          // tile states that lie side by side; a power of two
  uint32 makes_values;  // the first pass: the keys' positions in their row
  uint32 pass_index, num_passes;
  Digit digit;
  uint64 padding;  // a key that no key's digit lies behind
};

template <class Policy, bool has_rows, class Order, class Value, class Result, class Index>
struct RadixPass {
  static constexpr int items = Policy::items;
  static constexpr int threads = Policy::block_threads;
  static constexpr int warps = threads / warp_threads;
  static constexpr int tile_items = threads * items;
  static constexpr bool has_values = !is_same<Value, NoValue>;
  static constexpr bool joins = has_values && Policy::joins;
  static constexpr bool values_follow = has_values && Policy::values_follow;
  using Key = typename Order::Key;
  static_assert(!joins || (sizeof(Key) == sizeof(Value) && !values_follow));
  using Pair = detail::Joined<Key, Value>;
  using Moved = detail::MovedBy<joins, Key, Value>;  // from its loading to its place in the tile
  using Rank = Ranking<warps>;
  using Positions = detail::PackedNumbers<items, 16>;  // in the tile
  using Digits = detail::PackedNumbers<items, digit_bits>;
  static_assert(tile_items <= 1 << 16);
  // The thread that takes tiles: of a warp that has no digits to look back for, if there is one.
  static constexpr int fetcher = threads - warp_threads;

  struct Shared {
    RankTables<warps> tables;
    // Where the digit's keys go, less their position in the tile: the low and high words.
    uint32 targets[sizeof(Index) / 4][num_digits];
    detail::MovedItems<Key, Value, tile_items, joins, values_follow> moved;
    RankSums sums;
    uint32 next_tile;
  };
  static_assert(sizeof(Shared) <= Policy::shared_bytes);
  struct Tile {
    uint32 index, part;  // of all, of its row
    int64 row_begin;
    int count;

    __device__ int64 begin() const { return int64(part) * tile_items; }
  };

  const RadixPassParams<Index>& params;
  Shared& shared;
  TileRing ring;
  Rank ranking;
  DigitTable counters, targets;
  uint32 action;
  const Key* input_keys;
  const Value* input_values;
  Key* output_keys;  // null: not wanted
  Value* output_values;
  bool reads_joined, writes_joined;
  Moved keys[items];  // of the tile at hand, then of the next one

  __device__ RadixPass(const RadixPassParams<Index>& params, Shared& shared, uint32 action)
      : params(params),
        shared(shared),
        ring(params.states, params.tables.control, params.ring),
        ranking(shared.tables, shared.sums),
        counters(ranking.table(params.digit)),
        targets(params.digit, shared.targets[0]),
        action(action) {
    const int side = action & pass_writes_second ? 1 : 0;
    const RadixBuffer& from = action & pass_is_first ? params.input : params.sides[1 - side];
    const RadixBuffer& to = action & pass_is_last ? params.output : params.sides[side];
    input_keys = reinterpret_cast<const Key*>(from.keys);
    input_values = reinterpret_cast<const Value*>(from.values);
    output_keys = reinterpret_cast<Key*>(to.keys);
    output_values = reinterpret_cast<Value*>(to.values);
    reads_joined = joins && side == 1 && !(action & pass_is_first);
    writes_joined = joins && side == 0 && !(action & pass_is_last);
  }

  __device__ static Key key_of(const Moved& moved) {
    if constexpr (joins) {
      return moved.key;
    } else {
      return moved;
    }
  }

  __device__ bool is_tile(uint32 index) const { return index < params.num_tiles; }

  __device__ int64 row_of(uint32 index) const {
    return has_rows ? params.tiles_per_row.divide(index) : 0;
  }
  __device__ Tile tile_at(uint32 index) const {
    const int64 row = row_of(index);
    Tile tile;
    tile.index = index;
    tile.part = index - uint32(row) * uint32(params.tiles_per_row.value);
    tile.row_begin = row * params.row_items;
    const int64 rest = params.row_items - tile.begin();
    tile.count = rest < tile_items ? int(rest) : tile_items;
    return tile;
  }
  __device__ bool is_last_of_row(const Tile& tile) const {
    return tile.part == uint32(params.tiles_per_row.value) - 1;
  }

  // This thread's first key: a warp's keys are neighbours, 32 at a time.
  __device__ int first_item() const {
    return int(threadIdx.x / warp_threads) * (items * warp_threads) + threadIdx.x % warp_threads;
  }

  template <class T>
  __device__ void load(const T* source, const Tile& tile, const T& padding, T (&target)[items]) {
    source += tile.row_begin + tile.begin() + first_item();
    if (tile.count == tile_items) {
#pragma unroll
      for (int i = 0; i < items; ++i) target[i] = source[i * warp_threads];
    } else {
      const int count = tile.count - first_item();
#pragma unroll
      for (int i = 0; i < items; ++i) {
        target[i] = padding;
        if (i * warp_threads < count) target[i] = source[i * warp_threads];
      }
    }
  }
  __device__ void load_keys(uint32 index) {
    if (is_tile(index)) {
      const Tile tile = tile_at(index);
      if constexpr (!joins) {
        load(input_keys, tile, Key(params.padding), keys);
      } else if (reads_joined) {
        const Pair padding{Key(params.padding), Value{}};
        load(reinterpret_cast<const Pair*>(input_keys), tile, padding, keys);
      } else {
        load_apart(tile);
      }
    } else {  // lest the compiler keep the keys of the last tile
#pragma unroll
      for (int i = 0; i < items; ++i) keys[i] = Moved{};
    }
  }
  __device__ void load_apart(const Tile& tile) {
    Key apart[items];
    Value values[items];
    load(input_keys, tile, Key(params.padding), apart);
    load_values(tile, values);
#pragma unroll
    for (int i = 0; i < items; ++i) keys[i] = Moved{apart[i], values[i]};
  }
  __device__ bool makes_values() const { return params.makes_values && action & pass_is_first; }
  __device__ void load_values(const Tile& tile, Value (&values)[items]) {
    if constexpr (has_values) {
      if (!makes_values()) {
        load(input_values, tile, Value{}, values);
      } else if constexpr (is_same<Value, uint32> || is_same<Value, uint64>) {
#pragma unroll
        for (int i = 0; i < items; ++i) {
          values[i] = Value(tile.begin() + first_item() + i * warp_threads);
        }
      }
    }
  }
  __device__ void set_target(int digit, Index target) {
    shared.targets[0][digit] = uint32(target);
    if constexpr (sizeof(Index) == 8) shared.targets[1][digit] = uint32(target >> 32);
  }
  __device__ Index target_at(uint32 address) const {
    Index target = DigitTable::word(address);
    if constexpr (sizeof(Index) == 8) {
      target |= Index(DigitTable::word(address + sizeof(shared.targets[0]))) << 32;
    }
    return target;
  }

  // Brings what is loaded of a tile at once to L2; called by one thread.
  __device__ void prefetch_keys(uint32 index) const {
    if constexpr (Policy::prefetches) {
      if (!is_tile(index)) return;
      const Tile tile = tile_at(index);
      const int64 begin = tile.row_begin + tile.begin();
      if constexpr (joins) {
        if (reads_joined) {
          prefetch(reinterpret_cast<const Pair*>(input_keys) + begin, tile.count);
          return;
        }
        if (!makes_values()) prefetch(input_values + begin, tile.count);
      }
      prefetch(input_keys + begin, tile.count);
    }
  }
  // As whole words of 16 bytes.
  template <class T>
  __device__ static void prefetch(const T* source, int count) {
    const uint64 begin = reinterpret_cast<uint64>(source), end = begin + count * sizeof(T);
    const uint64 first = (begin + 15) / 16 * 16, last = end / 16 * 16;
    if (first >= last) return;
    ptx::cp_async_bulk_prefetch_l2(reinterpret_cast<const void*>(first), uint32(last - first));
  }

  // Publishes the tile's counts and begins to make the counters ready for ranking.
  __device__ uint32 count_tile(const Tile& tile, uint32 (&counts)[Rank::digits],
                               Index (&before)[Rank::digits]) {
    ranking.totals(counts);
#pragma unroll
    for (int i = 0; i < Rank::digits; ++i) {
      const int digit = ranking.first_digit() + i;
      if (tile.part == 0) {
        before[i] =
            params.tables
                .starts[(row_of(tile.index) * params.num_passes + params.pass_index) * num_digits +
                        digit];
        if (!is_last_of_row(tile))
          ring.publish(tile.index, digit, Index(before[i] + counts[i]), prefix);
      } else if (!is_last_of_row(tile)) {
        ring.publish(tile.index, digit, Index(counts[i]), aggregate);
      }
    }
    return ranking.sum_up(counts);
  }

  // Finds where the tile's digits go.
  __device__ void place_tile(const Tile& tile, const uint32 (&counts)[Rank::digits],
                             const uint32 (&starts)[Rank::digits], Index (&before)[Rank::digits]) {
#pragma unroll
    for (int i = 0; i < Rank::digits; ++i) {
      const int digit = ranking.first_digit() + i;
      if (tile.part > 0) {
        before[i] = ring.template look_back<Policy::window, Index>(tile.index, tile.part, digit);
        if (!is_last_of_row(tile))
          ring.publish(tile.index, digit, Index(before[i] + counts[i]), prefix);
      }
      set_target(digit, before[i] - starts[i]);
    }
  }

  // The place of the tile's item at `position`.
  template <bool is_full>
  __device__ bool is_item(const Tile& tile, int position) const {
    return is_full || position < tile.count;
  }
  // How many items of so many bytes a thread has under way while it writes them.
  __device__ static constexpr int write_batch(int bytes) {
    return bytes > 8 ? 2 : bytes > 4 || threads > 512 ? 4 : 8;
  }
  __device__ static int slot(int i) { return i * threads + int(threadIdx.x); }

  __device__ void write_value(Value* to_values, Result* to_results, Index target,
                              const Value& value) const {
    if constexpr (is_same<Value, Result>) {
      to_values[target] = value;
    } else if (action & pass_is_last) {
      to_results[target] = Result(value);
    } else {
      to_values[target] = value;
    }
  }

  // Writes keys and values that are joined, apart or as they are.
  template <bool is_full, bool apart>
  __device__ void write_joined(const Tile& tile) const {
    Pair* const to_pairs =
        ptx::opaque_global(reinterpret_cast<Pair*>(output_keys) + tile.row_begin);
    Key* const to_keys = ptx::opaque_global(output_keys + tile.row_begin);
    Value* const to_values = ptx::opaque_global(output_values + tile.row_begin);
    Result* const to_results =
        ptx::opaque_global(reinterpret_cast<Result*>(output_values) + tile.row_begin);
    constexpr int batch = write_batch(sizeof(Pair));
#pragma unroll
    for (int first = 0; first < items; first += batch) {
      Moved sorted[batch];
      Index to[batch];
#pragma unroll
      for (int k = 0; k < batch && first + k < items; ++k) {
        sorted[k] = shared.moved.keys[slot(first + k)];
      }
#pragma unroll
      for (int k = 0; k < batch && first + k < items; ++k) {
        const uint32 address = targets.address(Order::ordered(key_of(sorted[k])));
        to[k] = target_at(address) + slot(first + k);
      }
#pragma unroll
      for (int k = 0; k < batch && first + k < items; ++k) {
        if (!is_item<is_full>(tile, slot(first + k))) break;
        if constexpr (apart) {
          if (output_keys) to_keys[to[k]] = sorted[k].key;
          write_value(to_values, to_results, to[k], sorted[k].value);
        } else {
          to_pairs[to[k]] = sorted[k];
        }
      }
    }
  }

  // Writes keys, and values that lie beside them; else says which digits the keys had.
  template <bool is_full>
  __device__ void write_keys(const Tile& tile, Digits& digits) {
    Key* const to_keys = ptx::opaque_global(output_keys + tile.row_begin);
    Value* const to_values = ptx::opaque_global(output_values + tile.row_begin);
    Result* const to_results =
        ptx::opaque_global(reinterpret_cast<Result*>(output_values) + tile.row_begin);
    // A few at a time: the next loads from shared memory wait for stores to global memory.
    constexpr int batch = write_batch(sizeof(Key) + sizeof(Value));
#pragma unroll
    for (int first = 0; first < items; first += batch) {
      Key sorted[batch];
      Index to[batch];
#pragma unroll
      for (int k = 0; k < batch && first + k < items; ++k) {
        sorted[k] = shared.moved.keys[slot(first + k)];
      }
#pragma unroll
      for (int k = 0; k < batch && first + k < items; ++k) {
        const uint32 address = targets.address(Order::ordered(sorted[k]));
        if constexpr (values_follow) {
          digits.append(first + k, address / sizeof(uint32) % num_digits);
        }
        to[k] = target_at(address) + slot(first + k);
      }
      Value values[batch];
      if constexpr (has_values && !values_follow) {
#pragma unroll
        for (int k = 0; k < batch && first + k < items; ++k) {
          values[k] = shared.moved.values[slot(first + k)];
        }
      }
#pragma unroll
      for (int k = 0; k < batch && first + k < items; ++k) {
        if (!is_item<is_full>(tile, slot(first + k))) break;
        if (!has_values || output_keys) to_keys[to[k]] = sorted[k];
        if constexpr (has_values && !values_follow) {
          write_value(to_values, to_results, to[k], values[k]);
        }
      }
    }
  }

  // Writes values that lie where the keys were.
  template <bool is_full>
  __device__ void write_values(const Tile& tile, const Digits& digits) {
    Value* const to_values = ptx::opaque_global(output_values + tile.row_begin);
    Result* const to_results =
        ptx::opaque_global(reinterpret_cast<Result*>(output_values) + tile.row_begin);
    const uint32 table = ptx::cvta_to_shared(shared.targets[0]);
    constexpr int batch = write_batch(sizeof(Value));
#pragma unroll
    for (int first = 0; first < items; first += batch) {
      Value values[batch];
      Index to[batch];
#pragma unroll
      for (int k = 0; k < batch && first + k < items; ++k) {
        values[k] = shared.moved.values[slot(first + k)];
      }
#pragma unroll
      for (int k = 0; k < batch && first + k < items; ++k) {
        to[k] = target_at(table + digits[first + k] * sizeof(uint32)) + slot(first + k);
      }
#pragma unroll
      for (int k = 0; k < batch && first + k < items; ++k) {
        if (!is_item<is_full>(tile, slot(first + k))) break;
        write_value(to_values, to_results, to[k], values[k]);
      }
    }
  }

  // Writes a tile that lies in order, and loads the keys of the next one.
  template <bool is_full>
  __device__ void write(const Tile& tile, uint32 next, const Positions& positions) {
    Digits digits;
    if constexpr (values_follow) {
      Value values[items];
      load_values(tile, values);
      write_keys<is_full>(tile, digits);
      ptx::syncthreads();
#pragma unroll
      for (int i = 0; i < items; ++i) shared.moved.values[positions[i]] = values[i];
      ptx::syncthreads();
      load_keys(next);
      write_values<is_full>(tile, digits);
    } else if constexpr (joins) {
      load_keys(next);
      if (writes_joined) {
        write_joined<is_full, false>(tile);
      } else {
        write_joined<is_full, true>(tile);
      }
    } else {
      load_keys(next);
      write_keys<is_full>(tile, digits);
    }
  }

  // The counter of a key's digit in the warp's table.
  __device__ uint32 address_of(const Moved& moved) const {
    return counters.address(Order::ordered(key_of(moved)));
  }

  // Sorts a tile whose keys are loaded; returns the next one, whose keys are then under way.
  __device__ uint32 sort_tile(const Tile& tile) {
#pragma unroll
    for (int i = 0; i < items; ++i) ranking.count(address_of(keys[i]));
    Value values[values_follow || joins ? 1 : items];
    if constexpr (!values_follow && !joins) load_values(tile, values);
    if (threadIdx.x < warp_threads) ring.wait_for_room(tile.index);
    uint32 next = 0;
    if (threadIdx.x == fetcher) next = ring.states.take();
    ptx::syncthreads();
    uint32 counts[Rank::digits], starts[Rank::digits], sum = 0;
    Index before[Rank::digits];
    if (ranking.has_digits()) sum = count_tile(tile, counts, before);
    ptx::syncthreads();
    if (ranking.has_digits()) ranking.place(counts, sum, starts);
    ptx::syncthreads();
    if (ranking.has_digits()) place_tile(tile, counts, starts, before);
    if (threadIdx.x == fetcher) prefetch_keys(next);
    Positions positions;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      const uint32 position = ranking.rank(address_of(keys[i]));
      shared.moved.keys[position] = keys[i];
      if constexpr (values_follow) {
        positions.append(i, position);
      } else if constexpr (has_values && !joins) {
        shared.moved.values[position] = values[i];
      }
    }
    ranking.clear();
    if (threadIdx.x == fetcher) shared.next_tile = next;
    ptx::syncthreads();
    next = shared.next_tile;
    if (threadIdx.x == 0) ring.done(tile.index);
    if (tile.count == tile_items) {
      write<true>(tile, next, positions);
    } else {
      write<false>(tile, next, positions);
    }
    return next;
  }

  __device__ void run() {
    if (threadIdx.x == 0) shared.next_tile = ring.states.take();
    ranking.clear();
    ptx::syncthreads();
    uint32 index = shared.next_tile;
    load_keys(index);
    while (is_tile(index)) index = sort_tile(tile_at(index));
    if (threadIdx.x == 0) finish();
  }

  __device__ void finish() {
    const uint32 laps = uint32((params.num_tiles - 1) >> ring.shift) + 1;
    if (ring.states.finish(params.num_words, laps)) {
      for (int i = 0; i < TileRing::groups; ++i) ring.control->groups_done[i] = 0;
    }
  }
};

// has_rows: there may be more than one.
template <class Policy, bool has_rows, class Order, class Value, class Result, class Index>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks)
    radix_pass_kernel(const __grid_constant__ RadixPassParams<Index> params) {
  using Work = RadixPass<Policy, has_rows, Order, Value, Result, Index>;
  ptx::overlap_both<Policy::overlaps>();
  const uint32 action = params.tables.schedule[params.pass_index];
  if (!(action & pass_runs)) return;
  auto& shared = ptx::dynamic_shared_memory<typename Work::Shared>();
  Work(params, shared, action).run();
}

}  // namespace gpualgo

#endif
