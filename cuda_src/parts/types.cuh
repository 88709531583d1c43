// Element types. No CUDA or C++ library headers: parsing them would cost a new operator more than
// its own compilation.
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

// An element of several numbers, one after another, each at a multiple of its size.
template <class... T>
struct Tuple;
template <class A>
struct Tuple<A> {
  A v0;
};
template <class A, class B>
struct Tuple<A, B> {
  A v0;
  B v1;
};
template <class A, class B, class C>
struct Tuple<A, B, C> {
  A v0;
  B v1;
  C v2;
};
template <class A, class B, class C, class D>
struct Tuple<A, B, C, D> {
  A v0;
  B v1;
  C v2;
  D v3;
};
template <class A, class B, class C, class D, class E>
struct Tuple<A, B, C, D, E> {
  A v0;
  B v1;
  C v2;
  D v3;
  E v4;
};
template <class A, class B, class C, class D, class E, class F>
struct Tuple<A, B, C, D, E, F> {
  A v0;
  B v1;
  C v2;
  D v3;
  E v4;
  F v5;
};
template <class A, class B, class C, class D, class E, class F, class G>
struct Tuple<A, B, C, D, E, F, G> {
  A v0;
  B v1;
  C v2;
  D v3;
  E v4;
  F v5;
  G v6;
};
template <class A, class B, class C, class D, class E, class F, class G, class H>
struct Tuple<A, B, C, D, E, F, G, H> {
  A v0;
  B v1;
  C v2;
  D v3;
  E v4;
  F v5;
  G v6;
  H v7;
};

// Where an element stands, of inputs that are counted and not read. It lies nowhere: an address is
// what it is, and of the elements that are loaded at once each is `step` further. Where they are in
// blocks, the first of so many is a multiple of their number, as what is read is.
template <int step, bool in_blocks = false>
struct Ordinal {
  int64 index;
};

namespace detail {

template <bool is_first, class First, class Second>
struct Choice {
  using type = First;
};
template <class First, class Second>
struct Choice<false, First, Second> {
  using type = Second;
};

}  // namespace detail

// The first of two types where something holds, else the second.
template <bool is_first, class First, class Second>
using Either = typename detail::Choice<is_first, First, Second>::type;

// A word of so many bits at least, 64 at most.
template <int bits>
using UintFor = Either<(bits > 32), uint64, uint32>;

template <class A, class B>
inline constexpr bool is_same = false;
template <class A>
inline constexpr bool is_same<A, A> = true;

template <class T>
inline constexpr bool is_complex = false;
template <class Real>
inline constexpr bool is_complex<Complex<Real>> = true;

template <class T>
inline constexpr bool is_ordinal = false;
template <int step, bool in_blocks>
inline constexpr bool is_ordinal<Ordinal<step, in_blocks>> = true;
template <class T>
inline constexpr bool is_in_blocks = false;
template <int step>
inline constexpr bool is_in_blocks<Ordinal<step, true>> = true;

// An element that a function makes of the numbers that are read (parts/leaves.cuh).
template <class Result, class... Numbers>
struct Computed;

// A record that lies in one piece in memory: its numbers `offsets` bytes behind the first byte of
// `size`, in any order, perhaps with gaps (parts/leaves.cuh). The last byte belongs to a number.
template <class Record, int size, int... offsets>
struct Interleaved;

// 16-bit floats: computed in float, rounded to nearest even (parts/convert.cuh).
template <class T>
inline constexpr bool is_narrow = is_same<T, float16> || is_same<T, bfloat16>;

}  // namespace gpualgo

#endif
