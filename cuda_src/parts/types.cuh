// Element types and the conversions between them. No CUDA or C++ library headers: parsing them
// would cost a new operator more than its own compilation.
#ifndef GPUALGO_PARTS_TYPES_CUH
#define GPUALGO_PARTS_TYPES_CUH

namespace gpualgo {

using int8 = signed char;
using int16 = short;
using int32 = int;
using int64 = long long;
using uint8 = unsigned char;
using uint16 = unsigned short;
using uint32 = unsigned int;
using uint64 = unsigned long long;

struct float16 {
  uint16 bits;
};

struct bfloat16 {
  uint16 bits;
};

template <class Real>
struct alignas(2 * sizeof(Real)) Complex {
  Real real, imag;
};
using complex64 = Complex<float>;
using complex128 = Complex<double>;

template <class A, class B>
inline constexpr bool is_same = false;
template <class A>
inline constexpr bool is_same<A, A> = true;

template <class T>
inline constexpr bool is_complex = false;
template <class Real>
inline constexpr bool is_complex<Complex<Real>> = true;

// 16-bit floats: computed in float, rounded to nearest even.
template <class T>
inline constexpr bool is_narrow = is_same<T, float16> || is_same<T, bfloat16>;

__device__ inline float widen(float16 x) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));
  return result;
}

__device__ inline float widen(bfloat16 x) { return __uint_as_float(uint32(x.bits) << 16); }

template <class T>
__device__ T narrow(float x);

template <>
__device__ inline float16 narrow<float16>(float x) {
  float16 result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
}

// By hand: the instruction needs sm_80. A NaN keeps its sign and gets its quiet bit.
template <>
__device__ inline bfloat16 narrow<bfloat16>(float x) {
  uint32 bits = __float_as_uint(x);
  uint32 rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return {uint16((x != x ? bits | 0x00400000u : rounded) >> 16)};
}

// convert<To>(x): NumPy's astype. Complex to real does not occur: the host refuses it.
template <class To, class From>
__device__ inline To convert(const From& x) {
  if constexpr (is_same<To, From>) {
    return x;
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
