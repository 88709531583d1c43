// Elements in one piece outside of registers: as words that blocks hand each other, and in memory.
#ifndef GPUALGO_PARTS_WHOLE_CUH
#define GPUALGO_PARTS_WHOLE_CUH

#include "parts/leaves.cuh"
#include "parts/ptx.cuh"

namespace gpualgo {

// Puts an element's numbers into words that are zero, from byte `begin` on, and not what is between
// them.
template <class T>
__device__ inline void put_numbers(uint32* words, int begin, const T& element) {
  for_each_leaf<T>([&](auto leaf) {
    constexpr int i = decltype(leaf)::value;
    constexpr int bytes = sizeof(Leaf<T, i>);
    const auto& number = leaf_of<i>(element);
    const int at = begin + detail::offset_from<T, i>();
    if constexpr (bytes >= 4) {
      memcpy(words + at / 4, &number, bytes);
    } else {
      Pack<uint8, bytes> raw;
      memcpy(&raw, &number, bytes);
#pragma unroll
      for (int k = 0; k < bytes; ++k) {
        words[(at + k) / 4] |= uint32(raw.items[k]) << (at + k) % 4 * 8;
      }
    }
  });
}

// The words of a value; zero between an element's numbers.
template <class T>
__device__ inline void put_words(uint32* words, const T& value) {
  if constexpr (has_gaps<T>) {
    put_numbers(words, 0, value);
  } else {
    memcpy(words, &value, sizeof(T));
  }
}
template <class T, int items>
__device__ inline void put_words(uint32* words, const Pack<T, items>& pack) {
  if constexpr (has_gaps<T>) {
#pragma unroll
    for (int k = 0; k < items; ++k) put_numbers(words, k * int(sizeof(T)), pack.items[k]);
  } else {
    memcpy(words, &pack, sizeof(pack));
  }
}

// Either of two values, word by word: of wide ones, the compiler would choose the address.
template <class T>
__device__ inline T either(bool is_first, const T& first, const T& second) {
  constexpr int words = (sizeof(T) + 3) / 4;
  uint32 found[words] = {}, other[words] = {};
  put_words(found, first);
  put_words(other, second);
#pragma unroll
  for (int i = 0; i < words; ++i) found[i] = is_first ? found[i] : other[i];
  T result;
  memcpy(&result, found, sizeof(T));
  return result;
}

// Writes a whole element: of a record, what lies between its numbers, too.
template <class A>
__device__ inline void store_whole(A* address, const A& element) {
  if constexpr (is_record<A>) {
    store_pack(address, Pack<A, 1>{{element}});
  } else {
    *address = element;
  }
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
