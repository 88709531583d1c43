// A tile of a selection in registers: loaded, marked, and what is kept of it ranked.
#ifndef GPUALGO_SELECT_TILE_CUH
#define GPUALGO_SELECT_TILE_CUH

#include "parts/intrinsics.cuh"
#include "parts/leaves.cuh"
#include "parts/operator.cuh"
#include "parts/tile_io.cuh"
#include "parts/warp.cuh"
#include "select/items.cuh"

namespace gpualgo {

template <int block_threads_, int items_, int rows_, int min_blocks_, int shared_bytes_,
          bool makes_late_, bool has_redux_>
struct SelectPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int items = items_;            // of a lane in each row
  static constexpr int rows = rows_;              // of a warp; eight at most
  static constexpr int min_blocks = min_blocks_;  // per multiprocessor
  static constexpr int shared_bytes = shared_bytes_;
  static constexpr bool has_redux = has_redux_;    // sm_80 and newer
  static constexpr bool makes_late = makes_late_;  // elements, that are not read, as they leave
};

// What is kept: elements for which a predicate is true; or those that their last number marks, of
// which the others are written.
template <class Op>
struct KeepIf {
  using Operator = Op;
  template <class E>
  using Written = E;
  static constexpr bool compares = false;
  static constexpr int marks = 0;  // numbers of an element that are not written
  template <class E>
  __device__ static bool keeps(const E& element) {
    return Op::apply(element);
  }
};
template <class NoOp, class E>
struct KeepMarked {
  using Operator = NoOp;
  template <class>
  using Written = E;
  static constexpr bool compares = false;
  static constexpr int marks = 1;
};
// The first elements of runs: those that are not equal to the one before.
template <class Op>
struct KeepHeads {
  using Operator = Op;
  template <class E>
  using Written = E;
  static constexpr bool compares = true;
  static constexpr int marks = 0;
  template <class E>
  __device__ static bool keeps(const E& before, const E& element) {
    return !Op::apply(before, element);
  }
};

// Equality in the order of values: zeros of both signs are equal, and so are all NaN.
struct SameValue {
  static constexpr bool commutative = true, has_numbers = false;
  template <class E>
  __device__ static bool apply(const E& a, const E& b) {
    bool is_same = true;
    for_each_leaf<E>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      is_same = is_same && same(leaf_of<i>(a), leaf_of<i>(b));
    });
    return is_same;
  }
  template <class N>
  __device__ static bool same(const N& a, const N& b) {
    if constexpr (is_complex<N>) {
      const bool a_is_number = a.real == a.real && a.imag == a.imag;
      const bool b_is_number = b.real == b.real && b.imag == b.imag;
      return a_is_number && b_is_number ? a.real == b.real && a.imag == b.imag
                                        : a_is_number == b_is_number;
    } else if constexpr (is_narrow<N>) {
      return same(widen(a), widen(b));
    } else {
      return a == b || (a != a && b != b);
    }
  }
};

// Neighbours in registers, which narrow ones share.
template <class E, int items>
struct Neighbours {
  static constexpr bool is_narrow =
      num_leaves<E> == 1 && sizeof(E) < 4 && sizeof(E) * items % 4 == 0;
  static constexpr int per_word = is_narrow ? 4 / sizeof(E) : 1;
  Either<is_narrow, uint32, E> held[items / per_word];

  template <class Number>
  __device__ void put(const Pack<Number, items>& from) {
    if constexpr (is_narrow) {
      memcpy(held, &from, sizeof(held));
    } else {
#pragma unroll
      for (int k = 0; k < items; ++k) assign(held[k], from.items[k]);
    }
  }
  __device__ E at(int k) const {
    if constexpr (is_narrow) {
      const uint32 word = held[k / per_word] >> k % per_word * 8 * int(sizeof(E));
      E element;
      memcpy(&element, &word, sizeof(E));
      return element;
    } else {
      return held[k];
    }
  }
};

template <class T, int outputs, class Access>
struct SelectParams {
  Sources<T> input;
  unsigned char* output[outputs];
  int64* num_kept;  // of all: written, or where there is a rest read
  unsigned char* states;
  int64 num_items, num_tiles, num_words;
  int64 capacity;               // of the outputs
  int64 output_steps[outputs];  // bytes
  Access access;
};

// The tiles of a block, each its warps' stretches of rows. `more`: outputs besides an element's
// numbers.
template <class Policy, class Keep, class T, class Access, int more = 0>
struct SelectTiles {
  using E = Held<T>;
  using Kept = typename Keep::template Written<E>;
  static constexpr int items = Policy::items, rows = Policy::rows;
  static constexpr int outputs = num_leaves<E> - Keep::marks;
  static constexpr int warps = Policy::block_threads / warp_threads;
  static constexpr int row_items = warp_threads * items, warp_items = rows * row_items;
  static constexpr int tile_items = warps * warp_items;
  static constexpr int field_bits = row_items < 256 ? 8 : 16;  // of a row's count in a word of all
  static_assert(rows * field_bits <= 64 && rows * items <= 64);
  using Bits = UintFor<rows * items>;
  using Counts = UintFor<rows * field_bits>;
  using Params = SelectParams<T, outputs + more, Access>;

  struct Row {  // a lane's elements of a row
    Neighbours<Kept, items> kept;
    Neighbours<uint8, items> marks;  // those that are read
  };
  struct Tile {
    Row loaded[rows];
    Bits kept;         // one for each element
    Counts before;     // fields: how many of each row earlier lanes keep
    int starts[rows];  // how many earlier rows keep
    int total;         // that the warp keeps
    E earlier;         // in lane 0: what lies before the warp's elements, where they are compared
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

