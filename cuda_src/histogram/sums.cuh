// Exact sums: what is added to a bin is an integer, at a place of a long integer.
//
// A float is m * 2^place, in units of the least float of its type. A sum of any number of them is
// an integer of as many bits as the type reaches, with room above for carries: it does not depend
// on the order of additions, and is rounded once. Complex numbers have two sums, integers one of 64
// bits, which wraps.
//
// A sum is kept in words of two's complement whose values are added, each times its 2^(bits *
// word), so that an addition changes the one or two words where m lies. Each word is a signed
// integer of its own: an atomic addition that leaves its range, as the value that it returns tells,
// has put in 2^bits too little or too much, which its thread makes good in the word above. So a
// carry goes on only where a word overflows, and one that is as wide as m hardly ever does.
// Superaccumulators: Kulisch 2011, doi:10.1007/s00607-010-0131-y; in two levels on GPUs: Collange,
// Defour, Graillat and Iakymchuk 2015, doi:10.1016/j.parco.2015.09.001.
#ifndef GPUALGO_HISTOGRAM_SUMS_CUH
#define GPUALGO_HISTOGRAM_SUMS_CUH

#include "parts/convert.cuh"
#include "parts/ptx.cuh"
#include "parts/tile_io.cuh"

namespace gpualgo {

// Of what is not finite in a bin.
enum SumKinds : uint32 { sum_is_nan = 1, sum_is_positive = 2, sum_is_negative = 4 };

// An addend: m * 2^place, or what it is instead.
struct Addend {
  int64 m;
  int32 place;
  uint32 kinds;
};

// How numbers of a type are added up; words of 64 bits (sums.py).
template <class A>
struct SumFormat {
  static constexpr bool is_float = false;
  static constexpr int words = 1;

  __device__ static Addend split(const A& x) { return {int64(x), 0, 0}; }
};

template <class Bits, int mantissa_, int exponent_, int words_>
struct FloatFormat {
  static constexpr bool is_float = true;
  static constexpr int mantissa = mantissa_, exponent = exponent_, words = words_;
  static constexpr int special = (1 << exponent) - 1;
  static constexpr int sign = mantissa + exponent;
  static constexpr int digit_of_one = (special / 2 - 1 + mantissa) / 32;  // of 32 bits

  __device__ static Addend split_bits(Bits bits) {
    const uint64 stored = uint64(bits) & ((uint64(1) << mantissa) - 1);
    const int32 power = int32(bits >> mantissa) & special;
    const bool is_negative = bits >> sign & 1;
    if (power == special) {
      return {0, 0, stored ? sum_is_nan : is_negative ? sum_is_negative : sum_is_positive};
    }
    const int64 m = int64(power ? stored | uint64(1) << mantissa : stored);
    return {is_negative ? -m : m, power ? power - 1 : 0, 0};
  }
};

template <>
struct SumFormat<float16> : FloatFormat<uint16, 10, 5, 2> {
  __device__ static Addend split(float16 x) { return split_bits(x.bits); }
};
template <>
struct SumFormat<bfloat16> : FloatFormat<uint16, 7, 8, 5> {
  __device__ static Addend split(bfloat16 x) { return split_bits(x.bits); }
};
template <>
struct SumFormat<float> : FloatFormat<uint32, 23, 8, 5> {
  __device__ static Addend split(float x) { return split_bits(bit_cast<uint32>(x)); }
};
template <>
struct SumFormat<double> : FloatFormat<uint64, 52, 11, 34> {
  __device__ static Addend split(double x) { return split_bits(bit_cast<uint64>(x)); }
};

// The numbers of a weight: a complex one has two.
template <class A>
struct SumParts {
  using Number = A;
  static constexpr int count = 1;
  __device__ static const A& part(const A& x, int) { return x; }
};
template <class Real>
struct SumParts<Complex<Real>> {
  using Number = Real;
  static constexpr int count = 2;
  __device__ static Real part(const Complex<Real>& x, int i) { return i ? x.imag : x.real; }
};

// --- sums in global memory --------------------------------------------------------------------

// Planes of 64-bit words: [part][word][slot], the last word of a part its kinds.
template <class A>
struct JointSums {
  using Format = SumFormat<typename SumParts<A>::Number>;
  static constexpr int words = Format::words;
  static constexpr int planes = words + Format::is_float;

