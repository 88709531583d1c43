// Sorting many short rows in one launch: keys, with values, or to indices; stable.
//
// Algorithm  sort_rows_kernel: a group of warps keeps a row in registers and goes through its
//            digits, the lowest first, putting the row in order in shared memory each time
//            (parts/block_rank.cuh). A row of one warp needs no barrier. sort_small_rows_kernel:
//            the lanes of a warp, or some of them, sort pairs of a key and its position in
//            registers by bitonic merges.
// Bytes      2 (k + v) per key of k bytes with a value of v; launches: one; temporary storage:
//            none. Values are fetched when the order is known.
// In place   safe: a row is read whole before any of it is written.
#ifndef GPUALGO_RADIX_SORT_ROWS_CUH
#define GPUALGO_RADIX_SORT_ROWS_CUH

#include "parts/block_rank.cuh"
#include "parts/intrinsics.cuh"
#include "parts/layout.cuh"
#include "parts/ptx.cuh"
#include "parts/tile_io.cuh"
#include "segmented_sort/registers.cuh"

namespace gpualgo {

template <int warps_, int items_, int rows_per_block_, int min_blocks_, int shared_bytes_>
struct BlockSortPolicy {
  static constexpr int warps = warps_;                    // that share a row
  static constexpr int items = items_;                    // keys per thread
  static constexpr int rows_per_block = rows_per_block_;  // one, unless a row has one warp
  static constexpr int min_blocks = min_blocks_;
  static constexpr int shared_bytes = shared_bytes_;
};

constexpr int max_row_passes = 8;

struct SortRowsParams {
  const unsigned char* keys;
  const unsigned char* values;  // null: positions in the row are wanted
  unsigned char* output_keys;   // null: not wanted
  unsigned char* output_values;
  int64 num_rows, row_items;
  uint64 padding;  // a key that comes after all others
  // Whether its digit is the highest in every pass: then the padding stays behind, and a pass is
  // idle if all keys but the padding agree.
  uint32 is_padding_highest;
  uint32 num_passes;
  Digit digits[max_row_passes];
};

template <class Policy, class Order, class Value>
struct RowSort {
  static constexpr int warps = Policy::warps;
  static constexpr int items = Policy::items;
  static constexpr int capacity = warps * warp_threads * items;
  static constexpr bool has_values = !is_same<Value, NoValue>;
  using Key = typename Order::Key;
  using Rank = Ranking<warps>;
  static_assert(capacity <= 1 << 16);

  struct Shared {
    RankTables<warps> tables;
    alignas(16) Key keys[capacity];
    alignas(16) uint16 indices[has_values ? capacity : 1];
    RankSums sums;
    uint32 idle_pass;  // the last one that would change nothing
  };

  const SortRowsParams& params;
  Shared& shared;
  int64 row_begin;
  Rank ranking;
  Key keys[items];
  uint32 indices[items];

  __device__ RowSort(const SortRowsParams& params, Shared& shared, int64 row)
      : params(params),
        shared(shared),
        row_begin(row * params.row_items),
        ranking(shared.tables, shared.sums) {}

  // Where this thread's i-th key lies: a warp's keys are neighbours, 32 at a time.
  __device__ int place_of(int i) const {
    return ranking.warp * (items * warp_threads) + i * warp_threads + threadIdx.x % warp_threads;
  }

  __device__ void load() {
    const Key* source = reinterpret_cast<const Key*>(params.keys) + row_begin;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      keys[i] = Key(params.padding);
      if (place_of(i) < params.row_items) keys[i] = source[place_of(i)];
      indices[i] = place_of(i);
    }
  }

