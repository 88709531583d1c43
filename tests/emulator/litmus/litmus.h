// Small kernels, each twice: right, and wrong in one place.
#ifndef GPUALGO_EMULATOR_LITMUS_H
#define GPUALGO_EMULATOR_LITMUS_H

#include "parts/intrinsics.cuh"
#include "parts/ptx.cuh"

using namespace gpualgo;

constexpr int num_words = 64;

// Global memory of a litmus. All but `fresh` are zero at first.
struct Memory {
  uint32* data;   // for plain accesses
  uint64* words;  // for relaxed ones
  uint32* out;
  uint32* fresh;
};

#define LITMUS(name)                                                                   \
  extern "C" void name##_right(const void* memory) { emu::call(&name<true>, memory); } \
  extern "C" void name##_wrong(const void* memory) { emu::call(&name<false>, memory); }

inline void wait_for(const uint64* word, uint64 value) {
  while (ptx::ld_relaxed_gpu(word) != value) {
  }
}
inline void fence_device(EmuOrder order = emu_seq_cst) { emu_fence(order, emu_device_scope); }

struct Table {
  uint32 words[256];
};

#endif
