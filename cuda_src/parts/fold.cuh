// Folding elements that one thread holds, always in order.
#ifndef GPUALGO_PARTS_FOLD_CUH
#define GPUALGO_PARTS_FOLD_CUH

#include "parts/convert.cuh"
#include "parts/intrinsics.cuh"
#include "parts/operator.cuh"
#include "parts/tile_io.cuh"

namespace gpualgo {

// The value to start from.
template <class A>
struct Init {
  alignas(16) unsigned char value[(sizeof(A) + 15) / 16 * 16];
  int64 is_given;
};

template <class Op, class A>
__device__ inline A with_init(const Init<A>& init, const A& total) {
  if (!init.is_given) return total;
  A first;
  memcpy(&first, init.value, sizeof(A));
  return Op::apply(first, total);
}

// Folds neighbours [begin, begin + count) as a tree: short chains, and small rounding errors.
template <class Op, int begin, int count, class A, int size>
__device__ inline A fold(const A (&items)[size]) {
  if constexpr (count == 1) {
    return items[begin];
  } else {
    constexpr int half = count / 2;
    return Op::apply(fold<Op, begin, half>(items), fold<Op, begin + half, count - half>(items));
  }
}

// Folds one vector of elements into an accumulator's type. are_neighbours: positions among their
// numbers, if there are any, count in equal steps.
template <class Op, class A, bool are_neighbours = false, class T, int items>
__device__ inline A fold_pack(const Pack<T, items>& pack) {
  constexpr bool is_byte = is_same<T, int8> || is_same<T, uint8>;
  if constexpr (is_same<Op, Add> && is_byte && items % 4 == 0) {
    // Four bytes an instruction; the sum of 16 bytes is exact, and wraps only when made an A.
    int32 sum = 0;
    uint32 words[items / 4];
    memcpy(words, &pack, sizeof(words));
#pragma unroll
    for (int i = 0; i < items / 4; ++i) {
      if constexpr (is_same<T, int8>) {
        sum = ptx::dp4a(int32(words[i]), 0x01010101, sum);
      } else {
        sum = int32(ptx::dp4a(words[i], 0x01010101u, uint32(sum)));
      }
    }
    return convert<A>(sum);
  } else {
    A converted[items];
#pragma unroll
    for (int i = 0; i < items; ++i) converted[i] = convert<A>(pack.items[i]);
    if constexpr (are_neighbours && folds_neighbours<Op>) {
      return Op::fold_neighbours(converted);
    } else {
      return fold<Op, 0, items>(converted);
    }
  }
}

// The same of its first `count` elements, at least one.
template <class Op, class A, class T, int items>
__device__ inline A fold_some(const Pack<T, items>& pack, int count) {
  A value = convert<A>(pack.items[0]);
#pragma unroll
  for (int i = 1; i < items; ++i) {
    if (i < count) value = Op::apply(value, convert<A>(pack.items[i]));
  }
  return value;
}

// A running result that starts without a value, as there may be no identity to start from.
template <class Op, class A>
struct Running {
  A total;
  bool is_empty = true;

  __device__ void append(const A& value) {
    if constexpr (has_gaps<A>) {
      assign(total, is_empty ? value : Op::apply(total, value));
    } else {
      total = is_empty ? value : Op::apply(total, value);
    }
    is_empty = false;
  }
};

template <class Op, class A>
__device__ inline void assign(Running<Op, A>& to, const Running<Op, A>& from) {
  if constexpr (has_gaps<A>) {
    assign(to.total, from.total);
    to.is_empty = from.is_empty;
  } else {
    to = from;
  }
}

}  // namespace gpualgo

#endif
