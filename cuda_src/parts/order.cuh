// What comes first of two elements: by a function of the caller's, or by their values.
#ifndef GPUALGO_PARTS_ORDER_CUH
#define GPUALGO_PARTS_ORDER_CUH

#include "parts/convert.cuh"
#include "parts/intrinsics.cuh"
#include "parts/leaves.cuh"
#include "parts/operator.cuh"
#include "parts/types.cuh"

namespace gpualgo {

// By a function of two elements, called as less(a, b); with is_turned as less(b, a).
template <class Less, bool is_turned>
struct ByFunction {
  static constexpr bool has_numbers = Less::has_numbers;
  static constexpr bool takes_any = false;  // what is no element of the caller's, too
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
  static constexpr bool takes_any = true;
  static constexpr int ways = falling;

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

// Whether rank_of gives elements ints that are as they are before one another: one instruction
// compares them, where two float32 of which either may be NaN take three.
template <class Order, class T>
inline constexpr bool has_ranks = false;
template <int falling>
inline constexpr bool has_ranks<ByValue<falling>, float> = true;

template <class Order>
__device__ inline int32 rank_of(float x) {
  // The sum makes every NaN the canonical one, which is last either way, and -0 the same as +0.
  const float canonical = ptx::add_f32(Order::ways & 1 ? -x : x, 0.0f);
  const int32 bits = bit_cast<int32>(canonical);
  return bits ^ (bits >> 31 & 0x7fffffff);
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

}  // namespace gpualgo

#endif
