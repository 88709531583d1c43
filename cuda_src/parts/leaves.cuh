// The numbers of an element: a record has several, each in an array of its own, its leaves; a plain
// number is its own one leaf. In registers, in shared memory and in what blocks hand each other an
// element is one piece.
#ifndef GPUALGO_PARTS_LEAVES_CUH
#define GPUALGO_PARTS_LEAVES_CUH

#include "parts/intrinsics.cuh"
#include "parts/tile_io.cuh"
#include "parts/types.cuh"

// The function that makes elements of type Computed, compiled from Python (docs/adr/0001): as
// gpualgo_operator. It is called on what is loaded, and what it makes is what kernels hold.
extern "C" __device__ void gpualgo_input(void* result, const void* state, const void* const* args);

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

// The same `count` elements further, where leaves have no gaps; those whose bit of `repeated` is
// set have one number for all elements.
template <int repeated = 0, template <class> class Places, class T>
__device__ inline Places<T> advanced(const Places<T>& from, int64 count) {
  return moved(from, [&](auto leaf) {
    constexpr int i = decltype(leaf)::value;
    return repeated >> i & 1 ? 0 : count * detail::leaf_stride<Leaf<T, i>>;
  });
}

// Makes an element of the numbers that were read for it.
template <class Result, class Numbers>
__device__ inline Result computed(const Numbers& numbers) {
  const void* pointers[num_leaves<Numbers>];
  for_each_leaf<Numbers>([&](auto leaf) {
    constexpr int i = decltype(leaf)::value;
    pointers[i] = &leaf_of<i>(numbers);
  });
  Result result;
  gpualgo_input(&result, nullptr, pointers);
  return result;
}

// Loads `items` elements whose leaves have no gaps: each leaf's numbers at once, of which its
// address is a multiple, or (in_packs false) one by one. `repeated` as above.
template <class T, int items, bool in_packs, int repeated = 0>
__device__ inline Pack<Held<T>, items> load_leaves(const Sources<T>& from) {
  if constexpr (is_computed<T>) {
    using Numbers = typename detail::ReadType<T>::type;
    Sources<Numbers> read;
    for_each_leaf<T>([&](auto leaf) { read.at[leaf.value] = from.at[leaf.value]; });
    Pack<Held<T>, items> result;
    if constexpr (!in_packs && items > 1 && detail::has_blocks_from<T>()) {
      // Each would make a block of its own: once in the code is enough.
#pragma unroll 1
      for (int k = 0; k < items; ++k) {
        const auto one = load_leaves<Numbers, 1, true>(advanced<repeated>(read, k));
        result.items[k] = computed<Held<T>>(one.items[0]);
      }
    } else {
      const auto numbers = load_leaves<Numbers, items, in_packs, repeated>(read);
#pragma unroll
      for (int k = 0; k < items; ++k) result.items[k] = computed<Held<T>>(numbers.items[k]);
    }
    return result;
  } else if constexpr (is_record<T>) {
    Pack<T, items> result;
    for_each_leaf<T>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      using Number = Leaf<T, i>;
      if constexpr (repeated >> i & 1) {
        const auto number = load_leaves<Number, 1, true>(Sources<Number>{from.at[i]}).items[0];
#pragma unroll
        for (int k = 0; k < items; ++k) leaf_of<i>(result.items[k]) = number;
      } else {
        const auto numbers = load_leaves<Number, items, in_packs>(Sources<Number>{from.at[i]});
#pragma unroll
        for (int k = 0; k < items; ++k) leaf_of<i>(result.items[k]) = numbers.items[k];
      }
    });
    return result;
  } else if constexpr (is_ordinal<T>) {
    Pack<T, items> result;
    const int64 first = int64(reinterpret_cast<uint64>(from.at[0]));
    if constexpr (in_packs && is_in_blocks<T> && items > 1) {
      // What the compiler sees of the lowest bits, and of no others, tells it which numbers are of
      // one block.
      constexpr int bits = detail::bits_below(items);
      const int64 pack = ptx::opaque_shr<bits>(first);
#pragma unroll
      for (int k = 0; k < items; ++k) result.items[k].index = (pack << bits) | k;
    } else {
#pragma unroll
      for (int k = 0; k < items; ++k) {
        result.items[k].index = first + k * int(detail::leaf_stride<T>);
      }
    }
    return result;
  } else if constexpr (in_packs) {
    return load_pack<T, items>(from.at[0]);
  } else {
    Pack<T, items> result;
#pragma unroll
    for (int k = 0; k < items; ++k) result.items[k] = load_item<T>(from.at[0] + k * sizeof(T));
    return result;
  }
}

template <class T>
__device__ inline Held<T> load_element(const Sources<T>& from) {
  if constexpr (is_record<T> || is_ordinal<T>) {
    return load_leaves<T, 1, true>(from).items[0];
  } else {
    return load_item<T>(from.at[0]);
  }
}

// Stores `items` elements into leaves without gaps, each leaf's numbers at once.
template <class A, int items>
__device__ inline void store_leaves(const Targets<A>& to, const Pack<A, items>& pack) {
  if constexpr (is_record<A>) {
    for_each_leaf<A>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      Pack<Leaf<A, i>, items> numbers;
#pragma unroll
      for (int k = 0; k < items; ++k) numbers.items[k] = leaf_of<i>(pack.items[k]);
      store_pack(to.at[i], numbers);
    });
  } else {
    store_pack(to.at[0], pack);
  }
}

// Starts copying an element from its leaves to shared memory, where it lies in one piece: past the
// registers (see copy_to_shared) what is as wide as that takes.
template <bool is_async, class T>
__device__ inline void copy_element(T* element, const Sources<T>& from) {
  for_each_leaf<T>([&](auto leaf) {
    constexpr int i = decltype(leaf)::value;
    constexpr int bytes = sizeof(Leaf<T, i>);
    copy_to_shared<(is_async && bytes >= 4), bytes>(&leaf_of<i>(*element), from.at[i]);
  });
}

template <class A>
__device__ inline void store_element(const Targets<A>& to, const A& element) {
  for_each_leaf<A>([&](auto leaf) {
    constexpr int i = decltype(leaf)::value;
    *reinterpret_cast<Leaf<A, i>*>(to.at[i]) = leaf_of<i>(element);
  });
}

}  // namespace gpualgo

#endif
