// The numbers of an element: a record has several, each in an array of its own, its leaves; a plain
// number is its own one leaf. In registers, in shared memory and in what blocks hand each other an
// element is one piece.
#ifndef GPUALGO_PARTS_LEAVES_CUH
#define GPUALGO_PARTS_LEAVES_CUH

#include "parts/tile_io.cuh"
#include "parts/types.cuh"

namespace gpualgo {

template <class T>
inline constexpr bool is_record = false;
template <class... Numbers>
inline constexpr bool is_record<Tuple<Numbers...>> = true;

template <class T>
inline constexpr int num_leaves = 1;
template <class... Numbers>
inline constexpr int num_leaves<Tuple<Numbers...>> = sizeof...(Numbers);

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

template <int i>
struct Index {
  static constexpr int value = i;
};

}  // namespace detail

template <class T, int i>
using Leaf = typename detail::LeafType<i, T>::type;

namespace detail {

template <class T, int i = 0>
__device__ constexpr int widest_from() {
  if constexpr (i + 1 == num_leaves<T>) {
    return int(sizeof(Leaf<T, i>));
  } else {
    return int(sizeof(Leaf<T, i>)) > widest_from<T, i + 1>() ? int(sizeof(Leaf<T, i>))
                                                             : widest_from<T, i + 1>();
  }
}

}  // namespace detail

// Bytes of an element's widest number.
template <class T>
inline constexpr int widest_leaf = detail::widest_from<T>();

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

// Where an element's numbers lie, or are to lie.
template <class T>
struct Sources {
  const unsigned char* at[num_leaves<T>];
};
template <class A>
struct Targets {
  unsigned char* at[num_leaves<A>];
};

// Returns what lies offset(leaf) bytes further, of each leaf.
template <template <class> class Places, class T, class Offset>
__device__ inline Places<T> moved(const Places<T>& from, Offset offset) {
  Places<T> result;
  for_each_leaf<T>([&](auto leaf) {
    constexpr int i = decltype(leaf)::value;
    result.at[i] = from.at[i] + offset(leaf);
  });
  return result;
}

// The same `count` elements further, where leaves have no gaps.
template <template <class> class Places, class T>
__device__ inline Places<T> advanced(const Places<T>& from, int64 count) {
  return moved(from,
               [&](auto leaf) { return count * int64(sizeof(Leaf<T, decltype(leaf)::value>)); });
}

// Loads `items` elements whose leaves have no gaps: each leaf's numbers at once, of which its
// address is a multiple, or (in_packs false) one by one.
template <class T, int items, bool in_packs>
__device__ inline Pack<T, items> load_leaves(const Sources<T>& from) {
  Pack<T, items> result;
  if constexpr (is_record<T>) {
    for_each_leaf<T>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      using Number = Leaf<T, i>;
      const auto numbers = load_leaves<Number, items, in_packs>(Sources<Number>{from.at[i]});
#pragma unroll
      for (int k = 0; k < items; ++k) leaf_of<i>(result.items[k]) = numbers.items[k];
    });
  } else if constexpr (in_packs) {
    result = load_pack<T, items>(from.at[0]);
  } else {
#pragma unroll
    for (int k = 0; k < items; ++k) result.items[k] = load_item<T>(from.at[0] + k * sizeof(T));
  }
  return result;
}

template <class T>
__device__ inline T load_element(const Sources<T>& from) {
  return load_leaves<T, 1, true>(from).items[0];
}

// Stores `items` elements into leaves without gaps, each leaf's numbers at once.
template <class A, int items>
__device__ inline void store_leaves(const Targets<A>& to, const Pack<A, items>& pack) {
  for_each_leaf<A>([&](auto leaf) {
    constexpr int i = decltype(leaf)::value;
    Pack<Leaf<A, i>, items> numbers;
#pragma unroll
    for (int k = 0; k < items; ++k) numbers.items[k] = leaf_of<i>(pack.items[k]);
    store_pack(to.at[i], numbers);
  });
}

template <class A>
__device__ inline void store_element(const Targets<A>& to, const A& element) {
  store_leaves(to, Pack<A, 1>{{element}});
}

// A weak load from L2 of a whole element, see ptx::ld_cg.
template <class A>
__device__ inline A load_cg(const A* address) {
  if constexpr (!is_record<A>) {
    return ptx::ld_cg(address);
  } else {
    constexpr int bytes = sizeof(A) & -sizeof(A), widest = bytes < 16 ? bytes : 16;
    using Word = Pack<uint8, widest>;
    constexpr int count = sizeof(A) / widest;
    Word words[count];
#pragma unroll
    for (int i = 0; i < count; ++i)
      words[i] = ptx::ld_cg(reinterpret_cast<const Word*>(address) + i);
    A result;
    memcpy(&result, words, sizeof(A));
    return result;
  }
}

}  // namespace gpualgo

#endif
