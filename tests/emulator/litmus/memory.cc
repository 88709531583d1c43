// Plain accesses: bounds, alignment, what nobody wrote, races.
#include "litmus.h"

template <bool is_right>
void past_the_end(Memory memory) {
  const auto* bytes = reinterpret_cast<const uint8*>(memory.data);
  memory.out[0] = bytes[num_words * 4 - (is_right ? 1 : 0)];
}
LITMUS(past_the_end)

template <bool is_right>
void before_the_begin(Memory memory) {
  reinterpret_cast<uint8*>(memory.data)[is_right ? 0 : -1] = 1;
}
LITMUS(before_the_begin)

// A vector of which the last byte lies outside.
template <bool is_right>
void vector_at_the_end(Memory memory) {
  const auto* bytes = reinterpret_cast<const uint8*>(memory.data);
  struct Bytes {
    uint8 bytes[16];
  };
  const auto* end = reinterpret_cast<const Bytes*>(bytes + num_words * 4 - (is_right ? 16 : 15));
  *reinterpret_cast<Bytes*>(memory.out) = *end;
}
LITMUS(vector_at_the_end)

template <bool is_right>
void misaligned_vector(Memory memory) {
  const uint4 vector = *reinterpret_cast<const uint4*>(memory.data + (is_right ? 4 : 1));
  memory.out[0] = vector.x;
}
LITMUS(misaligned_vector)

template <bool is_right>
void past_shared(Memory memory) {
  auto& shared = ptx::shared_memory<Table>();
  uint32* words = shared.words;
  asm("" : "+r"(words));
  words[is_right ? 255 : 256] = 1;
  memory.out[0] = words[255 + !is_right];
}
LITMUS(past_shared)

template <bool is_right>
void past_an_array_in_a_struct(Memory memory) {
  struct Two {
    uint32 first[4], second[4];
  };
  auto& shared = ptx::shared_memory<Two>();
  shared.second[0] = 1;
  const int index = int(memory.data[0]) + (is_right ? 3 : 4);
  shared.first[index] = 1;
  memory.out[0] = shared.second[0];
}
LITMUS(past_an_array_in_a_struct)

template <bool is_right>
void uninitialised_shared(Memory memory) {
  auto& shared = ptx::shared_memory<Table>();
  if (is_right) shared.words[5] = 0;
  memory.out[0] = shared.words[5];
}
LITMUS(uninitialised_shared)

template <bool is_right>
void uninitialised_global(Memory memory) {
  if (is_right) memory.fresh[3] = 1;
  memory.fresh[3] += 1;
}
LITMUS(uninitialised_global)

// A vector's last byte was not written.
template <bool is_right>
void uninitialised_byte(Memory memory) {
  auto* bytes = reinterpret_cast<uint8*>(memory.fresh);
  for (int i = 0; i < (is_right ? 16 : 15); ++i) bytes[i] = 1;
  *reinterpret_cast<uint4*>(memory.out) = *reinterpret_cast<const uint4*>(bytes);
}
LITMUS(uninitialised_byte)

// Copies may take along what nobody wrote; who reads the copy may not.
template <bool is_right>
void uninitialised_copy(Memory memory) {
  auto& shared = ptx::shared_memory<Table>();
  memory.fresh[0] = 1;
  ptx::cp_async_ca<8>(shared.words, memory.fresh);
  ptx::cp_async_commit_group();
  ptx::cp_async_wait_group<0>();
  memory.out[0] = shared.words[is_right ? 0 : 1];
}
LITMUS(uninitialised_copy)

// Lanes may load what nobody wrote, as long as it makes no difference.
template <bool is_right>
void uninitialised_and_used(Memory memory) {
  auto& shared = ptx::shared_memory<Table>();
  if (threadIdx.x < 5) shared.words[threadIdx.x] = threadIdx.x;
  ptx::syncwarp();
  const uint32 loaded = shared.words[threadIdx.x];
  const uint32 other = ptx::shfl_down_sync(0xffffffffu, loaded, 1);
  if (threadIdx.x < (is_right ? 4 : 5)) memory.out[threadIdx.x] = loaded + other;
}
LITMUS(uninitialised_and_used)

// A flag that is false at first, on some days: what it decides shows elsewhere.
template <bool is_right>
void uninitialised_flag(Memory memory) {
  auto& shared = ptx::shared_memory<Table>();
  if (is_right && threadIdx.x == 0) shared.words[0] = 0;
  ptx::syncthreads();
  if (threadIdx.x == 33 && memory.data[0] != 0) ptx::st_relaxed_cta(&shared.words[0], 1u);
  ptx::syncthreads();
  if (ptx::ld_relaxed_cta(&shared.words[0]) == 0) memory.data[threadIdx.x] = 7;
}
LITMUS(uninitialised_flag)

