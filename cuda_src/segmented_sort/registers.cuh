// Sorting what a thread has in registers.
#ifndef GPUALGO_SEGMENTED_SORT_REGISTERS_CUH
#define GPUALGO_SEGMENTED_SORT_REGISTERS_CUH

#include "merge_sort/order.cuh"
#include "parts/types.cuh"

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

}  // namespace gpualgo

#endif
