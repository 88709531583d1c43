// How elements and their values are moved, and pairs of sorted runs split.
#ifndef GPUALGO_MERGE_SORT_ORDER_CUH
#define GPUALGO_MERGE_SORT_ORDER_CUH

#include "parts/leaves.cuh"
#include "parts/order.cuh"
#include "parts/types.cuh"

namespace gpualgo {

// What keys without values move along.
struct NoValues {};

template <class V>
inline constexpr bool has_values = !is_same<V, NoValues>;

// Returns a number that is the element's position, where values are such.
template <class V>
__device__ inline V position_value(int64 position) {
  if constexpr (is_same<V, uint32> || is_same<V, uint64>) {
    return V(position);
  } else {
    return V{};
  }
}

// Returns one of two, leaf by leaf: a choice between structs would have both in local memory.
template <template <class> class Places, class T>
__device__ inline Places<T> either(bool is_first, const Places<T>& first, const Places<T>& second) {
  Places<T> result;
  for_each_leaf<T>([&](auto leaf) {
    constexpr int i = decltype(leaf)::value;
    result.at[i] = is_first ? first.at[i] : second.at[i];
  });
  return result;
}

template <int block_threads_, int items_, int min_blocks_, int shared_bytes_, bool overlaps_,
          bool is_ahead_ = false, bool finds_cuts_ = false>
struct MergeSortPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int items = items_;  // elements per thread
  static constexpr int tile_items = block_threads_ * items_;
  static constexpr int min_blocks = min_blocks_;  // per multiprocessor; that sort tiles: half
  static constexpr int shared_bytes = shared_bytes_;
  static constexpr bool overlaps = overlaps_;  // launched while the kernel before still runs
  static constexpr bool is_ahead = is_ahead_;  // what is merged next is loaded meanwhile (sm_80)
  static constexpr bool finds_cuts = finds_cuts_;  // blocks do, without a kernel before
};

// Where shared memory has element i of a tile, of which threads have `items` neighbours each. An
// even number is made odd by a gap, so that threads that go through theirs together meet in no
// bank.
template <int items>
__device__ constexpr int slot_of(int i) {
  return items % 2 == 1 ? i : i + int(uint32(i) / items);
}

// Returns how many of the first run are among the first `place` elements of both, where of equal
// ones those of the first run come first. b_is_first(j, i): whether element j of the second run
// comes before element i of the first one. The search is that of "merge path" (Odeh et al. 2012).
template <class Index, class Compare>
__device__ inline Index split_at(Index place, Index num_a, Index num_b, Compare b_is_first) {
  Index low = place > num_b ? place - num_b : 0;
  const Index high = place < num_a ? place : num_a;
  // Of `size` places the answer is in front of one or behind all; a half of them goes at each step.
  for (Index size = high - low; size > 0; size >>= 1) {
    const Index half = (size + 1) >> 1, middle = low + half - 1;
    if (!b_is_first(place - 1 - middle, middle)) low += half;
  }
  return low;
}

// Returns where the elements of a sorted run end that come before another element; is_earlier: as
// well as those that are equal to it. at(i): element i of the run, of which `low` to `high` are
// looked at.
template <class Order, class Index, class T, class At>
__device__ inline Index end_before(Index low, Index high, const T& other, bool is_earlier, At at) {
  while (low < high) {
    const Index middle = (low + high) / 2;
    const T& element = at(middle);
    const bool is_before =
        is_earlier ? !Order::before(other, element) : bool(Order::before(element, other));
    if (is_before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Returns one of two, number by number, as above.
template <class T>
__device__ inline void choose(T& to, bool is_first, const T& first, const T& second) {
  for_each_leaf<T>([&](auto leaf) {
    constexpr int i = decltype(leaf)::value;
    leaf_of<i>(to) = is_first ? leaf_of<i>(first) : leaf_of<i>(second);
  });
}

// Takes a thread's elements of two sorted runs in shared memory, merged: what is left of the first
// from `a` to `end_a`, of the second from `b` to `end_b`, one at least of both. Calls taken(k, i)
// for each, from where it came. No step branches; `keys` has elements where slot says, and as
// many behind all: those behind the last of a run are read, and behind both runs taken. A function
// of the caller's is asked of elements of the runs alone.
template <int items, class Order, class T, class Slot, class Taken>
__device__ inline void merge_steps(const T* keys, Slot slot, int a, int end_a, int b, int end_b,
                                   T (&own)[items], Taken taken) {
  const int both = a + b + 2, last = (b < end_b ? end_b : end_a) - 1;
  const auto key_at = [&](int i) -> const T& {
    return keys[slot(Order::takes_any || i < last ? i : last)];
  };
  T from_a, from_b;  // the next of each run
  assign(from_a, key_at(a));
  assign(from_b, key_at(b));
  ++a;  // behind it
#pragma unroll
  for (int k = 0; k < items; ++k) {
    const int behind = both + k - a;  // the next of b
    const bool takes_b = (behind <= end_b) & ((a > end_a) | Order::before(from_b, from_a));
    const int next = takes_b ? behind : a;
    choose(own[k], takes_b, from_b, from_a);
    taken(k, next - 1);
    if (!takes_b) ++a;
    T key;
    assign(key, key_at(next));
    choose(from_b, takes_b, key, from_b);
    choose(from_a, takes_b, from_a, key);
  }
}

template <int items, class Order, class T, class Taken>
__device__ inline void merge_steps(const T* keys, int a, int end_a, int b, int end_b,
                                   T (&own)[items], Taken taken) {
  merge_steps<items, Order>(
      keys, [](int i) { return slot_of<items>(i); }, a, end_a, b, end_b, own, taken);
}

}  // namespace gpualgo

#endif