  __device__ void sort_by(const Digit& digit, uint32 pass) {
    const DigitTable table = ranking.table(digit);
#pragma unroll
    for (int i = 0; i < items; ++i) ranking.count(table.address(Order::ordered(keys[i])));
    Rank::sync();
    uint32 counts[Rank::digits], before = 0;
    if (ranking.has_digits()) {
      ranking.totals(counts);
      before = ranking.sum_up(counts);
    }
    Rank::sync();
    if (ranking.has_digits()) {
      uint32 starts[Rank::digits];
      ranking.place(counts, before, starts);
#pragma unroll
      for (int i = 0; i < Rank::digits; ++i) {
        const bool is_padded =
            !params.is_padding_highest || ranking.first_digit() + i == digit.mask;
        if (counts[i] == (is_padded ? capacity : params.row_items)) shared.idle_pass = pass;
      }
    }
    Rank::sync();
    // Else all keys have the same digit. By a vote, so that the compiler knows that warps stay
    // whole.
    if (ptx::any_sync(all_lanes, shared.idle_pass != pass)) {
#pragma unroll
      for (int i = 0; i < items; ++i) {
        const uint32 position = ranking.rank(table.address(Order::ordered(keys[i])));
        shared.keys[position] = keys[i];
        if constexpr (has_values) shared.indices[position] = uint16(indices[i]);
      }
      Rank::sync();
#pragma unroll
      for (int i = 0; i < items; ++i) {
        keys[i] = shared.keys[place_of(i)];
        if constexpr (has_values) indices[i] = shared.indices[place_of(i)];
      }
    }
    ranking.clear();
    ptx::syncwarp();
  }

  __device__ void write() const {
    if (!has_values || params.output_keys) {
      Key* target = reinterpret_cast<Key*>(params.output_keys) + row_begin;
#pragma unroll
      for (int i = 0; i < items; ++i) {
        if (place_of(i) < params.row_items) target[place_of(i)] = keys[i];
      }
    }
    if constexpr (has_values) {
      Value* target = reinterpret_cast<Value*>(params.output_values) + row_begin;
      Value values[items];
      if (params.values) {
        const Value* source = reinterpret_cast<const Value*>(params.values) + row_begin;
#pragma unroll
        for (int i = 0; i < items; ++i) {
          if (place_of(i) < params.row_items) values[i] = source[indices[i]];
        }
        Rank::sync();  // all are read before any is written, which may be in place
      } else if constexpr (sizeof(Value) == 4 || sizeof(Value) == 8) {
#pragma unroll
        for (int i = 0; i < items; ++i) values[i] = indices[i];
      }
#pragma unroll
      for (int i = 0; i < items; ++i) {
        if (place_of(i) < params.row_items) target[place_of(i)] = values[i];
      }
    }
  }

  __device__ void run() {
    load();
    if (ranking.thread == 0) shared.idle_pass = max_row_passes;
    ranking.clear();
    ptx::syncwarp();
#pragma unroll 1
    for (uint32 pass = 0; pass < params.num_passes; ++pass) sort_by(params.digits[pass], pass);
    write();
  }
};

template <class Policy, class Order, class Value>
__global__ void __launch_bounds__(Policy::warps* Policy::rows_per_block * 32, Policy::min_blocks)
    sort_rows_kernel(const __grid_constant__ SortRowsParams params) {
  using Work = RowSort<Policy, Order, Value>;
  static_assert(Policy::warps == 1 || Policy::rows_per_block == 1);
  struct Shared {
    typename Work::Shared rows[Policy::rows_per_block];
  };
  static_assert(sizeof(Shared) <= Policy::shared_bytes);
  auto& shared = ptx::dynamic_shared_memory<Shared>();
  const int part = Policy::warps == 1 ? threadIdx.x / warp_threads : 0;
  const int64 row = int64(blockIdx.x) * Policy::rows_per_block + part;
  if (row < params.num_rows) Work(params, shared.rows[part], row).run();
}

struct SortSmallRowsParams {
  const unsigned char* keys;
  const unsigned char* values;  // null: positions in the row are wanted
  unsigned char* output_keys;   // null: not wanted
  unsigned char* output_values;
  int64 num_rows, row_items;
  uint64 mask, flip;  // of the bits that decide, once shifted
  int64 shift;
  uint32 first_rank, num_ranks;  // of each row, those that are written
};

template <int block_threads_, int lanes_, int items_>
struct SmallRowsPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int lanes = lanes_;  // that share a row
  static constexpr int items = items_;  // keys of a lane
};

