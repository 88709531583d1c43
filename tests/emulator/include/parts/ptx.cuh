// cuda_src/parts/ptx.cuh for the emulated machine: the same functions, as steps of the machine.
#ifndef GPUALGO_PARTS_PTX_CUH
#define GPUALGO_PARTS_PTX_CUH

#include "kernel_calls.h"
#include "parts/types.cuh"

// Inlined, so that a place in a report is the caller's.
#define STEP __attribute__((always_inline)) inline

namespace gpualgo::ptx {

// --- shared memory --------------------------------------------------------------------------

template <class Storage>
inline const char shared_variable = 0;  // whose address tells one Storage from another

template <class Storage>
STEP Storage& shared_memory() {
  constexpr uint64 alignment = alignof(Storage) < 16 ? 16 : alignof(Storage);
  return *static_cast<Storage*>(emu_shared(&shared_variable<Storage>, sizeof(Storage), alignment));
}
template <class Storage>
STEP Storage& dynamic_shared_memory() {
  return *static_cast<Storage*>(emu_dynamic_shared(1024));
}

STEP uint32 cvta_to_shared(const void* address) { return emu_to_shared(address); }
STEP void* cvta_shared(uint32 address) { return emu_from_shared(address); }

// --- global memory --------------------------------------------------------------------------

template <class T>
STEP T* assume_global(T* pointer) {
  return pointer;
}
template <class T>
STEP T* opaque_global(T* pointer) {
  return pointer;
}
template <class T>
STEP T ld_cg(const T* address) {
  return *address;
}

namespace detail {

template <class T>
STEP T load(const T* address, EmuScope scope, EmuOrder order = emu_relaxed) {
  const uint64 bits = emu_load(address, sizeof(T), order, scope);
  T value;
  memcpy(&value, &bits, sizeof(T));
  return value;
}
template <class T>
STEP void store(T* address, T value, EmuScope scope) {
  uint64 bits = 0;
  memcpy(&bits, &value, sizeof(T));
  emu_store(address, bits, sizeof(T), emu_relaxed, scope);
}
template <class T>
STEP T change(T* address, T operand, EmuChange how, EmuOrder order, EmuScope scope) {
  return T(emu_change(address, uint64(operand), 0, sizeof(T), how, order, scope));
}

}  // namespace detail

STEP uint64 ld_relaxed_gpu(const uint64* address) {
  return detail::load(address, emu_device_scope);
}
STEP void st_relaxed_gpu(uint64* address, uint64 value) {
  detail::store(address, value, emu_device_scope);
}
STEP uint32 ld_relaxed_gpu(const uint32* address) {
  return detail::load(address, emu_device_scope);
}
STEP uint32 ld_acquire_gpu(const uint32* address) {
  return detail::load(address, emu_device_scope, emu_acquire);
}
STEP void st_relaxed_gpu(uint32* address, uint32 value) {
  detail::store(address, value, emu_device_scope);
}
template <int value>
STEP uint32 atom_add_acq_rel_gpu(uint32* address) {
  return detail::change(address, uint32(value), emu_add, emu_acq_rel, emu_device_scope);
}

// --- words that threads change together -----------------------------------------------------

template <class T>
STEP T atom_add_relaxed_gpu(T* address, T value) {
  static_assert(T(1) / 2 == 0, "integers");
  return detail::change(address, value, emu_add, emu_relaxed, emu_device_scope);
}
STEP uint32 atom_or_relaxed_gpu(uint32* address, uint32 value) {
  return detail::change(address, value, emu_bit_or, emu_relaxed, emu_device_scope);
}
STEP uint64 atom_max_relaxed_gpu(uint64* address, uint64 value) {
  return detail::change(address, value, emu_max_unsigned, emu_relaxed, emu_device_scope);
}
template <class T>
STEP T atom_add_relaxed_cta(T* address, T value) {
  static_assert(T(1) / 2 == 0, "integers");
  return detail::change(address, value, emu_add, emu_relaxed, emu_block_scope);
}
STEP uint32 atom_exch_relaxed_cta(uint32* address, uint32 value) {
  return detail::change(address, value, emu_exchange, emu_relaxed, emu_block_scope);
}
STEP uint32 atom_or_relaxed_cta(uint32* address, uint32 value) {
  return detail::change(address, value, emu_bit_or, emu_relaxed, emu_block_scope);
}
STEP int32 atom_min_relaxed_cta(int32* address, int32 value) {
  return detail::change(address, value, emu_min_signed, emu_relaxed, emu_block_scope);
}
template <class T>
STEP T ld_relaxed_cta(const T* address) {
  return detail::load(address, emu_block_scope);
}
template <class T>
STEP void st_relaxed_cta(T* address, T value) {
  detail::store(address, value, emu_block_scope);
}
STEP void threadfence_block() { emu_fence(emu_seq_cst, emu_block_scope); }

// --- barriers and waits ---------------------------------------------------------------------

STEP void syncthreads() { emu_barrier(0, 0, 0, emu_no_vote); }
STEP int syncthreads_count(bool is_true) { return int(emu_barrier(0, 0, is_true, emu_count)); }
STEP int syncthreads_and(bool is_true) { return int(emu_barrier(0, 0, is_true, emu_and)); }
STEP void bar_sync(int barrier, int threads) {
  emu_barrier(barrier, uint32(threads), 0, emu_no_vote);
}
STEP void nanosleep(uint32) { emu_sleep(); }
STEP uint32 clock_cycles() { return emu_clock_cycles(); }
// Launches follow each other here.
STEP void griddepcontrol_wait() {}
STEP void griddepcontrol_launch_dependents() {}
template <bool overlaps>
STEP void overlap_both() {}

// --- copies to shared memory by each thread -------------------------------------------------

STEP void cp_async_cg_16(void* shared, const void* global) { emu_copy_async(shared, global, 16); }
template <int bytes>
STEP void cp_async_ca(void* shared, const void* global) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16);
  emu_copy_async(shared, global, bytes);
}
STEP void cp_async_commit_group() { emu_copy_commit(); }
template <int left>
STEP void cp_async_wait_group() {
  emu_copy_wait(left);
}

