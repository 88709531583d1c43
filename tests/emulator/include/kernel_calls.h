// What kernels compiled for the host call: each a step of the emulated machine.
#ifndef GPUALGO_EMULATOR_KERNEL_CALLS_H
#define GPUALGO_EMULATOR_KERNEL_CALLS_H

#include <stdint.h>

extern "C" {

struct EmuIndex {
  unsigned x, y, z;
};
// A frame belongs to one thread: what they return does not change in it.
EmuIndex emu_thread_index() __attribute__((const));
EmuIndex emu_block_index() __attribute__((const));
EmuIndex emu_block_size() __attribute__((const));
EmuIndex emu_grid_size() __attribute__((const));

// A static variable of shared memory, told from others by an address of its own; the memory that
// the launch adds, whatever its size.
void* emu_shared(const void* variable, uint64_t size, uint64_t alignment);
void* emu_dynamic_shared(uint64_t alignment);
uint32_t emu_to_shared(const void* address);
void* emu_from_shared(uint32_t address);

// Steps of the lanes of a warp.
enum EmuStep {
  emu_shuffle,
  emu_shuffle_up,
  emu_shuffle_down,
  emu_shuffle_xor,
  emu_ballot,
  emu_any,
  emu_all,
  emu_match,
  emu_sync
};
uint32_t emu_warp_step(int step, uint32_t lanes, uint32_t value, uint32_t argument, uint32_t width);
uint32_t emu_active_lanes();

// Of a block: threads 0 means all that have not ended.
enum EmuVote { emu_no_vote, emu_count, emu_and, emu_or };
uint32_t emu_barrier(int number, uint32_t threads, int is_true, int vote);

// Words that other threads access meanwhile. The scope of the system is that of the device.
enum EmuOrder { emu_relaxed, emu_acquire, emu_release, emu_acq_rel, emu_seq_cst };
enum EmuScope { emu_block_scope, emu_device_scope };
enum EmuChange {
  emu_add,
  emu_bit_and,
  emu_bit_or,
  emu_bit_xor,
  emu_exchange,
  emu_compare_exchange,
  emu_min_signed,
  emu_max_signed,
  emu_min_unsigned,
  emu_max_unsigned,
  emu_add_float
};
uint64_t emu_load(const void* address, int size, int order, int scope);
void emu_store(void* address, uint64_t value, int size, int order, int scope);
// Returns the old value. `expected` is for emu_compare_exchange alone.
uint64_t emu_change(void* address, uint64_t operand, uint64_t expected, int size, int change,
                    int order, int scope);
void emu_fence(int order, int scope);
void emu_sleep();
// Of a clock that goes on by any number of cycles between two looks, or stands still for a whole
// launch.
uint32_t emu_clock_cycles();

// Copies of a thread to shared memory.
void emu_copy_async(void* shared, const void* global, uint32_t bytes);
void emu_copy_commit();
void emu_copy_wait(uint32_t left);

// Bulk copies.
void emu_mbarrier_init(void* barrier, uint32_t count);
void emu_mbarrier_arrive(void* barrier, uint32_t bytes);  // and announces bytes
int emu_mbarrier_has_ended(void* barrier, uint32_t parity);
void emu_bulk_load(void* shared, const void* global, uint32_t bytes, void* barrier);
void emu_bulk_store(void* global, const void* shared, uint32_t bytes);
void emu_bulk_commit();
void emu_bulk_wait(uint32_t left, int only_reads);
// Of what was written to any memory, or to shared memory alone.
void emu_proxy_fence(int only_shared);

// a * b + c, rounded down.
float emu_fma_down_float(float a, float b, float c);
double emu_fma_down_double(double a, double b, double c);
}

#endif
