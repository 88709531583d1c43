// Reads and writes that other blocks see, and shared memory: the only places where a kernel
// talks to more than its own threads.
#ifndef GPUALGO_PARTS_MEMORY_ORDER_CUH
#define GPUALGO_PARTS_MEMORY_ORDER_CUH

#include "parts/types.cuh"

namespace gpualgo {

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

// Between kernels of one stream of which the later is launched while the earlier still runs (sm_90
// and later; driver.Launch asks for it). Its first step is to wait until the earlier one has ended
// and all that it wrote is there.
__device__ inline void await_previous_kernel() {
  asm volatile("griddepcontrol.wait;" : : : "memory");
}

// Lets the next kernel's blocks come as soon as all of this one's have begun.
__device__ inline void allow_next_kernel() {
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}

// Adds one to a counter; what this thread wrote before (and, after a barrier, what its block
// wrote) is visible to whoever sees the new value, and what others wrote before their additions
// is visible to this thread afterwards. Cheaper than fences around a relaxed addition.
__device__ inline uint32 arrive(uint32* counter) {
  uint32 before;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(counter))
               : "memory");
  return before;
}

// A word that other blocks read or write meanwhile; orders nothing but itself.
__device__ inline uint64 load_relaxed(const uint64* address) {
  uint64 value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
               : "=l"(value)
               : "l"(__cvta_generic_to_global(address))
               : "memory");
  return value;
}

__device__ inline void store_relaxed(uint64* address, uint64 value) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;"
               :
               : "l"(__cvta_generic_to_global(address)), "l"(value)
               : "memory");
}

// Tells the compiler that a pointer leads to global memory, where it cannot see that by itself.
template <class T>
__device__ inline T* in_global(T* pointer) {
  __builtin_assume(__isGlobal(pointer));
  return pointer;
}

// Adds to a word in global or shared memory that other threads add to as well; orders nothing.
// Returns what was there before; where that is not used, the addition does not wait for it.
template <class T>
__device__ inline T fetch_add(T* address, T value) {
  return atomicAdd(address, value);
}

// Reads what another block wrote in this launch: from L2, as L1 may hold an older line.
template <class T>
__device__ inline T load_shared_result(const T* address) {
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

}  // namespace gpualgo

#endif
