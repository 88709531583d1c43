// Conversions between element types.
#ifndef GPUALGO_PARTS_CONVERT_CUH
#define GPUALGO_PARTS_CONVERT_CUH

#include "parts/intrinsics.cuh"
#include "parts/leaves.cuh"
#include "parts/types.cuh"

namespace gpualgo {

// The same bits as another type of the same size.
template <class To, class From>
__device__ inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

__device__ inline float widen(float16 x) { return ptx::cvt_f32_f16(x.bits); }

__device__ inline float widen(bfloat16 x) { return bit_cast<float>(uint32(x.bits) << 16); }

template <class T>
__device__ T narrow(float x);

template <>
__device__ inline float16 narrow<float16>(float x) {
  return {ptx::cvt_rn_f16_f32(x)};
}

// By hand: the instruction needs sm_80. A NaN keeps its sign and gets its quiet bit.
template <>
__device__ inline bfloat16 narrow<bfloat16>(float x) {
  uint32 bits = bit_cast<uint32>(x);
  uint32 rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return {uint16((x != x ? bits | 0x00400000u : rounded) >> 16)};
}

// convert<To>(x): NumPy's astype, of a record number by number. Complex to real does not occur: the
// host refuses it.
template <class To, class From>
__device__ inline To convert(const From& x) {
  if constexpr (is_same<To, From>) {
    return x;
  } else if constexpr (is_ordinal<From>) {
    return convert<To>(x.index);
  } else if constexpr (is_record<To>) {
    To result;
    for_each_leaf<To>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      leaf_of<i>(result) = convert<Leaf<To, i>>(leaf_of<i>(x));
    });
    return result;
  } else if constexpr (is_narrow<From>) {
    return convert<To>(widen(x));
  } else if constexpr (is_narrow<To>) {
    return narrow<To>(float(x));
  } else if constexpr (is_complex<To>) {
    using Real = decltype(To{}.real);
    if constexpr (is_complex<From>) {
      return {Real(x.real), Real(x.imag)};
    } else {
      return {Real(x), Real(0)};
    }
  } else {
    return To(x);
  }
}

}  // namespace gpualgo

#endif
