// Loading and storing elements: the numbers of each from where its leaves lie, and back.
#ifndef GPUALGO_PARTS_LEAVES_CUH
#define GPUALGO_PARTS_LEAVES_CUH

#include "parts/element.cuh"
#include "parts/intrinsics.cuh"
#include "parts/tile_io.cuh"
#include "parts/types.cuh"

// The function that makes elements of type Computed, compiled from Python (docs/adr/0001): as
// gpualgo_operator. It is called on what is loaded, and what it makes is what kernels hold.
extern "C" __device__ void gpualgo_input(void* result, const void* state, const void* const* args);

namespace gpualgo {

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

template <class T>
struct InterleavedLoad;

// Loads `items` records that lie in one piece: all their bytes at once, of which the address is a
// multiple as load_pack asks, or (in_packs false) number by number.
template <class Record, int size, int... offsets>
struct InterleavedLoad<Interleaved<Record, size, offsets...>> {
  template <int items, bool in_packs>
  __device__ static Pack<Record, items> run(const unsigned char* from) {
    constexpr int at[] = {offsets...};
    Pack<Record, items> result;
    if constexpr (in_packs) {
      const auto bytes = load_pack<uint8, items * size>(from);
#pragma unroll
      for (int k = 0; k < items; ++k) {
        for_each_leaf<Record>([&](auto leaf) {
          constexpr int i = decltype(leaf)::value;
          memcpy(&leaf_of<i>(result.items[k]), bytes.items + k * size + at[i],
                 sizeof(Leaf<Record, i>));
        });
      }
    } else {
#pragma unroll
      for (int k = 0; k < items; ++k) {
        for_each_leaf<Record>([&](auto leaf) {
          constexpr int i = decltype(leaf)::value;
          leaf_of<i>(result.items[k]) = load_item<Leaf<Record, i>>(from + k * size + at[i]);
        });
      }
    }
    return result;
  }
};

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
  } else if constexpr (is_interleaved<T>) {
    return InterleavedLoad<T>::template run<items, in_packs>(from.at[0]);
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
  if constexpr (is_interleaved<T>) {
    return load_leaves<T, 1, false>(from).items[0];
  } else if constexpr (is_record<T> || is_ordinal<T>) {
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

// The same of records that are to lie in one piece without gaps: all their bytes at once.
template <class Record, int size, int... offsets, int items>
__device__ inline void store_leaves(const Targets<Interleaved<Record, size, offsets...>>& to,
                                    const Pack<Record, items>& pack) {
  constexpr int at[] = {offsets...};
  Pack<uint8, items * size> bytes;
#pragma unroll
  for (int k = 0; k < items; ++k) {
    for_each_leaf<Record>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      memcpy(bytes.items + k * size + at[i], &leaf_of<i>(pack.items[k]), sizeof(Leaf<Record, i>));
    });
  }
  store_pack(to.at[0], bytes);
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

template <class Record, int size, int... offsets>
__device__ inline void store_element(const Targets<Interleaved<Record, size, offsets...>>& to,
                                     const Record& element) {
  constexpr int at[] = {offsets...};
  for_each_leaf<Record>([&](auto leaf) {
    constexpr int i = decltype(leaf)::value;
    *reinterpret_cast<Leaf<Record, i>*>(to.at[0] + at[i]) = leaf_of<i>(element);
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
