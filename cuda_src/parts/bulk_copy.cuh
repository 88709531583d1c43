// Bulk copies from global to shared memory, which run beside the threads (sm_90 and later): they
// pass by the queue in which a thread's own loads and stores wait for each other.
#ifndef GPUALGO_PARTS_BULK_COPY_CUH
#define GPUALGO_PARTS_BULK_COPY_CUH

#include "parts/ptx.cuh"

namespace gpualgo {

// Counts the bytes of copies into shared memory. A phase ends when one thread has announced how
// many are to come and all have.
struct CopyBarrier {
  alignas(8) uint64 state;

  // By one thread; then a fence, then a barrier of the block.
  __device__ void init() { ptx::mbarrier_init(&state, 1); }
  __device__ static void fence_init() { ptx::fence_proxy_async(); }

  __device__ void announce(uint32 bytes) { ptx::mbarrier_arrive_expect_tx(&state, bytes); }

  // Begins a copy whose bytes were announced. Addresses and sizes are multiples of 16 bytes.
  __device__ void load(void* shared, const void* global, uint32 bytes) {
    ptx::cp_async_bulk_shared_global(shared, global, bytes, &state);
  }

  // Whether the phase of this parity has ended: 0 for the first, 1 for the second, and so on.
  __device__ bool has_ended(uint32 parity) { return ptx::mbarrier_try_wait_parity(&state, parity); }
  __device__ void wait(uint32 parity) {
    while (!has_ended(parity)) {
    }
  }
};

}  // namespace gpualgo

#endif