  uint64* sums;
  int64 num_slots;  // of all blocks
  int64 first;      // the block's first one

  __device__ uint64* word(int part, int i, int64 slot) const {
    return sums + ((part * planes + i) * num_slots + first + slot);
  }

  // Adds m * 2^place; `reached` gets a bit for each plane that changes.
  __device__ void add(int part, int64 slot, int64 m, int32 place, uint64& reached) const {
    const int shift = place % 64;
    const int64 low = int64(uint64(m) << shift);
    const int64 high = (m >> 1 >> (63 - shift)) + (low < 0);
    if (low != 0) add_word(part, place / 64, slot, low, reached);
    if (high != 0) add_word(part, place / 64 + 1, slot, high, reached);
  }

  __device__ void add_word(int part, int i, int64 slot, int64 value, uint64& reached) const {
    while (i < words) {
      reached |= uint64(1) << i;
      const uint64 before = ptx::atom_add_relaxed_gpu(word(part, i, slot), uint64(value));
      const uint64 after = before + uint64(value);
      if (int64((before ^ after) & (uint64(value) ^ after)) >= 0) return;
      value = value < 0 ? -1 : 1;
      ++i;
    }
  }

  __device__ void mark(int part, int64 slot, uint32 kinds, uint64& reached) const {
    reached |= uint64(1) << words;
    ptx::atom_or_relaxed_gpu(reinterpret_cast<uint32*>(word(part, words, slot)), kinds);
  }
};

// --- sums in shared memory --------------------------------------------------------------------

// Digits of 32 bits, as additions of 64 bits to shared memory are loops: [part][digit][slot], each
// slot `replicas` times side by side. A block has a window of a few digits, where some of its
// weights lie; what lies outside goes to the joint sums at once. Where it lies does not change a
// sum.
template <class A>
struct SharedSums {
  using Parts = SumParts<A>;
  using Format = SumFormat<typename Parts::Number>;

  JointSums<A> joint;
  uint32* digits;  // of this thread's replica
  uint32 num_slots, replicas;
  int32 first_digit, num_digits;  // the window; none: all goes to the joint sums
  uint64 reached;

  __device__ uint32* digit(int part, int i, uint32 slot) const {
    return digits + ((part * num_digits + i) * num_slots + slot) * replicas;
  }

  __device__ void add(uint32 slot, const A& weight) {
#pragma unroll
    for (int part = 0; part < Parts::count; ++part) {
      const Addend addend = Format::split(Parts::part(weight, part));
      if (addend.kinds) {
        if constexpr (Format::is_float) joint.mark(part, slot, addend.kinds, reached);
      } else if (num_digits == 0) {
        joint.add(part, slot, addend.m, addend.place, reached);
      } else {
        add_digits(part, slot, addend);
      }
    }
  }

  __device__ void add_digits(int part, uint32 slot, const Addend& addend) {
    const int at = addend.place / 32, shift = addend.place % 32;
    int64 rest;
    if constexpr (!Format::is_float) {
      const int32 low = int32(addend.m);
      add_digit(part, at, slot, low);
      rest = int64(uint64(addend.m) - uint64(int64(low))) >> 32;
    } else if constexpr (Format::words < 34) {  // 55 bits at most
      const int64 whole = int64(uint64(addend.m) << shift);
      const int32 low = int32(whole);
      add_digit(part, at, slot, low);
      rest = (whole - low) >> 32;
    } else {
      const uint64 lower = (uint64(addend.m) & 0xffffffffu) << shift;
      const int64 upper = int64(uint64(addend.m >> 32) << shift);
      const int32 low = int32(lower);
      add_digit(part, at, slot, low);
      const int64 middle = ((int64(lower) - low) >> 32) + upper;
      const int32 next = int32(middle);
      add_digit(part, at + 1, slot, next);
      add_digit(part, at + 2, slot, int32((middle - next) >> 32));
      return;
    }
    add_digit(part, at + 1, slot, int32(rest));
  }

