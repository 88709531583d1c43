// Keys of one number, most of which a single comparison orders.
#ifndef GPUALGO_SEGMENTED_SORT_PLAIN_CUH
#define GPUALGO_SEGMENTED_SORT_PLAIN_CUH

#include "parts/order.cuh"
#include "parts/types.cuh"

namespace gpualgo {

// One number, compared as it is: of keys that are no NaN.
template <bool falls>
struct ByPlainNumber {
  static constexpr bool takes_any = true;

  template <class T>
  __device__ static bool before(const T& a, const T& b) {
    const auto x = ByValue<0>::number(a), y = ByValue<0>::number(b);
    return falls ? y < x : x < y;
  }
};

template <class T>
inline constexpr bool is_float = is_same<T, float> || is_same<T, double> || is_narrow<T>;

// Whether a float is NaN, or (with_zeros) a zero that is equal to another of other bits.
template <bool with_zeros, class T>
__device__ inline bool is_odd(const T& number) {
  const auto x = ByValue<0>::number(number);
  if (x != x) return true;
  if constexpr (!with_zeros) {
    return false;
  } else if constexpr (sizeof(x) == 8) {
    return bit_cast<uint64>(x) == uint64(1) << 63;
  } else {
    return bit_cast<uint32>(x) == uint32(1) << 31;
  }
}

}  // namespace gpualgo

#endif
