// Values that blocks hand each other within one launch. A value of any size is cut into 32-bit
// pieces; each lies in a 64-bit word beside a tag, so that a reader knows of every word whose it
// is, whatever the order in which they arrive, and no fence is needed. Tag 0: nothing is there.
#ifndef GPUALGO_PARTS_TAGGED_CUH
#define GPUALGO_PARTS_TAGGED_CUH

#include "parts/intrinsics.cuh"
#include "parts/leaves.cuh"
#include "parts/ptx.cuh"
#include "parts/warp.cuh"
#include "parts/whole.cuh"

namespace gpualgo {

template <class T>
inline constexpr int tagged_words = (sizeof(T) + 3) / 4;

template <class T>
struct Tagged {
  uint64 words[tagged_words<T>];
};

template <class T>
__device__ inline void store_tagged(uint64* words, int64 index, const T& value, uint32 tag) {
  uint32 pieces[tagged_words<T>] = {};
  put_words(pieces, value);
#pragma unroll
  for (int i = 0; i < tagged_words<T>; ++i) {
    ptx::st_relaxed_gpu(words + index * tagged_words<T> + i, uint64(tag) << 32 | pieces[i]);
  }
}

// Loads of several values should all be under way before the first is looked at.
template <class T>
__device__ inline Tagged<T> load_tagged(const uint64* words, int64 index) {
  Tagged<T> tagged;
#pragma unroll
  for (int i = 0; i < tagged_words<T>; ++i) {
    tagged.words[i] = ptx::ld_relaxed_gpu(words + index * tagged_words<T> + i);
  }
  return tagged;
}

// Takes a value out and returns its tag: 0 if the value is not there as a whole.
template <class T>
__device__ inline uint32 untag(const Tagged<T>& tagged, T& value) {
  uint32 pieces[tagged_words<T>];
  const uint32 tag = uint32(tagged.words[0] >> 32);
  bool is_whole = true;
#pragma unroll
  for (int i = 0; i < tagged_words<T>; ++i) {
    pieces[i] = uint32(tagged.words[i]);
    is_whole = is_whole && uint32(tagged.words[i] >> 32) == tag;
  }
  memcpy(&value, pieces, sizeof(T));
  return is_whole ? tag : 0;
}

// Folds the values that lie under one tag at [0, count), at least one, in order, and waits for
// those that have not come. All threads of the block call it and get the result; each takes
// neighbours, one where there are no more. `empties`: leaves tag 0 behind.
template <bool empties, class Op, int block_threads, class A>
__device__ inline A join_tagged(uint64* words, int count, uint32 tag, A* shared) {
  constexpr int loads = tagged_words<A> == 1 ? 2 : 1;  // in flight
  const int share = (count + block_threads - 1) / block_threads;
  const int begin = threadIdx.x * share;
  const int end = begin + share < count ? begin + share : count;
  A value{};
#pragma unroll 1
  for (int i = begin; i < end; i += loads) {
    A found[loads];
    bool is_there;
    do {
      Tagged<A> tagged[loads];
      is_there = true;
#pragma unroll
      for (int k = 0; k < loads; ++k) {
        if (i + k < end) tagged[k] = load_tagged<A>(words, i + k);
      }
#pragma unroll
      for (int k = 0; k < loads; ++k) {
        if (i + k < end) is_there = untag(tagged[k], found[k]) == tag && is_there;
      }
    } while (!is_there);
#pragma unroll
    for (int k = 0; k < loads; ++k) {
      if (i + k >= end) break;
      value = i + k == begin ? found[k] : Op::apply(value, found[k]);
      if constexpr (empties) store_tagged(words, i + k, A{}, 0);
    }
  }
  const int active = ptx::popc(ptx::ballot_sync(all_lanes, begin < end));
  if (active > 0) {
    value = reduce_group_partial<warp_threads, Op>(value, active);
    if (threadIdx.x % warp_threads == 0) shared[threadIdx.x / warp_threads] = value;
  }
  ptx::syncthreads();
  value = shared[0];
#pragma unroll 1
  for (int i = 1; i * warp_threads * share < count; ++i) value = Op::apply(value, shared[i]);
  return value;
}

}  // namespace gpualgo

#endif
