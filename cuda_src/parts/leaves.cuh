// The numbers of an element: one, or those of a tuple, which lie apart in global memory.
#ifndef GPUALGO_PARTS_LEAVES_CUH
#define GPUALGO_PARTS_LEAVES_CUH

#include "parts/tile_io.cuh"
#include "parts/types.cuh"

namespace gpualgo {

// 0, 1, …, N - 1 as a parameter pack.
template <int... values>
struct Indices {};
template <int N, int... values>
struct MakeIndices : MakeIndices<N - 1, N - 1, values...> {};
template <int... values>
struct MakeIndices<0, values...> {
  using type = Indices<values...>;
};

template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<Tuple<T...>> = true;
template <class... T>
inline constexpr bool is_tuple<const Tuple<T...>> = true;

template <class T>
inline constexpr int num_leaves = 1;
template <class... T>
inline constexpr int num_leaves<Tuple<T...>> = sizeof...(T);

// Number k of an element.
template <int k, class T>
__device__ inline auto& leaf_of(T& element) {
  if constexpr (!is_tuple<T>) {
    return element;
  } else if constexpr (k == 0) {
    return element.v0;
  } else if constexpr (k == 1) {
    return element.v1;
  } else if constexpr (k == 2) {
    return element.v2;
  } else if constexpr (k == 3) {
    return element.v3;
  } else if constexpr (k == 4) {
    return element.v4;
  } else if constexpr (k == 5) {
    return element.v5;
  } else if constexpr (k == 6) {
    return element.v6;
  } else {
    return element.v7;
  }
}

namespace detail {

template <class T>
struct Plain {
  using type = T;
};
template <class T>
struct Plain<T&> : Plain<T> {};
template <class T>
struct Plain<const T> : Plain<T> {};

}  // namespace detail

template <class T, int k>
using LeafOf = typename detail::Plain<decltype(leaf_of<k>(*static_cast<T*>(nullptr)))>::type;

namespace detail {

template <class T, int items, class Place, int... k>
__device__ inline void store_each(const Pack<T, items>& pack, Place place, Indices<k...>) {
  auto store = [&](auto& part, auto take, unsigned char* address) {
#pragma unroll
    for (int i = 0; i < items; ++i) part.items[i] = take(pack.items[i]);
    store_pack(address, part);
  };
  (
      [&] {
        Pack<LeafOf<T, k>, items> part;
        store(
            part, [](const T& element) { return leaf_of<k>(element); },
            place(k, int(sizeof(LeafOf<T, k>))));
      }(),
      ...);
}

}  // namespace detail

// Stores each number of so many elements where place(k, its size) says.
template <class T, int items, class Place>
__device__ inline void store_leaves(const Pack<T, items>& pack, Place place) {
  if constexpr (!is_tuple<T>) {
    store_pack(place(0, int(sizeof(T))), pack);
  } else {
    detail::store_each(pack, place, typename MakeIndices<num_leaves<T>>::type{});
  }
}

}  // namespace gpualgo

#endif
