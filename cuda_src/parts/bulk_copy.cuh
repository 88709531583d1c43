// Copies between global and shared memory that run beside the threads (bulk copies, sm_90 and
// later): they pass by the queue in which a thread's own loads and stores wait for each other.
// Addresses and sizes are multiples of 16 bytes.
#ifndef GPUALGO_PARTS_BULK_COPY_CUH
#define GPUALGO_PARTS_BULK_COPY_CUH

#include "parts/types.cuh"

namespace gpualgo {

__device__ inline uint32 shared_address(const void* pointer) {
  return uint32(__cvta_generic_to_shared(pointer));
}

// Counts the bytes of copies into shared memory. A phase ends when one thread has announced how
// many are to come and all have.
struct CopyBarrier {
  alignas(8) uint64 state;

  // By one thread; then a fence, then a barrier of the block.
  __device__ void init() {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" : : "r"(shared_address(&state)) : "memory");
  }
  __device__ static void fence_init() { asm volatile("fence.proxy.async;" : : : "memory"); }

  __device__ void announce(uint32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
                 :
                 : "r"(shared_address(&state)), "r"(bytes)
                 : "memory");
  }

  // Whether the phase of this parity has ended: 0 for the first, 1 for the second, and so on.
  __device__ bool has_ended(uint32 parity) {
    uint32 is_done;
    asm volatile(
        "{\n .reg .pred done;\n"
        " mbarrier.try_wait.parity.shared.b64 done, [%1], %2;\n"
        " selp.u32 %0, 1, 0, done;\n}"
        : "=r"(is_done)
        : "r"(shared_address(&state)), "r"(parity)
        : "memory");
    return is_done;
  }
  __device__ void wait(uint32 parity) {
    while (!has_ended(parity)) {
    }
  }
};

__device__ inline void bulk_load(void* shared, const void* global, uint32 bytes,
                                 CopyBarrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      :
      : "r"(shared_address(shared)), "l"(__cvta_generic_to_global(global)), "r"(bytes),
        "r"(shared_address(&barrier.state))
      : "memory");
}

// Makes what this thread wrote to shared memory visible to the bulk copies that follow.
__device__ inline void fence_before_bulk() {
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
}

__device__ inline void bulk_store(void* global, const void* shared, uint32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
               :
               : "l"(__cvta_generic_to_global(global)), "r"(shared_address(shared)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" : : : "memory");
}

// Waits until this thread's bulk stores have read shared memory.
__device__ inline void wait_bulk_stores() {
  asm volatile("cp.async.bulk.wait_group.read 0;" : : : "memory");
}

}  // namespace gpualgo

#endif
