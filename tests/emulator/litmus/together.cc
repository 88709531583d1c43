// Steps that lanes or threads take together, and waits.
#include "litmus.h"
#include "parts/clock.cuh"

template <bool is_right>
void lane_not_in_mask(Memory memory) {
  const uint32 lanes = is_right ? 0xffffffffu : 0xfffffffeu;
  memory.out[threadIdx.x] = ptx::shfl_sync(lanes, threadIdx.x, 1);
}
LITMUS(lane_not_in_mask)

template <bool is_right>
void masks_overlap(Memory memory) {
  const bool is_low = threadIdx.x < 16;
  const uint32 lanes = is_right ? (is_low ? 0xffffu : 0xffff0000u)
                       : is_low ? 0x1ffffu
                                : 0xffff0000u;
  memory.out[threadIdx.x] = ptx::ballot_sync(lanes, true);
}
LITMUS(masks_overlap)

template <bool is_right>
void kinds_differ(Memory memory) {
  if (threadIdx.x < 16 || is_right) {
    memory.out[threadIdx.x] = ptx::any_sync(0xffffffffu, true);
  } else {
    memory.out[threadIdx.x] = ptx::ballot_sync(0xffffffffu, true);
  }
}
LITMUS(kinds_differ)

template <bool is_right>
void lane_does_not_come(Memory memory) {
  auto& shared = ptx::shared_memory<Table>();
  if (threadIdx.x == 0) shared.words[0] = 0;
  ptx::syncthreads();
  if (threadIdx.x == 5 && !is_right) {
    while (ptx::ld_relaxed_cta(&shared.words[0]) == 0) {
    }
  }
  memory.out[threadIdx.x] = ptx::shfl_up_sync(0xffffffffu, threadIdx.x, 1);
  ptx::st_relaxed_cta(&shared.words[0], 1u);
}
LITMUS(lane_does_not_come)

// A lane that has gone leaves nothing to shuffle: out must be 5.
template <bool is_right>
void shuffle_from_nobody(Memory memory) {
  if (threadIdx.x >= 16) return;
  memory.out[threadIdx.x] = ptx::shfl_sync(0xffffffffu, 5, is_right ? 3 : 20);
}
LITMUS(shuffle_from_nobody)

// Who calls is not known: all lanes would be 32.
template <bool is_right>
void active_lanes(Memory memory) {
  const uint32 lanes = ptx::activemask();
  memory.out[threadIdx.x] = is_right ? 32 : ptx::popc(lanes);
}
LITMUS(active_lanes)

template <bool is_right>
void barrier_counts_differ(Memory memory) {
  ptx::bar_sync(1, threadIdx.x < 32 || is_right ? 64 : 32);
  memory.out[0] = 1;
}
LITMUS(barrier_counts_differ)

// A barrier of a count does not care who has gone.
template <bool is_right>
void thread_goes_before_barrier(Memory memory) {
  if (threadIdx.x == 63 && !is_right) return;
  ptx::bar_sync(1, 64);
  memory.out[0] = 1;
}
LITMUS(thread_goes_before_barrier)

// Barriers of two halves, each other's.
template <bool is_right>
void barriers_crossed(Memory memory) {
  if (threadIdx.x < 32) {
    ptx::bar_sync(1, 64);
    ptx::bar_sync(2, 64);
  } else {
    ptx::bar_sync(is_right ? 1 : 2, 64);
    ptx::bar_sync(is_right ? 2 : 1, 64);
  }
  memory.out[0] = 1;
}
LITMUS(barriers_crossed)

template <bool is_right>
void barrier_votes_differ(Memory memory) {
  if (threadIdx.x < 32 || is_right) {
    memory.out[threadIdx.x] = ptx::syncthreads_count(true);
  } else {
    memory.out[threadIdx.x] = ptx::syncthreads_and(true);
  }
}
LITMUS(barrier_votes_differ)

template <bool is_right>
void word_that_nobody_writes(Memory memory) {
  if (blockIdx.x == 0) {
    ptx::st_relaxed_gpu(memory.words, 1);
  } else {
    wait_for(memory.words, is_right ? 1 : 2);
  }
}
LITMUS(word_that_nobody_writes)

