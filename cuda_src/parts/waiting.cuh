// Blocks that wait for each other: they all run at the same time (`groups` of a Launch).
#ifndef GPUALGO_PARTS_WAITING_CUH
#define GPUALGO_PARTS_WAITING_CUH

#include "parts/ptx.cuh"

namespace gpualgo {

// Returns once `wanted` blocks have come here since `arrived` was zero; what they wrote before is
// visible then. All threads of a block call it.
__device__ inline void wait_for_blocks(uint32* arrived, uint32 wanted) {
  ptx::syncthreads();
  if (threadIdx.x == 0) {
    ptx::atom_add_acq_rel_gpu<1>(arrived);
    while (ptx::ld_acquire_gpu(arrived) < wanted) {
    }
  }
  ptx::syncthreads();
}

}  // namespace gpualgo

#endif
