// Calls of the caller's operator by words, for the build to put its code in their place
// (docs/adr/0042).
//
// Each number of an argument or the result is a word, a complex number is two.
#ifndef GPUALGO_PARTS_WORDS_CUH
#define GPUALGO_PARTS_WORDS_CUH

#include "parts/element.cuh"
#include "parts/intrinsics.cuh"
#include "parts/ptx.cuh"
#include "parts/types.cuh"

namespace gpualgo {

namespace detail {

// The word that a number is passed in, whose lowest bytes it is; a bool that is returned is 0 or 1.
template <class T>
using WordFor = UintFor<8 * int(sizeof(T))>;

template <class T>
__device__ inline WordFor<T> word_of(const T& number) {
  WordFor<T> word = 0;
  memcpy(&word, &number, sizeof(T));
  return word;
}
template <class T>
__device__ inline void read_word(const WordFor<T>& word, T& number) {
  memcpy(&number, &word, sizeof(T));
}
__device__ inline void read_word(uint32 word, bool& number) { number = word != 0; }
template <class Words, class Real>
__device__ inline void read_word(const Words& words, Complex<Real>& number) {
  read_word(words.v0, number.real);
  read_word(words.v1, number.imag);
}

// The words of a number, and those of an element as the function returns them.
template <class T>
struct WordsOf {
  using number = WordFor<T>;
  using type = Tuple<number>;
};
template <class Real>
struct WordsOf<Complex<Real>> {
  using number = Tuple<WordFor<Real>, WordFor<Real>>;
  using type = Tuple<number>;
};
template <class... Numbers>
struct WordsOf<Tuple<Numbers...>> {
  using type = Tuple<typename WordsOf<Numbers>::number...>;
};

// Calls body(words) with those of an element's numbers from number i on.
template <class T, int i = 0, class Body>
__device__ inline auto with_words(Body body, const T& element) {
  if constexpr (i == num_leaves<T>) {
    return body();
  } else {
    const auto& number = leaf_of<i>(element);
    return with_words<T, i + 1>(
        [&](auto... rest) {
          if constexpr (is_complex<Leaf<T, i>>) {
            return body(word_of(number.real), word_of(number.imag), rest...);
          } else {
            return body(word_of(number), rest...);
          }
        },
        element);
  }
}
// The same for several elements.
template <class Body>
__device__ inline auto with_words_of(Body body) {
  return body();
}
template <class Body, class First, class... Rest>
__device__ inline auto with_words_of(Body body, const First& first, const Rest&... rest) {
  return with_words<First>(
      [&](auto... words) {
        return with_words_of([&](auto... others) { return body(words..., others...); }, rest...);
      },
      first);
}

}  // namespace detail

template <class Result, class... Args>
__device__ inline Result call_by_words(const Args&... args) {
  using Words = typename detail::WordsOf<Result>::type;
  const Words words = detail::with_words_of(
      [](auto... each) { return ptx::gpualgo_operator_words<Words>(each...); }, args...);
  Result result;
  for_each_leaf<Result>([&](auto leaf) {
    constexpr int i = decltype(leaf)::value;
    detail::read_word(leaf_of<i>(words), leaf_of<i>(result));
  });
  return result;
}

}  // namespace gpualgo

#endif