// --- bulk copies ----------------------------------------------------------------------------

STEP void mbarrier_init(uint64* barrier, uint32 count) { emu_mbarrier_init(barrier, count); }
STEP void mbarrier_arrive_expect_tx(uint64* barrier, uint32 bytes) {
  emu_mbarrier_arrive(barrier, bytes);
}
STEP bool mbarrier_try_wait_parity(uint64* barrier, uint32 parity) {
  return emu_mbarrier_has_ended(barrier, parity);
}
STEP void fence_proxy_async() { emu_proxy_fence(0); }
STEP void fence_proxy_async_shared_cta() { emu_proxy_fence(1); }
STEP void cp_async_bulk_shared_global(void* shared, const void* global, uint32 bytes,
                                      uint64* barrier) {
  emu_bulk_load(shared, global, bytes, barrier);
}
STEP void cp_async_bulk_prefetch_l2(const void* global, uint32 bytes) {
  // Looks at its first and its last words; both ends are multiples of 16.
  const char* const begin = static_cast<const char*>(global);
  if ((reinterpret_cast<uint64>(begin) | bytes) % 16 != 0) emu_load(begin + 1, 8, 0, 0);
  emu_load(begin, 8, emu_relaxed, emu_device_scope);
  emu_load(begin + bytes - 8, 8, emu_relaxed, emu_device_scope);
}
STEP void cp_async_bulk_global_shared(void* global, const void* shared, uint32 bytes) {
  emu_bulk_store(global, shared, bytes);
}
STEP void cp_async_bulk_commit_group() { emu_bulk_commit(); }
template <int left>
STEP void cp_async_bulk_wait_group_read() {
  emu_bulk_wait(left, 1);
}

}  // namespace gpualgo::ptx

#undef STEP

#endif
