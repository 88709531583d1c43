// Operators: the recognised ones as functors, and the caller's own, which arrives at link time.
// An operator has `apply(a, b)` and `commutative`. It is called as older (+) newer, and never on
// an element that is not in the input.
#ifndef GPUALGO_PARTS_OPERATOR_CUH
#define GPUALGO_PARTS_OPERATOR_CUH

#include "parts/convert.cuh"
#include "parts/ptx.cuh"
#include "parts/types.cuh"
#ifdef GPUALGO_WORDS
#include "parts/words.cuh"
#endif

// The caller's operator, compiled from Python (docs/adr/0001). `result` and each of `args` point
// to one element as it lies in memory, `state` to the words of the numbers that it captures, or
// nowhere; after linking the call is inlined and no pointer is left.
extern "C" __device__ void gpualgo_operator(void* result, const void* state,
                                            const void* const* args);

#ifdef GPUALGO_CAPTURES
// Where the operator finds the arrays that it captures: for each its address, extents and strides
// in bytes. Read by the code compiled from Python, written by the host before the first launch.
extern "C" {
__constant__ unsigned long long gpualgo_state[64];
}
#endif

namespace gpualgo {

// The numbers that an operator captures, which may be others at each launch: a part of the
// parameters that each block puts into shared memory, where the operator's code finds them.
struct Numbers {
  static constexpr int count = 16;
  uint64 captured_words[count];
};

__device__ inline Numbers& shared_numbers() { return ptx::shared_memory<Numbers>(); }

// The caller's operator.
template <bool commutative_, bool has_numbers_, class Result, class... Args>
struct UserOperator {
  static constexpr bool commutative = commutative_, has_numbers = has_numbers_;
  __device__ static Result apply(const Args&... args) {
#ifdef GPUALGO_WORDS
    return call_by_words<Result>(args...);
#else
    const void* pointers[] = {&args...};
    Result result;
    gpualgo_operator(&result, has_numbers ? &shared_numbers() : nullptr, pointers);
    return result;
#endif
  }
};

// The function that makes elements (parts/leaves.cuh), called as an operator is.
template <bool has_numbers_, class Result, class... Args>
struct InputFunction {
  static constexpr bool commutative = false, has_numbers = has_numbers_;
  __device__ static Result apply(const Args&... args) {
    const void* pointers[] = {&args...};
    Result result;
    gpualgo_input(&result, nullptr, pointers);
    return result;
  }
};

// Of kernels that combine nothing, by the name `no_operator`: their elements may be computed.
struct NoOperator {
  static constexpr bool commutative = true, has_numbers = false;
};

// A recognised operator on elements whose function reads numbers.
template <class Op>
struct WithNumbers : Op {
  static constexpr bool has_numbers = true;
};

template <class Params>
struct NumberedParams : Numbers, Params {};

template <class Op, class Params, bool = Op::has_numbers>
struct Taken {
  using type = Params;
};
template <class Op, class Params>
struct Taken<Op, Params, true> {
  using type = NumberedParams<Params>;
};

// What a kernel takes whose parameters are Params: with an operator's numbers, if it has any.
template <class Op, class Params>
using ParamsFor = typename Taken<Op, Params>::type;

// Lets the operator read its numbers; all threads of a block call it before they use the operator.
template <class Op, class Params>
__device__ inline void take_numbers(const Params& params) {
  if constexpr (Op::has_numbers) {
    if (threadIdx.x < Numbers::count) {
      shared_numbers().captured_words[threadIdx.x] = params.captured_words[threadIdx.x];
    }
    ptx::syncthreads();
  }
}

// What every recognised operator shares: it commutes, and 16-bit floats are computed in float.
template <class Derived>
struct Recognised {
  static constexpr bool commutative = true, has_numbers = false;
  template <class T>
  __device__ static T apply(const T& a, const T& b) {
    if constexpr (is_narrow<T>) {
      return convert<T>(Derived::compute(widen(a), widen(b)));
    } else {
      return Derived::compute(a, b);
    }
  }
};

struct Add : Recognised<Add> {
  template <class T>
  __device__ static T compute(const T& a, const T& b) {
    if constexpr (is_complex<T>) {
      return {a.real + b.real, a.imag + b.imag};
    } else if constexpr (is_same<T, bool>) {
      return a || b;
    } else {
      return T(a + b);
    }
  }
};

struct Multiply : Recognised<Multiply> {
  template <class T>
  __device__ static T compute(const T& a, const T& b) {
    if constexpr (is_complex<T>) {
      return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
    } else if constexpr (is_same<T, bool>) {
      return a && b;
    } else if constexpr (is_same<T, uint16>) {
      return T(uint32(a) * b);  // as int the product could overflow
    } else {
      return T(a * b);
    }
  }
};

struct BitwiseAnd : Recognised<BitwiseAnd> {
  template <class T>
  __device__ static T compute(const T& a, const T& b) {
    return T(a & b);
  }
};

struct BitwiseOr : Recognised<BitwiseOr> {
  template <class T>
  __device__ static T compute(const T& a, const T& b) {
    return T(a | b);
  }
};

struct BitwiseXor : Recognised<BitwiseXor> {
  template <class T>
  __device__ static T compute(const T& a, const T& b) {
    return T(a ^ b);
  }
};

// A NaN wins from either side, the first of two, as in NumPy.
struct Minimum : Recognised<Minimum> {
  template <class T>
  __device__ static T compute(const T& a, const T& b) {
    return a <= b || a != a ? a : b;
  }
};

struct Maximum : Recognised<Maximum> {
  template <class T>
  __device__ static T compute(const T& a, const T& b) {
    return a >= b || a != a ? a : b;
  }
};

// Of values with their positions: the extreme one, a NaN before all; of equal ones the first.
// `append`: where the newer element is known to lie behind the older one.
template <bool is_maximum>
struct ArgExtreme {
  static constexpr bool commutative = true, has_numbers = false;
  template <class A>
  __device__ static A apply(const A& a, const A& b) {
    const auto newer = computed(b.v0), older = computed(a.v0);
    const bool is_more = newer > older, is_less = newer < older;
    if (is_more != is_less) return is_more == is_maximum ? b : a;
    return is_before(newer, older, b.v1 < a.v1) ? b : a;  // seldom: alike, or a NaN
  }
  template <class A>
  __device__ static A append(const A& a, const A& b) {
    const auto newer = computed(b.v0), older = computed(a.v0);
    const bool is_kept = is_maximum ? newer <= older : newer >= older;
    return is_kept || older != older ? a : b;
  }
  // The same of several, whose positions count in equal steps: of all but one it is not computed.
  template <class A, int items>
  __device__ static A fold_neighbours(const A (&elements)[items]) {
    A result = elements[0];
    int place = 0;
#pragma unroll
    for (int k = 1; k < items; ++k) {
      const auto newer = computed(elements[k].v0), older = computed(result.v0);
      const bool is_kept = is_maximum ? newer <= older : newer >= older;
      if (!is_kept && older == older) {
        result.v0 = elements[k].v0;
        place = k;
      }
    }
    if constexpr (items > 1) result.v1 += place * (elements[1].v1 - elements[0].v1);
    return result;
  }
  template <class T>
  __device__ static auto computed(const T& x) {
    if constexpr (is_narrow<T>) {
      return widen(x);
    } else {
      return x;
    }
  }
  template <class T>
  __device__ static bool is_before(const T& x, const T& y, bool is_first) {
    return x == y ? is_first : x != x && (y == y || is_first);
  }
};
struct ArgMinimum : ArgExtreme<false> {};
struct ArgMaximum : ArgExtreme<true> {};

// Whether an operator has `fold_neighbours`.
template <class Op>
inline constexpr bool folds_neighbours = false;
template <>
inline constexpr bool folds_neighbours<ArgMinimum> = true;
template <>
inline constexpr bool folds_neighbours<ArgMaximum> = true;

namespace detail {

template <class Op, class A>
__device__ inline auto appended(const A& older, const A& newer, int)
    -> decltype(Op::append(older, newer)) {
  return Op::append(older, newer);
}
template <class Op, class A>
__device__ inline A appended(const A& older, const A& newer, long) {
  return Op::apply(older, newer);
}

template <class A>
__device__ const A& some();  // for its type alone

template <class Op, class A>
__device__ constexpr auto can_append(int) -> decltype(Op::append(some<A>(), some<A>()), bool()) {
  return true;
}
template <class Op, class A>
__device__ constexpr bool can_append(long) {
  return false;
}

}  // namespace detail

// Whether an operator has a way of its own for an element that lies behind another.
template <class Op, class A>
constexpr bool has_append = detail::can_append<Op, A>(0);

// older (+) newer, where newer lies behind older in the order of elements.
template <class Op, class A>
__device__ inline A appended(const A& older, const A& newer) {
  return detail::appended<Op>(older, newer, 0);
}

// Of pairs: the least of the first and the greatest of the second.
struct MinimumMaximum {
  static constexpr bool commutative = true, has_numbers = false;
  template <class A>
  __device__ static A apply(const A& a, const A& b) {
    return {Minimum::apply(a.v0, b.v0), Maximum::apply(a.v1, b.v1)};
  }
};

template <class T>
__device__ inline bool truth(const T& x) {
  if constexpr (is_complex<T>) {
    return x.real != 0 || x.imag != 0;
  } else {
    return x != T(0);
  }
}

template <class T>
__device__ inline T from_truth(bool x) {
  if constexpr (is_complex<T>) {
    using Real = decltype(T{}.real);
    return {Real(x), Real(0)};
  } else {
    return T(x);
  }
}

struct LogicalAnd : Recognised<LogicalAnd> {
  template <class T>
  __device__ static T compute(const T& a, const T& b) {
    return from_truth<T>(truth(a) && truth(b));
  }
};

struct LogicalOr : Recognised<LogicalOr> {
  template <class T>
  __device__ static T compute(const T& a, const T& b) {
    return from_truth<T>(truth(a) || truth(b));
  }
};

struct LogicalXor : Recognised<LogicalXor> {
  template <class T>
  __device__ static T compute(const T& a, const T& b) {
    return from_truth<T>(truth(a) != truth(b));
  }
};

}  // namespace gpualgo

#ifdef GPUALGO_NUMBERS
// A word of the numbers, for the code compiled from Python.
extern "C" __device__ unsigned long long gpualgo_number(int i) {
  return gpualgo::shared_numbers().captured_words[i];
}
#endif

#endif
