// Numbers of arrays that lie apart, put side by side into words, and taken out again.
//
// Bytes      of all numbers, and of the words, once; with indices those, too, and what is read in
//            their order comes by sectors. Launches: one; temporary storage: none.
// Words      hold the numbers one after another, without gaps, the first in the lowest bytes. A
//            number does not cross 8 bytes. Bytes that no number takes are zero.
#ifndef GPUALGO_RADIX_SORT_WORDS_CUH
#define GPUALGO_RADIX_SORT_WORDS_CUH

#include "parts/layout.cuh"
#include "parts/leaves.cuh"
#include "parts/tile_io.cuh"

namespace gpualgo {

// Where there are no indices: numbers stay in their order.
struct InOrder {};

template <int block_threads_, int items_, bool is_dense_>
struct WordsPolicy {
  static constexpr int block_threads = block_threads_;
  static constexpr int items = items_;         // per thread
  static constexpr bool is_dense = is_dense_;  // numbers of an array have no gaps between them
};

template <int count>
struct PackParams {
  const unsigned char* numbers[count];
  const unsigned char* indices;  // of elements, within their row
  unsigned char* words;
  int64 num_items;
  Divisor row_items;
  Layout<count> layout;  // of the numbers
};

template <int count>
struct UnpackParams {
  const unsigned char* words;
  unsigned char* numbers[count];
  int64 num_items;
  Layout<count> layout;
};

namespace detail {

// The byte of a word where a number begins.
template <class Numbers, int i>
inline constexpr int word_begin = bytes_from<Numbers>() - bytes_from<Numbers, i>();

// A word as it is put together: 8 bytes each.
template <class Word>
struct Halves {
  static constexpr int count = sizeof(Word) > 8 ? 2 : 1;
  uint64 items[count];
};

template <class Word>
__device__ inline void store_word(unsigned char* words, int64 index, const Halves<Word>& halves) {
  Word word;
  if constexpr (sizeof(Word) > 8) {
    memcpy(&word, &halves, sizeof(Word));
  } else {
    word = Word(halves.items[0]);
  }
  store_pack<Word, 1>(words + index * int64(sizeof(Word)), {{word}});
}

template <class Word>
__device__ inline Halves<Word> load_word(const unsigned char* words, int64 index) {
  const Word word = load_item<Word>(words + index * int64(sizeof(Word)));
  Halves<Word> halves;
  if constexpr (sizeof(Word) > 8) {
    memcpy(&halves, &word, sizeof(Word));
  } else {
    halves.items[0] = word;
  }
  return halves;
}

// How far into its array each number of an element lies.
template <bool is_dense, class Numbers, int count>
__device__ inline void offsets_of(const Layout<count>& layout, int64 item,
                                  int64 (&offsets)[count]) {
  if constexpr (is_dense) {
    for_each_leaf<Numbers>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      offsets[i] = item * int64(sizeof(Leaf<Numbers, i>));
    });
  } else {
    layout.offsets(item, offsets);
  }
}

}  // namespace detail

// Numbers: a Tuple of unsigned ones, each as wide as those of its array.
template <class Policy, class Word, class Numbers, class Index>
__global__ void __launch_bounds__(Policy::block_threads)
    pack_words_kernel(const __grid_constant__ PackParams<num_leaves<Numbers>> params) {
  static_assert(detail::bytes_from<Numbers>() <= int(sizeof(Word)));
  constexpr int items = Policy::items;
  const int64 begin = int64(blockIdx.x) * Policy::block_threads * items + threadIdx.x;
  detail::Halves<Word> words[items];
#pragma unroll
  for (int k = 0; k < items; ++k) {
    const int64 index = begin + k * Policy::block_threads;
    if (index >= params.num_items) break;
    int64 item = index;
    if constexpr (!is_same<Index, InOrder>) {
      const int64 row_begin = params.row_items.divide(index) * params.row_items.value;
      item = row_begin + int64(load_item<Index>(params.indices + index * int64(sizeof(Index))));
    }
    int64 offsets[num_leaves<Numbers>];
    detail::offsets_of<Policy::is_dense, Numbers>(params.layout, item, offsets);
#pragma unroll
    for (int half = 0; half < detail::Halves<Word>::count; ++half) words[k].items[half] = 0;
    for_each_leaf<Numbers>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      constexpr int at = detail::word_begin<Numbers, i>;
      const uint64 number = load_item<Leaf<Numbers, i>>(params.numbers[i] + offsets[i]);
      words[k].items[at / 8] |= number << at % 8 * 8;
    });
  }
#pragma unroll
  for (int k = 0; k < items; ++k) {
    const int64 index = begin + k * Policy::block_threads;
    if (index >= params.num_items) break;
    detail::store_word<Word>(params.words, index, words[k]);
  }
}

template <class Policy, class Word, class Numbers>
__global__ void __launch_bounds__(Policy::block_threads)
    unpack_words_kernel(const __grid_constant__ UnpackParams<num_leaves<Numbers>> params) {
  constexpr int items = Policy::items;
  const int64 begin = int64(blockIdx.x) * Policy::block_threads * items + threadIdx.x;
  detail::Halves<Word> words[items];
#pragma unroll
  for (int k = 0; k < items; ++k) {
    const int64 index = begin + k * Policy::block_threads;
    if (index >= params.num_items) break;
    words[k] = detail::load_word<Word>(params.words, index);
  }
#pragma unroll
  for (int k = 0; k < items; ++k) {
    const int64 index = begin + k * Policy::block_threads;
    if (index >= params.num_items) break;
    int64 offsets[num_leaves<Numbers>];
    detail::offsets_of<Policy::is_dense, Numbers>(params.layout, index, offsets);
    for_each_leaf<Numbers>([&](auto leaf) {
      constexpr int i = decltype(leaf)::value;
      constexpr int at = detail::word_begin<Numbers, i>;
      using Number = Leaf<Numbers, i>;
      const Number number = Number(words[k].items[at / 8] >> at % 8 * 8);
      store_pack<Number, 1>(params.numbers[i] + offsets[i], {{number}});
    });
  }
}

}  // namespace gpualgo

#endif
