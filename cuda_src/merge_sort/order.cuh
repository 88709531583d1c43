// What comes first of two elements, and how elements and their values are moved.
#ifndef GPUALGO_MERGE_SORT_ORDER_CUH
#define GPUALGO_MERGE_SORT_ORDER_CUH

#include "parts/leaves.cuh"
#include "parts/operator.cuh"
#include "parts/types.cuh"

namespace gpualgo {

// By a function of two elements, called as less(a, b); with is_turned as less(b, a).
template <class Less, bool is_turned>
struct ByFunction {
  static constexpr bool has_numbers = Less::has_numbers;
  template <class T>
  __device__ static bool before(const T& a, const T& b) {
    if constexpr (is_turned) {
      return Less::apply(b, a);
    } else {
      return Less::apply(a, b);
    }
  }
};

// By value: the first number decides, where it is equal the next. Those whose bit of `falling` is
// set are in falling order; zeros are equal, and NaN comes last in any case.
template <int falling>
struct ByValue {
  static constexpr bool has_numbers = false;

  template <class T>
  __device__ static bool before(const T& a, const T& b) {
    return before_from<0>(a, b);
  }

  template <int i, class T>
  __device__ static bool before_from(const T& a, const T& b) {
    constexpr bool falls = falling >> i & 1;
    const auto x = number(leaf_of<i>(a)), y = number(leaf_of<i>(b));
    const bool is_before = (falls ? x > y : x < y) || (y != y && x == x);
    if constexpr (i + 1 == num_leaves<T>) {
      return is_before;
    } else {
      const bool is_behind = (falls ? y > x : y < x) || (x != x && y == y);
      return is_before || (!is_behind && before_from<i + 1>(a, b));
    }
  }

  template <class Number>
  __device__ static auto number(const Number& x) {
    if constexpr (is_narrow<Number>) {
      return widen(x);
    } else {
      return x;
    }
  }
};

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

// Where the leaves of elements lie, from what a kernel is given.
template <class T, int count>
__device__ inline Sources<T> sources_of(const unsigned char* const (&at)[count]) {
  Sources<T> result;
  for_each_leaf<T>([&](auto leaf) { result.at[leaf.value] = at[leaf.value]; });
  return result;
}
template <class T, int count>
__device__ inline Targets<T> targets_of(unsigned char* const (&at)[count]) {
  Targets<T> result;
  for_each_leaf<T>([&](auto leaf) { result.at[leaf.value] = at[leaf.value]; });
  return result;
}

// Returns one of two, leaf by leaf: a choice between structs would have both in local memory.
template <class T>
__device__ inline Sources<T> either(bool is_first, const Sources<T>& first,
                                    const Sources<T>& second) {
  Sources<T> result;
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

}  // namespace gpualgo

#endif
