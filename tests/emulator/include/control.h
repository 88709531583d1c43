// What a test calls (by ctypes, tests/emulator/control.py): memory, launches, reports. All calls
// may come from any thread; one is served at a time.
#ifndef GPUALGO_EMULATOR_CONTROL_H
#define GPUALGO_EMULATOR_CONTROL_H

#include <stdint.h>

extern "C" {

// How a launch goes. Everything in it that is random follows from the seed, and from nothing else.
struct Settings {
  uint64_t seed;
  int32_t order;             // of threads: 0 random, 1 depth first, 2 by priority, 3 few switches
  int32_t residency;         // blocks that run at once; 0: all
  int32_t blocks_any_order;  // 0: blocks begin in the order of their indices
  int32_t races;             // 0 not looked for, 1 looked for, 2 also where only votes, shuffles or
                             // relaxed words stand between a read and a later write
  double preempt;            // probability of a switch at any access
  int32_t weak;              // relaxed words: 0 each store seen at once; 1 seen late, in any order
                             // that the memory model allows; 2 very late
  uint64_t max_steps;        // switches until the launch is given up; 0: no limit
  int32_t uninitialised;     // reads of what nobody wrote: 0 let pass, 1 reported in global memory,
                             // 2 in shared memory too, if other values there make a difference:
                             // the launch runs once more, and lanes may load what they do not use
};

// Memory of the device: exact bounds, never written, aligned to 4096 bytes.
void* emu_alloc(uint64_t size, const char* name);
void emu_free(void* memory);

// Memory of the host that kernels may use, as it is.
void emu_register(void* memory, uint64_t size, const char* name);
void emu_unregister(void* memory);

// 0, or 1 where a side lies in device memory but not wholly within one allocation (emu_report says
// so). What was never written is copied as such.
int emu_copy(void* target, const void* source, uint64_t bytes);
// Repeats a word `width` times in each of `height` rows.
int emu_fill(void* target, uint64_t pitch, const void* word, uint64_t word_bytes, uint64_t width,
             uint64_t height);

// Runs a kernel to its end: `entry` is emu_entry of its library, `op` the operator that
// gpualgo_operator calls, or null. Returns 0, or 1: emu_report says why.
int emu_launch(void* entry, void* op, uint32_t grid, uint32_t threads, uint64_t shared_bytes,
               const void* params, uint64_t param_bytes, const Settings* settings);

// The last failure of the calling thread. Its first words say which kind; @1f0 is an offset into
// the kernel's library.
const char* emu_report(void);

// Of the last launch: switches between threads, loads and stores, polls, copies, most blocks
// resident at once, most bytes of clocks at once, loads of older values, delayed stores.
enum { emu_num_stats = 8 };
void emu_stats(uint64_t* out);
}

#endif