// A maximum of words of which one was left out: another value there is the greatest, or not.
template <bool is_right>
void uninitialised_maximum(Memory memory) {
  auto& shared = ptx::shared_memory<Table>();
  if (is_right || threadIdx.x != 9) shared.words[threadIdx.x] = 1u << 31;
  ptx::syncwarp();
  uint32 greatest = shared.words[threadIdx.x];
  for (int delta = 16; delta > 0; delta /= 2) {
    const uint32 other = ptx::shfl_xor_sync(0xffffffffu, greatest, delta);
    greatest = other > greatest ? other : greatest;
  }
  memory.out[threadIdx.x] = greatest;
}
LITMUS(uninitialised_maximum)

// A counter that nobody has set to zero.
template <bool is_right>
void uninitialised_atomic(Memory memory) {
  if (is_right) memory.fresh[0] = 0;
  ptx::atom_add_relaxed_gpu(memory.fresh, 1u);
}
LITMUS(uninitialised_atomic)

// A thread's own variable, changed by another.
template <bool is_right>
void foreign_stack(Memory memory) {
  auto& shared = ptx::shared_memory<uint32*>();
  uint32 own = 1;
  if (threadIdx.x == 0) shared = &own;
  ptx::syncthreads();
  if (threadIdx.x == (is_right ? 0 : 1)) *shared = 2;
  ptx::syncthreads();
  memory.out[threadIdx.x] = own;
}
LITMUS(foreign_stack)

// --- races: two warps, or two blocks ---

template <bool is_right>
void missing_barrier(Memory memory) {
  auto& shared = ptx::shared_memory<Table>();
  shared.words[threadIdx.x] = threadIdx.x;
  if (is_right) ptx::syncthreads();
  memory.out[threadIdx.x] = shared.words[blockDim.x - 1 - threadIdx.x];
}
LITMUS(missing_barrier)

// A second use of the same memory.
template <bool is_right>
void missing_second_barrier(Memory memory) {
  auto& shared = ptx::shared_memory<Table>();
  for (uint32 round = 0; round < 2; ++round) {
    shared.words[threadIdx.x] = round;
    ptx::syncthreads();
    memory.out[threadIdx.x] += shared.words[blockDim.x - 1 - threadIdx.x];
    if (is_right) ptx::syncthreads();
  }
}
LITMUS(missing_second_barrier)

template <bool is_right>
void missing_syncwarp(Memory memory) {
  auto& shared = ptx::shared_memory<Table>();
  shared.words[threadIdx.x] = threadIdx.x;
  if (is_right) ptx::syncwarp();
  memory.out[threadIdx.x] = shared.words[threadIdx.x ^ 1];
}
LITMUS(missing_syncwarp)

template <bool is_right>
void vote_is_no_barrier(Memory memory) {
  auto& shared = ptx::shared_memory<Table>();
  shared.words[threadIdx.x] = threadIdx.x;
  const bool is_true = ptx::any_sync(0xffffffffu, threadIdx.x == 3);
  if (is_right) ptx::syncwarp();
  memory.out[threadIdx.x] = shared.words[threadIdx.x ^ 1] + is_true;
}
LITMUS(vote_is_no_barrier)

// Read, vote, written: an error by the letter alone (races = 2).
template <bool is_right>
void read_vote_write(Memory memory) {
  auto& shared = ptx::shared_memory<Table>();
  shared.words[threadIdx.x] = threadIdx.x;
  ptx::syncwarp();
  memory.out[threadIdx.x] = shared.words[threadIdx.x ^ 1];
  ptx::any_sync(0xffffffffu, true);
  if (is_right) ptx::syncwarp();
  shared.words[threadIdx.x] = 0;
}
LITMUS(read_vote_write)

// Lanes may write one value to one place, not several.
template <bool is_right>
void writes_of_one_value(Memory memory) {
  auto& shared = ptx::shared_memory<Table>();
  shared.words[0] = is_right ? 7 : threadIdx.x;
  ptx::syncthreads();
  memory.out[threadIdx.x] = shared.words[0];
}
LITMUS(writes_of_one_value)

template <bool is_right>
void race_between_blocks(Memory memory) {
  memory.data[is_right ? blockIdx.x : 0] += 1;
}
LITMUS(race_between_blocks)

// Neighbouring bytes are no race.
template <bool is_right>
void bytes_of_a_word(Memory memory) {
  auto* bytes = reinterpret_cast<uint8*>(memory.data);
  if (is_right) {
    bytes[threadIdx.x] = uint8(threadIdx.x);
  } else {
    bytes[threadIdx.x / 2] = uint8(threadIdx.x);
  }
}
LITMUS(bytes_of_a_word)

// A word that some change atomically and one writes plainly.
template <bool is_right>
void plain_beside_atomic(Memory memory) {
  if (threadIdx.x == 0 && !is_right) memory.words[0] = 3;
  ptx::atom_add_relaxed_gpu(memory.words, uint64(1));
}
LITMUS(plain_beside_atomic)