template <class Policy, class Order, class Value>
struct SmallRow {
  using Key = typename Order::Key;
  using Ordered = typename Order::Ordered;
  using Pair = RankedPair<(Order::bits < 16 ? 16 : Order::bits), Ordered>;
  static constexpr int lanes = Policy::lanes, items = Policy::items;
  static constexpr bool has_values = !is_same<Value, NoValue>;
  static_assert(lanes * items <= 256);

  struct Shared {
    Key keys[lanes * items];
    alignas(8) uint8 places[lanes * items];  // of the sorted keys
  };

  const SortSmallRowsParams& params;
  Shared& shared;
  int64 row;
  int lane, length;  // of the row; none if there is no row

  __device__ SmallRow(const SortSmallRowsParams& params, Shared& shared, int64 row)
      : params(params),
        shared(shared),
        row(row),
        lane(threadIdx.x % lanes),
        length(row < params.num_rows ? int(params.row_items) : 0) {}

  __device__ void sort() {
    const Key* source = reinterpret_cast<const Key*>(params.keys) + row * params.row_items;
    Key keys[items];
#pragma unroll
    for (int i = 0; i < items; ++i) {
      const int place = i * lanes + lane;
      keys[i] = Key{};
      if (place < length) keys[i] = source[place];
    }
    typename Pair::type pairs[items];
#pragma unroll
    for (int i = 0; i < items; ++i) {
      const int place = i * lanes + lane;
      shared.keys[place] = keys[i];
      const Ordered shifted = Order::ordered(keys[i]) >> params.shift;
      const Ordered number = (shifted & Ordered(params.mask)) ^ Ordered(params.flip);
      pairs[i] = Pair::of(place < length ? number : ~Ordered(0), place);
    }
    sort_warp<lanes>(pairs);
    Pack<uint8, items> places;
#pragma unroll
    for (int i = 0; i < items; ++i) places.items[i] = uint8(Pair::position(pairs[i]));
    store_pack(shared.places + lane * items, places);
    ptx::syncwarp();
  }

  __device__ void write() const {
    int places[items];
#pragma unroll
    for (int i = 0; i < items; ++i) places[i] = shared.places[i * lanes + lane];
    if (!has_values || params.output_keys) {
#pragma unroll
      for (int i = 0; i < items; ++i) {
        write_at(params.output_keys, i * lanes + lane, shared.keys[places[i]]);
      }
    }
    if constexpr (has_values) {
      Value values[items];
      if (params.values) {
        const Value* source = reinterpret_cast<const Value*>(params.values);
        source += row * params.row_items;
#pragma unroll
        for (int i = 0; i < items; ++i) {
          if (i * lanes + lane < length) values[i] = source[places[i]];
        }
        ptx::syncwarp();  // all are read before any is written, which may be in place
      } else if constexpr (sizeof(Value) == 4 || sizeof(Value) == 8) {
#pragma unroll
        for (int i = 0; i < items; ++i) values[i] = places[i];
      }
#pragma unroll
      for (int i = 0; i < items; ++i) {
        write_at(params.output_values, i * lanes + lane, values[i]);
      }
    }
  }

  // Writes what has a rank, if it is one of those that are wanted.
  template <class T>
  __device__ void write_at(unsigned char* output, int rank, const T& item) const {
    const uint32 place = rank - params.first_rank;
    if (rank >= length || place >= params.num_ranks) return;
    reinterpret_cast<T*>(output)[row * params.num_ranks + place] = item;
  }
};

template <class Policy, class Order, class Value>
__global__ void __launch_bounds__(Policy::block_threads)
    sort_small_rows_kernel(const __grid_constant__ SortSmallRowsParams params) {
  using Work = SmallRow<Policy, Order, Value>;
  constexpr int num_rows = Policy::block_threads / Policy::lanes;
  struct Shared {
    typename Work::Shared rows[num_rows];
  };
  auto& shared = ptx::shared_memory<Shared>();
  const int part = threadIdx.x / Policy::lanes;
  Work work(params, shared.rows[part], int64(blockIdx.x) * num_rows + part);
  work.sort();
  work.write();
}

}  // namespace gpualgo

#endif
