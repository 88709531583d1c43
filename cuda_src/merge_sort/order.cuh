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

template <int block_threads_, int items_, int min_blocks_, int shared_bytes_, bool overlaps_>
struct MergeSortPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int items = items_;  // elements per thread
  static constexpr int tile_items = block_threads_ * items_;
  static constexpr int min_blocks = min_blocks_;  // per multiprocessor; that sort tiles: half
  static constexpr int shared_bytes = shared_bytes_;
  static constexpr bool overlaps = overlaps_;  // launched while the kernel before still runs
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
  Index high = place < num_a ? place : num_a;
  while (low < high) {
    const Index middle = low + (high - low) / 2;
    if (b_is_first(place - 1 - middle, middle)) {
      high = middle;
    } else {
      low = middle + 1;
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
// for each, from where it came. No step branches; behind the last it takes any element again.
// `keys` has elements where slot_of says.
template <int items, class Order, class T, class Taken>
__device__ inline void merge_steps(const T* keys, int a, int end_a, int b, int end_b,
                                   T (&own)[items], Taken taken) {
  const int last = (b < end_b ? end_b : end_a) - 1, behind = a + b + 1;
  T from_a, from_b;  // the next of each run
  assign(from_a, keys[slot_of<items>(a < last ? a : last)]);
  assign(from_b, keys[slot_of<items>(b < last ? b : last)]);
#pragma unroll
  for (int k = 0; k < items; ++k) {
    const bool b_is_first = Order::before(from_b, from_a);
    const bool takes_b = (b < end_b) & ((a >= end_a) | b_is_first);
    choose(own[k], takes_b, from_b, from_a);
    taken(k, takes_b ? b : a);
    if (!takes_b) ++a;
    b = behind + k - a;
    const int next = takes_b ? b : a;
    T key;
    assign(key, keys[slot_of<items>(next < last ? next : last)]);
    choose(from_b, takes_b, key, from_b);
    choose(from_a, takes_b, from_a, key);
  }
}

}  // namespace gpualgo

#endif
