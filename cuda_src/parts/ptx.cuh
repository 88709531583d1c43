// What CUDA C++ has beyond C++: one small function for each instruction that our kernels ask for by
// name. No other file holds assembly, a declaration of shared memory, a CUDA intrinsic, an atomic
// or a volatile access (tests/test_cuda_source.py), so that a compiler of C++ alone can be given
// another file in place of this one.
//
// Here: memory, copies, barriers. Warps and arithmetic are in parts/intrinsics.cuh. A function is
// named as its PTX instruction (docs.nvidia.com/cuda/parallel-thread-execution), or as its CUDA
// intrinsic without the underscores. Where instructions order or see memory the name tells among
// whom: cta (the block) or gpu. `relaxed` orders nothing else; `acq_rel` makes what this thread
// wrote before visible to whoever sees the new value, and what others wrote before theirs visible
// to this thread afterwards. Addresses are generic.
#ifndef GPUALGO_PARTS_PTX_CUH
#define GPUALGO_PARTS_PTX_CUH

#include "parts/types.cuh"

namespace gpualgo::ptx {

// --- shared memory --------------------------------------------------------------------------

// A kernel's shared memory: one struct, taken once.
template <class Storage>
__device__ inline Storage& shared_memory() {
  __shared__ alignas(16) unsigned char bytes[sizeof(Storage)];
  return reinterpret_cast<Storage&>(bytes);
}

// The same, its size given at the launch: for more than 48 KB. Aligned so that the offset in a
// table of 1 KB is a part of the address.
template <class Storage>
__device__ inline Storage& dynamic_shared_memory() {
  extern __shared__ __align__(1024) unsigned char dynamic_bytes[];
  return *reinterpret_cast<Storage*>(dynamic_bytes);
}

// From a generic address to one within shared memory, and back.
__device__ inline uint32 cvta_to_shared(const void* address) {
  return uint32(__cvta_generic_to_shared(address));
}
__device__ inline void* cvta_shared(uint32 address) { return __cvta_shared_to_generic(address); }

// --- global memory --------------------------------------------------------------------------

// Tells the compiler that a pointer leads to global memory, where it cannot see that by itself.
template <class T>
__device__ inline T* assume_global(T* pointer) {
  __builtin_assume(__isGlobal(pointer));
  return pointer;
}

// A pointer to global memory that the compiler takes as it is, and does not put together anew at
// each use.
template <class T>
__device__ inline T* opaque_global(T* pointer) {
  uint64 address = __cvta_generic_to_global(pointer);
  asm("" : "+l"(address));
  return reinterpret_cast<T*>(__cvta_global_to_generic(address));
}

// A weak load of global memory from L2, as L1 may hold an older line: for what other blocks wrote
// before this one was told so.
template <class T>
__device__ inline T ld_cg(const T* address) {
  static_assert(sizeof(T) <= 16);
  T result;
  if constexpr (sizeof(T) == 16) {
    uint4 word = __ldcg(reinterpret_cast<const uint4*>(address));
    memcpy(&result, &word, sizeof(T));
  } else if constexpr (sizeof(T) == 8) {
    uint2 word = __ldcg(reinterpret_cast<const uint2*>(address));
    memcpy(&result, &word, sizeof(T));
  } else if constexpr (sizeof(T) == 4) {
    uint32 word = __ldcg(reinterpret_cast<const uint32*>(address));
    memcpy(&result, &word, sizeof(T));
  } else if constexpr (sizeof(T) == 2) {
    uint16 word = __ldcg(reinterpret_cast<const uint16*>(address));
    memcpy(&result, &word, sizeof(T));
  } else {
    uint8 word = __ldcg(reinterpret_cast<const uint8*>(address));
    memcpy(&result, &word, sizeof(T));
  }
  return result;
}

// A word of global memory that other blocks read or write meanwhile.
__device__ inline uint64 ld_relaxed_gpu(const uint64* address) {
  uint64 value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
               : "=l"(value)
               : "l"(__cvta_generic_to_global(address))
               : "memory");
  return value;
}