  // Where there are no more elements the last ones stand, and are marked, too, in vain.
  __device__ void load(Tile& held, int64 tile) const {
    const int64 begin = tile * tile_items;
    const int count = count_of(tile);
    if constexpr (Keep::compares) {
      const int64 last = params.num_items - 1, first = begin + start_of(0) - 1;
      const int64 at = first < 0 ? 0 : first < last ? first : last;
      held.earlier = E{};
      if (lane == 0) held.earlier = params.access.template load_one<T>(params.input, at);
    }
    if (count == tile_items) {
#pragma unroll
      for (int row = 0; row < rows; ++row) held.loaded[row] = load_row(begin + start_of(row));
      return;
    }
    // What lies behind the last whole row of a lane.
    const int64 whole = params.num_items / items * items, last = params.num_items - 1;
    Pack<E, items> pack;
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int64 at = whole + k < last ? whole + k : last;
      assign(pack.items[k], params.access.template load_one<T>(params.input, at));
    }
    const Row rest = row_of(pack);
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      const int64 index = begin + start_of(row);
      held.loaded[row] = rest;
      if (index < whole) held.loaded[row] = load_row(index);
    }
  }
  __device__ Row load_row(int64 index) const {
    if constexpr (Keep::marks == 1 && Access::in_one && !is_computed<T>) {
      Row row;
      const auto input = first_of<Kept>(params.input);
      row.kept.put(params.access.template load<Kept, items>(input, index));
      const Sources<uint8> marks{params.input.at[outputs]};
      row.marks.put(params.access.template load<uint8, items>(marks, index));
      return row;
    } else {
      return row_of(params.access.template load<T, items>(params.input, index));
    }
  }
  // Takes elements apart into what is written and their marks.
  __device__ static Row row_of(const Pack<E, items>& pack) {
    Row row;
    if constexpr (Keep::marks == 0) {
      row.kept.put(pack);
    } else {
      Pack<Kept, items> kept;
      Pack<uint8, items> marks;
#pragma unroll
      for (int k = 0; k < items; ++k) {
        for_each_leaf<Kept>([&](auto leaf) {
          constexpr int i = decltype(leaf)::value;
          leaf_of<i>(kept.items[k]) = leaf_of<i>(pack.items[k]);
        });
        marks.items[k] = leaf_of<outputs>(pack.items[k]) != 0;
      }
      row.kept.put(kept);
      row.marks.put(marks);
    }
    return row;
  }

  // Asks which elements are kept, and ranks them among the warp's.
  __device__ void mark(Tile& held, int64 tile) const {
    const int count = count_of(tile);
    held.kept = 0;
    Counts own = 0;
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      uint32 bits = 0;
      if constexpr (Keep::marks == 1) {
        bits = set_marks(held.loaded[row].marks);
      } else {
        E before = held.loaded[row].kept.at(0);
        if constexpr (Keep::compares) before = before_row(held, row);
#pragma unroll
        for (int k = 0; k < items; ++k) {
          const E element = held.loaded[row].kept.at(k);
          if (is_kept(before, element)) bits |= 1u << k;
          if constexpr (Keep::compares) before = element;
        }
      }
      if (Keep::compares && row == 0 && tile == 0 && threadIdx.x == 0) bits |= 1;
      if (count < tile_items) bits &= first_bits(count - start_of(row));
      held.kept |= Bits(bits) << row * items;
      own |= Counts(ptx::popc(bits)) << row * field_bits;
    }
    const Counts sums = sum_up_to(own);
    held.before = sums - own;
    const Counts totals = shuffle(sums, warp_threads - 1);
    held.total = 0;
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      held.starts[row] = held.total;
      held.total += field(totals, row);
    }
  }
  // A word whose first bits are set, of those of a lane's elements in a row.
  __device__ static uint32 first_bits(int count) {
    return count <= 0 ? 0 : count >= items ? ~0u : (1u << count) - 1;
  }
  // A bit for each mark that is not zero.
  __device__ static uint32 set_marks(const Neighbours<uint8, items>& marks) {
    uint32 bits = 0;
    if constexpr (items % 4 == 0) {
#pragma unroll
      for (int i = 0; i < items / 4; ++i) {
        const uint32 word = marks.held[i], low = 0x7f7f7f7f;
        const uint32 highest = ((word & low) + low | word) & ~low;  // bit of each byte
        bits |= highest * 0x00204081 >> 28 << 4 * i;                // side by side
      }
    } else {
#pragma unroll
      for (int k = 0; k < items; ++k) bits |= uint32(marks.at(k) != 0) << k;
    }
    return bits;
  }
  // The element before a lane's first one of a row.
  __device__ E before_row(const Tile& held, int row) const {
    const E of_lane = shuffle_up(held.loaded[row].kept.at(items - 1), 1);
    if (row == 0) return lane == 0 ? held.earlier : of_lane;
    const E of_row = shuffle(held.loaded[row - (row > 0)].kept.at(items - 1), warp_threads - 1);
    return lane == 0 ? of_row : of_lane;
  }
  __device__ static bool is_kept(const E& before, const E& element) {
    if constexpr (Keep::compares) {
      return Keep::keeps(before, element);
    } else {
      return Keep::keeps(element);
    }
  }
  __device__ static int field(Counts word, int row) {
    return int(word >> row * field_bits) & ((1 << field_bits) - 1);
  }
};

}  // namespace gpualgo

#endif