// A look-back of many lanes: each polls the words of all blocks before, which are stored late and
// after long steps that nobody else sees. Nothing is wrong with it, however many poll in vain.
template <bool is_right>
void patient_lanes(Memory memory) {
  auto& shared = ptx::shared_memory<Table>();
  const unsigned mine = blockIdx.x;
  uint32 sum = 1;
  for (int round = 0; round < 20; ++round) {
    shared.words[threadIdx.x] = sum;
    ptx::syncthreads();
    sum = shared.words[(threadIdx.x + 1) % blockDim.x];
    ptx::syncthreads();
    if (threadIdx.x < 32) sum = ptx::shfl_xor_sync(0xffffffffu, sum, 1);
  }
  if (threadIdx.x == 0 && (is_right || mine != 2)) {
    ptx::st_relaxed_gpu(memory.words + 2 * mine, uint64(1) << 32 | sum);
    ptx::st_relaxed_gpu(memory.words + 2 * mine + 1, uint64(1) << 32 | sum);
  }
  for (unsigned i = threadIdx.x; i < 2 * mine; i += blockDim.x) {
    while (ptx::ld_relaxed_gpu(memory.words + i) >> 32 != 1) {
    }
  }
  const unsigned before = mine == 0 ? 0 : mine - 1;  // all lanes wait for one more
  while (mine != 0 && ptx::ld_relaxed_gpu(memory.words + 2 * before) >> 32 != 1) {
  }
  ptx::syncthreads();
  if (threadIdx.x == 0) memory.out[mine] = sum;
}
LITMUS(patient_lanes)

// The same by rounds of a whole block, with barriers: each is a step, and nothing comes of it.
template <bool is_right>
void patient_blocks(Memory memory) {
  auto& shared = ptx::shared_memory<Table>();
  const unsigned mine = blockIdx.x;
  if (threadIdx.x == 0 && (is_right || mine != 1)) ptx::st_relaxed_gpu(memory.words + mine, 1);
  while (true) {
    const bool is_there = mine == 0 || ptx::ld_relaxed_gpu(memory.words + mine - 1) == 1;
    if (threadIdx.x == 0) ptx::st_relaxed_cta(&shared.words[0], 1u);
    if (ptx::syncthreads_and(is_there)) break;
  }
  memory.out[mine] = 1;
}
LITMUS(patient_blocks)

// Waits for the block before it, or for the one after, which may need its room.
template <bool is_right>
void later_block(Memory memory) {
  const unsigned mine = blockIdx.x;
  ptx::st_relaxed_gpu(memory.words + mine, 1);
  const unsigned other = is_right ? (mine == 0 ? 0 : mine - 1) : (mine == 3 ? 3 : mine + 1);
  wait_for(memory.words + other, 1);
}
LITMUS(later_block)

template <bool is_right>
void spins_without_end(Memory memory) {
  for (uint32 i = 0; !is_right || i < 3; ++i) {
    memory.data[0] = i;
    ptx::nanosleep(1);
  }
}
LITMUS(spins_without_end)

template <bool is_right>
void waits_for_the_clock(Memory memory) {
  const uint32 since = ptx::clock_cycles();
  if (is_right) {
    wait_cycles(since, 300);
  } else {
    while (ptx::clock_cycles() - since < 300) {
    }
  }
  memory.out[threadIdx.x] = ptx::clock_cycles() - since;
}
LITMUS(waits_for_the_clock)

template <bool is_right>
uint32 deep(uint32 depth) {
  uint32 frame[64];
  for (uint32& word : frame) word = depth;
  asm volatile("" : : "r"(frame) : "memory");
  ptx::nanosleep(1);
  return depth == 0 ? 0 : frame[depth % 64] + deep<is_right>(depth - 1);
}
template <bool is_right>
void deep_stack(Memory memory) {
  memory.out[0] = deep<is_right>(is_right ? 10 : 230);
}
LITMUS(deep_stack)