__device__ inline void st_relaxed_gpu(uint64* address, uint64 value) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;"
               :
               : "l"(__cvta_generic_to_global(address)), "l"(value)
               : "memory");
}

__device__ inline uint32 ld_relaxed_gpu(const uint32* address) {
  uint32 value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
               : "=r"(value)
               : "l"(__cvta_generic_to_global(address))
               : "memory");
  return value;
}

// The same, and what whoever changed it by an acq_rel addition had written or seen is visible.
__device__ inline uint32 ld_acquire_gpu(const uint32* address) {
  uint32 value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
               : "=r"(value)
               : "l"(__cvta_generic_to_global(address))
               : "memory");
  return value;
}

__device__ inline void st_relaxed_gpu(uint32* address, uint32 value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;"
               :
               : "l"(__cvta_generic_to_global(address)), "r"(value)
               : "memory");
}

// Adds to a counter in global memory and returns what it was. Cheaper than fences around a relaxed
// addition.
template <int value>
__device__ inline uint32 atom_add_acq_rel_gpu(uint32* address) {
  uint32 before;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(address)), "n"(value)
               : "memory");
  return before;
}

// --- words that threads change together -----------------------------------------------------

// They return what was there before; where that is not used, the thread does not wait for it.
template <class T>
__device__ inline T atom_add_relaxed_gpu(T* address, T value) {
  return atomicAdd(address, value);
}
__device__ inline uint32 atom_or_relaxed_gpu(uint32* address, uint32 value) {
  return atomicOr(address, value);
}

__device__ inline uint64 atom_max_relaxed_gpu(uint64* address, uint64 value) {
  return atomicMax(reinterpret_cast<unsigned long long*>(address), value);
}

template <class T>
__device__ inline T atom_add_relaxed_cta(T* address, T value) {
  return atomicAdd_block(address, value);
}
__device__ inline uint32 atom_exch_relaxed_cta(uint32* address, uint32 value) {
  return atomicExch_block(address, value);
}
__device__ inline uint32 atom_or_relaxed_cta(uint32* address, uint32 value) {
  return atomicOr_block(address, value);
}
__device__ inline int32 atom_min_relaxed_cta(int32* address, int32 value) {
  return atomicMin(address, value);  // of wider scope: atomicMin_block makes longer machine code
}

// A word that warps of the block signal with; together with threadfence_block, more.
template <class T>
__device__ inline T ld_relaxed_cta(const T* address) {
  return *static_cast<const volatile T*>(address);  // PTX: relaxed, and of wider scope
}
template <class T>
__device__ inline void st_relaxed_cta(T* address, T value) {
  *static_cast<volatile T*>(address) = value;
}

__device__ inline void threadfence_block() { __threadfence_block(); }

// --- barriers and waits ---------------------------------------------------------------------

__device__ inline void syncthreads() { __syncthreads(); }
// Of all threads of the block: for how many it is true; whether it is for all.
__device__ inline int syncthreads_count(bool is_true) { return __syncthreads_count(is_true); }
__device__ inline int syncthreads_and(bool is_true) { return __syncthreads_and(is_true); }

// Waits until `threads` threads of whole warps have come. Barrier 0 is that of syncthreads.
__device__ inline void bar_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" : : "r"(barrier), "r"(threads) : "memory");
}

__device__ inline void nanosleep(uint32 nanoseconds) { __nanosleep(nanoseconds); }

// A multiprocessor's cycles, modulo 2^32.
__device__ inline uint32 clock_cycles() { return uint32(clock()); }

// Between kernels of one stream of which the later is launched while the earlier still runs (sm_90
// and later; driver.Launch asks for it). Its first step is to wait until the earlier one has ended
// and all that it wrote is there.
__device__ inline void griddepcontrol_wait() {
  asm volatile("griddepcontrol.wait;" : : : "memory");
}
// Lets the next kernel's blocks come as soon as all of this one's have begun.
__device__ inline void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}
// Both, for a kernel between two others.
template <bool overlaps>
__device__ inline void overlap_both() {
  if constexpr (overlaps) {
    griddepcontrol_launch_dependents();
    griddepcontrol_wait();
  }
}

