// Keys of a radix sort: words that are moved as they are, and the digits that put them in order.
#ifndef GPUALGO_RADIX_SORT_KEYS_CUH
#define GPUALGO_RADIX_SORT_KEYS_CUH

#include "parts/convert.cuh"
#include "parts/intrinsics.cuh"
#include "parts/ptx.cuh"
#include "parts/types.cuh"

namespace gpualgo {

constexpr int digit_bits = 8;  // at most; a range of bits may end with a narrower digit
constexpr int num_digits = 1 << digit_bits;

// What keys without values move along.
struct NoValue {};

namespace detail {

template <int bytes>
using WordOf = Either<(bytes > 2), UintFor<8 * bytes>, Either<bytes == 2, uint16, uint8>>;

template <class T>
inline constexpr uint64 infinity_bits = 0;
template <>
inline constexpr uint64 infinity_bits<float16> = 0x7c00;
template <>
inline constexpr uint64 infinity_bits<bfloat16> = 0x7f80;
template <>
inline constexpr uint64 infinity_bits<double> = 0x7ff0000000000000;

}  // namespace detail

// Key: the word that holds a T. ordered(key): an unsigned number, the larger the later. Signed
// integers and descending ones need no more than inverted bits, which a Digit sees to.
template <class T>
struct KeyOrder {
  using Key = detail::WordOf<sizeof(T)>;
  using Ordered = detail::WordOf<(sizeof(T) < 4 ? 4 : sizeof(T))>;
  static constexpr int bits = 8 * sizeof(T);

  __device__ static Ordered ordered(Key key) {
    constexpr Ordered infinity = Ordered(detail::infinity_bits<T>);
    if constexpr (is_same<T, float>) {
      // The sum makes every NaN the canonical one, 0x7fffffff, and -0 the same as +0.
      const uint32 canonical = bit_cast<uint32>(ptx::add_f32(bit_cast<float>(key), 0.0f));
      return canonical ^ (uint32(int32(canonical) >> 31) | 0x80000000u);
    } else if constexpr (infinity != 0) {
      // Counted from -inf on, negative NaNs wrap to the top, where all NaNs become the highest
      // number; -0, the one number below +0, is lifted.
      constexpr Ordered all = Ordered(~uint64(0) >> (64 - bits));
      constexpr Ordered sign = Ordered(1) << (bits - 1);
      const Ordered mapped = key & sign ? ~Ordered(key) & all : key | sign;
      const Ordered shifted = (mapped - (~(sign | infinity) & all)) & all;
      const Ordered number = shifted < 2 * infinity + 2 ? shifted : all;
      return number == infinity ? number + 1 : number;
    } else {
      return key;
    }
  }
};

// A float of the opposite sign: in the order of these the largest floats come first, and NaN, which
// is one by any sign, stays last.
template <class T>
struct Opposite {
  detail::WordOf<sizeof(T)> bits;
};

template <class T>
struct KeyOrder<Opposite<T>> : KeyOrder<T> {
  using Key = typename KeyOrder<T>::Key;

  __device__ static auto ordered(Key key) {
    if constexpr (is_same<T, float>) {  // a sum takes the opposite of what it adds for nothing
      return KeyOrder<T>::ordered(bit_cast<Key>(-bit_cast<float>(key)));
    } else {
      return KeyOrder<T>::ordered(Key(key ^ Key(1) << (KeyOrder<T>::bits - 1)));
    }
  }
};

// Numbers side by side in one word, without gaps: the first in the highest of the bits they take.
template <class... T>
struct SideBySide;

namespace detail {

template <class... T>
__device__ constexpr int word_bytes() {
  constexpr int bytes = (int(sizeof(T)) + ...);
  return bytes <= 2 ? bytes : bytes <= 4 ? 4 : 8;
}

// The numbers' orders, side by side as they are.
template <class Ordered, class First, class... Rest>
__device__ Ordered ordered_each(Ordered key) {
  constexpr int below = (0 + ... + int(8 * sizeof(Rest)));
  using Order = KeyOrder<First>;
  const Ordered first = Ordered(Order::ordered(typename Order::Key(key >> below))) << below;
  if constexpr (sizeof...(Rest) == 0) {
    return first;
  } else {
    return first | ordered_each<Ordered, Rest...>(key);
  }
}

}  // namespace detail

template <class... T>
struct KeyOrder<SideBySide<T...>> {
  static constexpr int bytes = detail::word_bytes<T...>();
  using Key = detail::WordOf<bytes>;
  using Ordered = detail::WordOf<(bytes < 4 ? 4 : bytes)>;
  static constexpr int bits = 8 * bytes;

  __device__ static Ordered ordered(Key key) {
    return detail::ordered_each<Ordered, T...>(Ordered(key));
  }
};

// Where a pass finds its digit.
struct Digit {
  uint32 shift, mask;
  uint32 flip;  // the digit's bits that are inverted

  // The digit, not yet flipped, times 2 to the power `scale`.
  template <int scale>
  __device__ uint32 scaled(uint32 ordered) const {
    return ptx::funnelshift_r(ordered, ordered, shift - scale) & (mask << scale);
  }
  template <int scale>
  __device__ uint32 scaled(uint64 ordered) const {
    return (uint32(ordered >> shift) & mask) << scale;
  }
};

// A table in shared memory with a word of 32 bits for each digit. It lies at a multiple of its
// size, so that a key's word is found in two instructions: the ones, which change nothing, keep the
// compiler from taking the base apart and putting it together for each key.
struct DigitTable {
  Digit digit;
  uint32 base;  // its address, flipped

  __device__ DigitTable(const Digit& digit, const uint32* table)
      : digit(digit), base((ptx::cvta_to_shared(table) ^ (digit.flip << 2)) & ptx::opaque_ones()) {}

  template <class Ordered>
  __device__ uint32 address(Ordered ordered) const {
    return digit.scaled<2>(ordered) ^ base;
  }
  __device__ static uint32& word(uint32 address) {
    return *static_cast<uint32*>(ptx::cvta_shared(address));
  }
};

}  // namespace gpualgo

#endif
