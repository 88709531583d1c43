// Waits by a multiprocessor's clock.
#ifndef GPUALGO_PARTS_CLOCK_CUH
#define GPUALGO_PARTS_CLOCK_CUH

#include "parts/ptx.cuh"

namespace gpualgo {

// Keeps the thread busy until so many cycles have passed since ptx::clock_cycles() was that, or for
// as many rounds, if that is sooner: each takes a cycle or more, so it is not while the clock runs.
// The sleep is there to be seen: of a loop that ends by itself and leaves nothing compilers leave
// nothing (ptxas for sm_75 does).
__device__ inline void wait_cycles(uint32 since, uint32 cycles) {
#pragma unroll 1
  for (uint32 rounds = 0; ptx::clock_cycles() - since < cycles; ++rounds) {
    if (rounds == cycles) return ptx::nanosleep(0);
  }
}

}  // namespace gpualgo

#endif