// --- copies to shared memory by each thread (sm_80 and later) --------------------------------

// 16 bytes, past L1; `bytes` 4, 8 or 16. Addresses are multiples of the size.
__device__ inline void cp_async_cg_16(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :
               : "r"(cvta_to_shared(shared)), "l"(global)
               : "memory");
}
template <int bytes>
__device__ inline void cp_async_ca(void* shared, const void* global) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
               :
               : "r"(cvta_to_shared(shared)), "l"(global), "n"(bytes)
               : "memory");
}

// Ends a group of this thread's copies; waits until at most the last `left` groups are under way.
__device__ inline void cp_async_commit_group() {
  asm volatile("cp.async.commit_group;" : : : "memory");
}
template <int left>
__device__ inline void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" : : "n"(left) : "memory");
}

// --- bulk copies between shared and global memory (sm_90 and later) --------------------------

// Barriers in shared memory whose phases end when `count` arrivals and all announced bytes came.
// Their scope is cta; to arrive releases, to wait successfully acquires.
__device__ inline void mbarrier_init(uint64* barrier, uint32 count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;"
               :
               : "r"(cvta_to_shared(barrier)), "r"(count)
               : "memory");
}
__device__ inline void mbarrier_arrive_expect_tx(uint64* barrier, uint32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
               :
               : "r"(cvta_to_shared(barrier)), "r"(bytes)
               : "memory");
}
// Whether the phase of this parity has ended; may wait a while for it.
__device__ inline bool mbarrier_try_wait_parity(uint64* barrier, uint32 parity) {
  uint32 is_done;
  asm volatile(
      "{\n .reg .pred done;\n"
      " mbarrier.try_wait.parity.shared.b64 done, [%1], %2;\n"
      " selp.u32 %0, 1, 0, done;\n}"
      : "=r"(is_done)
      : "r"(cvta_to_shared(barrier)), "r"(parity)
      : "memory");
  return is_done;
}

// Makes what this thread wrote before, in any memory or in shared memory, visible to bulk copies.
__device__ inline void fence_proxy_async() { asm volatile("fence.proxy.async;" : : : "memory"); }
__device__ inline void fence_proxy_async_shared_cta() {
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
}

// Started by one thread. Addresses and sizes are multiples of 16 bytes. Loads tell the barrier.
__device__ inline void cp_async_bulk_shared_global(void* shared, const void* global, uint32 bytes,
                                                   uint64* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      :
      : "r"(cvta_to_shared(shared)), "l"(__cvta_generic_to_global(global)), "r"(bytes),
        "r"(cvta_to_shared(barrier))
      : "memory");
}
// Brings global memory to L2, sometime.
__device__ inline void cp_async_bulk_prefetch_l2(const void* global, uint32 bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;"
               :
               : "l"(__cvta_generic_to_global(global)), "r"(bytes)
               : "memory");
}
// Stores belong to the thread's group, which cp_async_bulk_commit_group ends.
__device__ inline void cp_async_bulk_global_shared(void* global, const void* shared, uint32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
               :
               : "l"(__cvta_generic_to_global(global)), "r"(cvta_to_shared(shared)), "r"(bytes)
               : "memory");
}
__device__ inline void cp_async_bulk_commit_group() {
  asm volatile("cp.async.bulk.commit_group;" : : : "memory");
}
// Waits until this thread's groups but the last `left` have read shared memory.
template <int left>
__device__ inline void cp_async_bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" : : "n"(left) : "memory");
}

// --- functions that the build defines -------------------------------------------------------

// The caller's operator (parts/words.cuh). It may read memory: arrays and numbers that it captures.
template <class Result, class... Word>
__device__ __attribute__((pure)) Result gpualgo_operator_words(Word... words);

}  // namespace gpualgo::ptx

#endif
