// Sorting what a thread, or the lanes of a warp, have in registers.
#ifndef GPUALGO_SEGMENTED_SORT_REGISTERS_CUH
#define GPUALGO_SEGMENTED_SORT_REGISTERS_CUH

#include "merge_sort/order.cuh"
#include "parts/intrinsics.cuh"
#include "parts/types.cuh"
#include "parts/warp.cuh"

namespace gpualgo {

namespace detail {

template <class T>
__device__ inline void exchange_if(bool is_due, T& first, T& second) {
  T low, high;
  choose(low, is_due, second, first);
  choose(high, is_due, first, second);
  assign(first, low);
  assign(second, high);
}

}  // namespace detail

// By odd-even transposition, stably, and none across a head (heads: a bit for each element); their
// places with them.
template <class By, bool has_heads, bool has_places, class T, int items>
__device__ inline void sort_neighbours(T (&keys)[items], uint32 (&places)[items], uint32 heads) {
#pragma unroll 1
  for (int round = 0; round < items; round += 2) {
#pragma unroll
    for (int phase = 0; phase < 2; ++phase) {
#pragma unroll
      for (int k = phase; k + 1 < items; k += 2) {
        const bool is_due =
            By::before(keys[k + 1], keys[k]) & !(has_heads && (heads >> (k + 1) & 1));
        detail::exchange_if(is_due, keys[k], keys[k + 1]);
        if constexpr (has_places) detail::exchange_if(is_due, places[k], places[k + 1]);
      }
    }
  }
}

// Those of which equal ones are the same, by Batcher's odd-even merges of p and p.
template <class By, int p = 1, int distance = p, class T, int items>
__device__ inline void sort_alike(T (&keys)[items]) {
  if constexpr (p < items) {
#pragma unroll
    for (int i = distance % p; i + distance < items; ++i) {
      const bool is_first = (i - distance % p) / distance % 2 == 0;
      if (is_first && i / (2 * p) == (i + distance) / (2 * p)) {
        detail::exchange_if(By::before(keys[i + distance], keys[i]), keys[i], keys[i + distance]);
      }
    }
    if constexpr (distance > 1) {
      sort_alike<By, p, distance / 2>(keys);
    } else {
      sort_alike<By, 2 * p>(keys);
    }
  }
}

// Pairs of a key and a position below 2^16, as numbers or tuples of the same order.
template <int bits, class Ordered>
struct RankedPair {
  using type = uint64;
  __device__ static type of(Ordered key, uint32 position) { return uint64(key) << 32 | position; }
  __device__ static uint32 position(type pair) { return uint32(pair); }
};
template <class Ordered>
struct RankedPair<16, Ordered> {
  using type = uint32;
  __device__ static type of(Ordered key, uint32 position) { return key << 16 | position; }
  __device__ static uint32 position(type pair) { return pair & 0xffff; }
};
template <class Ordered>
struct RankedPair<64, Ordered> {
  using type = Tuple<uint64, uint32>;
  __device__ static type of(Ordered key, uint32 position) { return {key, position}; }
  __device__ static uint32 position(const type& pair) { return pair.v1; }
};

// Keeps the lower or the upper one of a pair and that of another lane, which keeps the other one.
template <class T>
__device__ inline void take_of_both(T& own, const T& other, bool is_upper) {
  T taken;
  choose(taken, ByValue<0>::before(other, own) != is_upper, other, own);
  assign(own, taken);
}

// Sorts the pairs of `lanes` lanes, of which each has neighbours. Equal pairs are the same.
template <int lanes = warp_threads, class T, int items>
__device__ inline void sort_warp(T (&pairs)[items]) {
  constexpr int unrolled = lanes < warp_threads ? lanes : 1;  // loops of few steps are written out
  const int lane = threadIdx.x % warp_threads;
  sort_alike<ByValue<0>>(pairs);
#pragma unroll unrolled
  for (int width = 2; width <= lanes; width *= 2) {
    // The second of two sorted runs is read in reverse: a bitonic sequence.
    const bool is_second = (lane & width / 2) != 0;
#pragma unroll
    for (int i = 0; i < (items + 1) / 2; ++i) {
      const T other = shuffle_xor(pairs[items - 1 - i], width - 1);
      if constexpr (items > 1) {
        take_of_both(pairs[items - 1 - i], shuffle_xor(pairs[i], width - 1), is_second);
      }
      take_of_both(pairs[i], other, is_second);
    }
#pragma unroll unrolled
    for (int stride = width / 4; stride > 0; stride /= 2) {
#pragma unroll
      for (int i = 0; i < items; ++i) {
        take_of_both(pairs[i], shuffle_xor(pairs[i], stride), (lane & stride) != 0);
      }
    }
#pragma unroll
    for (int stride = items / 2; stride > 0; stride /= 2) {
#pragma unroll
      for (int i = 0; i < items; ++i) {
        if ((i & stride) != 0) continue;
        detail::exchange_if(ByValue<0>::before(pairs[i + stride], pairs[i]), pairs[i],
                            pairs[i + stride]);
      }
    }
  }
}

}  // namespace gpualgo

#endif
