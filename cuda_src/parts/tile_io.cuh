// Moving elements between global memory and registers, 16 bytes at a time where they lie so.
#ifndef GPUALGO_PARTS_TILE_IO_CUH
#define GPUALGO_PARTS_TILE_IO_CUH

#include "parts/ptx.cuh"
#include "parts/types.cuh"

namespace gpualgo {

constexpr int vector_bytes = 16;

// N consecutive elements in registers.
template <class T, int N>
struct Pack {
  T items[N];
};

namespace detail {

template <class Word, class T, int N>
__device__ inline Pack<T, N> load_words(const void* address) {
  constexpr int words = sizeof(Pack<T, N>) / sizeof(Word);
  Word buffer[words];
#pragma unroll
  for (int i = 0; i < words; ++i) buffer[i] = static_cast<const Word*>(address)[i];
  Pack<T, N> result;
  memcpy(&result, buffer, sizeof(result));
  return result;
}

template <class Word, class T, int N>
__device__ inline void store_words(void* address, const Pack<T, N>& pack) {
  constexpr int words = sizeof(Pack<T, N>) / sizeof(Word);
  Word buffer[words];
  memcpy(buffer, &pack, sizeof(pack));
#pragma unroll
  for (int i = 0; i < words; ++i) static_cast<Word*>(address)[i] = buffer[i];
}

}  // namespace detail

// Loads N elements with the widest accesses that their size allows; the address is a multiple
// of that width. Plain loads: marked as streaming (ld.cs) they are 5 % slower on an H200.
template <class T, int N>
__device__ inline Pack<T, N> load_pack(const void* address) {
  constexpr int bytes = sizeof(T) * N;
  if constexpr (bytes % 16 == 0) {
    return detail::load_words<uint4, T, N>(address);
  } else if constexpr (bytes % 8 == 0) {
    return detail::load_words<uint2, T, N>(address);
  } else if constexpr (bytes % 4 == 0) {
    return detail::load_words<uint32, T, N>(address);
  } else if constexpr (bytes % 2 == 0) {
    return detail::load_words<uint16, T, N>(address);
  } else {
    return detail::load_words<uint8, T, N>(address);
  }
}

template <class T, int N>
__device__ inline void store_pack(void* address, const Pack<T, N>& pack) {
  constexpr int bytes = sizeof(T) * N;
  if constexpr (bytes % 16 == 0) {
    detail::store_words<uint4>(address, pack);
  } else if constexpr (bytes % 8 == 0) {
    detail::store_words<uint2>(address, pack);
  } else if constexpr (bytes % 4 == 0) {
    detail::store_words<uint32>(address, pack);
  } else if constexpr (bytes % 2 == 0) {
    detail::store_words<uint16>(address, pack);
  } else {
    detail::store_words<uint8>(address, pack);
  }
}

// Starts copying `bytes` (4, 8 or 16, and so aligned) from global to shared memory, past the
// registers. Seen by this thread after wait_copies, by its warp after a syncwarp besides.
// is_async false: copies at once, for architectures before sm_80.
template <bool is_async, int bytes>
__device__ inline void copy_to_shared(void* shared, const void* global) {
  if constexpr (!is_async) {
    store_pack(shared, load_pack<uint8, bytes>(global));
  } else if constexpr (bytes == 16) {
    ptx::cp_async_cg_16(shared, global);
  } else {
    ptx::cp_async_ca<bytes>(shared, global);
  }
}

// Ends a group of this thread's copies.
template <bool is_async>
__device__ inline void end_copies() {
  if constexpr (is_async) ptx::cp_async_commit_group();
}

// Waits until at most the last `left` groups are still under way.
template <bool is_async, int left>
__device__ inline void wait_copies() {
  if constexpr (is_async) ptx::cp_async_wait_group<left>();
}

template <class T>
__device__ inline T load_item(const void* address) {
  return load_pack<T, 1>(address).items[0];
}

}  // namespace gpualgo

#endif
