// The numbers of an element: a record has several, each in an array of its own, its leaves; a plain
// number is its own one leaf, and so is a record whose numbers lie together in memory. In
// registers, in shared memory and in what blocks hand each other an element is one piece.
#ifndef GPUALGO_PARTS_ELEMENT_CUH
#define GPUALGO_PARTS_ELEMENT_CUH

#include "parts/intrinsics.cuh"
#include "parts/tile_io.cuh"
#include "parts/types.cuh"

namespace gpualgo {

template <class T>
inline constexpr bool is_record = false;
template <class... Numbers>
inline constexpr bool is_record<Tuple<Numbers...>> = true;
template <class Result, class... Numbers>
inline constexpr bool is_record<Computed<Result, Numbers...>> = true;

template <class T>
inline constexpr int num_leaves = 1;
template <class... Numbers>
inline constexpr int num_leaves<Tuple<Numbers...>> = sizeof...(Numbers);
template <class Result, class... Numbers>
inline constexpr int num_leaves<Computed<Result, Numbers...>> = sizeof...(Numbers);

template <class T>
inline constexpr bool is_interleaved = false;
template <class Record, int size, int... offsets>
inline constexpr bool is_interleaved<Interleaved<Record, size, offsets...>> = true;

template <class T>
inline constexpr bool is_computed = false;
template <class Result, class... Numbers>
inline constexpr bool is_computed<Computed<Result, Numbers...>> = true;

namespace detail {

template <int i, class T>
struct LeafType {
  using type = T;
};
template <class First, class... Rest>
struct LeafType<0, Tuple<First, Rest...>> {
  using type = First;
};
template <int i, class First, class... Rest>
struct LeafType<i, Tuple<First, Rest...>> {
  using type = typename LeafType<i - 1, Tuple<Rest...>>::type;
};

template <int i, class Result, class... Numbers>
struct LeafType<i, Computed<Result, Numbers...>> {
  using type = typename LeafType<i, Tuple<Numbers...>>::type;
};

template <class T>
struct HeldType {
  using type = T;
};
template <class Result, class... Numbers>
struct HeldType<Computed<Result, Numbers...>> {
  using type = Result;
};

template <class Record, int size, int... offsets>
struct HeldType<Interleaved<Record, size, offsets...>> {
  using type = Record;
};

// Of what is computed: the record of the numbers that are read.
template <class T>
struct ReadType {
  using type = T;
};
template <class Result, class... Numbers>
struct ReadType<Computed<Result, Numbers...>> {
  using type = Tuple<Numbers...>;
};

template <int i>
struct Index {
  static constexpr int value = i;
};

}  // namespace detail

// What is held of an element that has been read.
template <class T>
using Held = typename detail::HeldType<T>::type;

template <class T, int i>
using Leaf = typename detail::LeafType<i, T>::type;

namespace detail {

template <class T, int i = 0>
__device__ constexpr int bytes_from() {
  if constexpr (i == num_leaves<T>) {
    return 0;
  } else {
    return int(sizeof(Leaf<T, i>)) + bytes_from<T, i + 1>();
  }
}

// Where a number lies: at a multiple of its size.
template <class T, int i>
__device__ constexpr int offset_from() {
  if constexpr (i == 0) {
    return 0;
  } else {
    constexpr int size = sizeof(Leaf<T, i>);
    return (offset_from<T, i - 1>() + int(sizeof(Leaf<T, i - 1>)) + size - 1) / size * size;
  }
}

template <class T, int i = 0>
__device__ constexpr int widest_from() {
  constexpr int own = is_ordinal<Leaf<T, i>> ? 1 : int(sizeof(Leaf<T, i>));
  if constexpr (i + 1 == num_leaves<T>) {
    return own;
  } else {
    return own > widest_from<T, i + 1>() ? own : widest_from<T, i + 1>();
  }
}

// The logarithm of a power of two.
__device__ constexpr int bits_below(int power) {
  return power == 1 ? 0 : 1 + bits_below(power / 2);
}

// How far neighbours lie apart where there are no gaps.
template <class T>
inline constexpr int64 leaf_stride = sizeof(T);
template <int step, bool in_blocks>
inline constexpr int64 leaf_stride<Ordinal<step, in_blocks>> = step;

template <class Record, int size, int... offsets>
inline constexpr int64 leaf_stride<Interleaved<Record, size, offsets...>> = size;

template <class T, int i = 0>
__device__ constexpr bool has_blocks_from() {
  if constexpr (i == num_leaves<T>) {
    return false;
  } else {
    return is_in_blocks<Leaf<T, i>> || has_blocks_from<T, i + 1>();
  }
}

}  // namespace detail

// Bytes of an element's widest number that is read.
template <class T>
inline constexpr int widest_leaf = detail::widest_from<T>();
template <class Record, int size, int... offsets>
inline constexpr int widest_leaf<Interleaved<Record, size, offsets...>> = widest_leaf<Record>;

// Whether there are bytes between an element's numbers, or behind them, which nobody writes.
template <class T>
inline constexpr bool has_gaps = detail::bytes_from<T>() < int(sizeof(T));
template <class T, int items>
inline constexpr bool has_gaps<Pack<T, items>> = has_gaps<T>;

// An element's number.
template <int i, class T>
__device__ inline Leaf<T, i>& leaf_of(T& element) {
  if constexpr (!is_record<T>) {
    return element;
  } else if constexpr (i == 0) {
    return element.v0;
  } else if constexpr (i == 1) {
    return element.v1;
  } else if constexpr (i == 2) {
    return element.v2;
  } else if constexpr (i == 3) {
    return element.v3;
  } else if constexpr (i == 4) {
    return element.v4;
  } else if constexpr (i == 5) {
    return element.v5;
  } else if constexpr (i == 6) {
    return element.v6;
  } else {
    return element.v7;
  }
}
template <int i, class T>
__device__ inline const Leaf<T, i>& leaf_of(const T& element) {
  return leaf_of<i>(const_cast<T&>(element));
}

// Calls body(leaf) for each of an element's numbers; leaf.value is its index, for the compiler too.
template <class T, int i = 0, class Body>
__device__ inline void for_each_leaf(Body body) {
  if constexpr (i < num_leaves<T>) {
    body(detail::Index<i>{});
    for_each_leaf<T, i + 1>(body);
  }
}

// to = from, number by number where there are gaps: what is copied with its gaps does not stay in
// registers.
template <class T>
__device__ inline void assign(T& to, const T& from) {
  if constexpr (has_gaps<T>) {
    for_each_leaf<T>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      leaf_of<i>(to) = leaf_of<i>(from);
    });
  } else {
    to = from;
  }
}
template <class T, int items>
__device__ inline void assign(Pack<T, items>& to, const Pack<T, items>& from) {
  if constexpr (has_gaps<T>) {
#pragma unroll
    for (int k = 0; k < items; ++k) assign(to.items[k], from.items[k]);
  } else {
    to = from;
  }
}

}  // namespace gpualgo

#endif