  __device__ void add_digit(int part, int at, uint32 slot, int32 value) {
    int32 i = at - first_digit;
    if (value == 0) return;
    while (uint32(i) < uint32(num_digits)) {
      const uint32 before = ptx::atom_add_relaxed_cta(digit(part, i, slot), uint32(value));
      const uint32 after = before + uint32(value);
      if (int32((before ^ after) & (uint32(value) ^ after)) >= 0) return;
      value = value < 0 ? -1 : 1;
      ++i;
    }
    if (first_digit + i < 2 * Format::words) {
      joint.add(part, slot, value, (first_digit + i) * 32, reached);
    }
  }

  // Adds the block's sums to the joint ones; all threads call it, after a barrier.
  __device__ void flush(const uint32* words) {
    for (uint32 i = threadIdx.x; i < Parts::count * num_digits * num_slots; i += blockDim.x) {
      int64 sum = 0;
      // Neighbouring threads start at different replicas, in different banks.
      const uint32 turn = threadIdx.x % 32 * replicas / 32;
      for (uint32 k = 0; k < replicas; ++k) {
        sum += int32(words[i * replicas + ((k + turn) & (replicas - 1))]);
      }
      const uint32 plane = i / num_slots, slot = i - plane * num_slots;
      const uint32 part = plane / num_digits, own = plane - part * num_digits;
      if (sum != 0) joint.add(part, slot, sum, (first_digit + int32(own)) * 32, reached);
    }
  }
};

// --- rounding ---------------------------------------------------------------------------------

// Takes a sum's words out, low ones first, as digits of 32 bits of its magnitude, and keeps the
// greatest three of them, what lies below, and where they are.
template <class Format>
struct Rounding {
  uint64 upper = 0;      // the greatest digit but zero, and the next
  uint32 lower = 0;      // the one below
  bool is_more = false;  // is there more below that?
  int32 top = -1;

  uint32 one = 0, two = 0;
  bool is_below = false;

  __device__ void append(int32 index, uint32 digit) {
    if (digit != 0) {
      upper = uint64(digit) << 32 | one;
      lower = two;
      is_more = is_below;
      top = index;
    }
    is_below = is_below || two != 0;
    two = one;
    one = digit;
  }

  // The float that is nearest to the sum, ties to even, as bits.
  __device__ uint64 bits(bool is_negative) const {
    if (top < 0) return 0;
    const int zeros = ptx::clz(uint32(upper >> 32));
    const int leading = 32 * top + 31 - zeros;
    const uint64 shifted = uint64(lower) << zeros;
    const uint64 all = upper << zeros | shifted >> 32;
    const bool more = is_more || uint32(shifted) != 0;
    uint64 found;
    if (leading < Format::mantissa) {  // less than the least normal number: a whole one of units
      found = all >> (63 - leading);
    } else {
      found = all >> (63 - Format::mantissa);
      const uint64 rest = all << (Format::mantissa + 1), half = uint64(1) << 63;
      const bool is_up = rest > half || (rest == half && (more || (found & 1)));
      found += (uint64(leading - Format::mantissa) << Format::mantissa) + is_up;
      const uint64 infinity = uint64(Format::special) << Format::mantissa;
      if (found > infinity) found = infinity;
    }
    return found | uint64(is_negative) << Format::sign;
  }
};

}  // namespace gpualgo

#endif
