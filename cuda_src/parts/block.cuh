// Barriers between some of a block's warps. Barrier 0 is __syncthreads'.
#ifndef GPUALGO_PARTS_BLOCK_CUH
#define GPUALGO_PARTS_BLOCK_CUH

#include "parts/types.cuh"

namespace gpualgo {

// Waits until `threads` threads of whole warps have come to a barrier.
__device__ inline void sync_warps(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" : : "r"(barrier), "r"(threads) : "memory");
}

}  // namespace gpualgo

#endif
