// Words that threads access at once: one thread a block, unless said otherwise.
#include "litmus.h"

// A plain value behind a flag.
template <bool is_right>
void message_passing(Memory memory) {
  if (blockIdx.x == 0) {
    memory.data[0] = 7;
    if (is_right) fence_device();
    ptx::st_relaxed_gpu(memory.words, 1);
  } else {
    wait_for(memory.words, 1);
    fence_device();
    memory.out[0] = memory.data[0];
  }
}
LITMUS(message_passing)

template <bool is_right>
void message_passing_reader(Memory memory) {
  if (blockIdx.x == 0) {
    memory.data[0] = 7;
    fence_device();
    ptx::st_relaxed_gpu(memory.words, 1);
  } else {
    wait_for(memory.words, 1);
    if (is_right) fence_device();
    memory.out[0] = memory.data[0];
  }
}
LITMUS(message_passing_reader)

// A fence of the block is none between blocks.
template <bool is_right>
void narrow_fence(Memory memory) {
  const EmuScope scope = is_right ? emu_device_scope : emu_block_scope;
  if (blockIdx.x == 0) {
    memory.data[0] = 7;
    emu_fence(emu_seq_cst, scope);
    ptx::st_relaxed_gpu(memory.words, 1);
  } else {
    wait_for(memory.words, 1);
    emu_fence(emu_seq_cst, scope);
    memory.out[0] = memory.data[0];
  }
}
LITMUS(narrow_fence)

// … but enough within one: two warps.
template <bool is_right>
void fence_in_block(Memory memory) {
  auto& shared = ptx::shared_memory<Table>();
  if (threadIdx.x == 0) shared.words[1] = 0;
  ptx::syncthreads();
  if (threadIdx.x == 0) {
    shared.words[0] = 7;
    if (is_right) ptx::threadfence_block();
    ptx::st_relaxed_cta(&shared.words[1], 1u);
  } else if (threadIdx.x == 32) {
    while (ptx::ld_relaxed_cta(&shared.words[1]) == 0) {
    }
    ptx::threadfence_block();
    memory.out[0] = shared.words[0];
  }
}
LITMUS(fence_in_block)

template <bool is_right>
void narrow_word(Memory memory) {
  const EmuScope scope = is_right ? emu_device_scope : emu_block_scope;
  emu_change(memory.words, 1, 0, 8, emu_add, emu_relaxed, scope);
}
LITMUS(narrow_word)

// out: the flag, then the value that was loaded after it.
template <bool is_right>
void relaxed_values(Memory memory) {
  if (blockIdx.x == 0) {
    ptx::st_relaxed_gpu(memory.words, 7);
    if (is_right) fence_device(emu_acq_rel);
    ptx::st_relaxed_gpu(memory.words + 1, 1);
  } else {
    memory.out[0] = ptx::ld_relaxed_gpu(memory.words + 1);
    if (is_right) fence_device(emu_acq_rel);
    memory.out[1] = ptx::ld_relaxed_gpu(memory.words);
  }
}
LITMUS(relaxed_values)

// Right or wrong on the reader's side alone: loads may change places.
template <bool is_right>
void load_reordering(Memory memory) {
  if (blockIdx.x == 0) {
    ptx::st_relaxed_gpu(memory.words, 7);
    fence_device(emu_acq_rel);
    ptx::st_relaxed_gpu(memory.words + 1, 1);
  } else {
    memory.out[0] = ptx::ld_relaxed_gpu(memory.words + 1);
    if (is_right) fence_device(emu_acq_rel);
    memory.out[1] = ptx::ld_relaxed_gpu(memory.words);
  }
}
LITMUS(load_reordering)

// Both may miss the other's store, unless fences of one order stand between.
template <bool is_right>
void store_buffering(Memory memory) {
  const int mine = blockIdx.x;
  ptx::st_relaxed_gpu(memory.words + mine, 1);
  fence_device(is_right ? emu_seq_cst : emu_acq_rel);
  memory.out[mine] = ptx::ld_relaxed_gpu(memory.words + 1 - mine);
}
LITMUS(store_buffering)

// Two readers may see two stores in different orders.
template <bool is_right>
void independent_reads(Memory memory) {
  const int mine = blockIdx.x;
  if (mine < 2) {
    ptx::st_relaxed_gpu(memory.words + mine, 1);
  } else {
    memory.out[2 * mine] = ptx::ld_relaxed_gpu(memory.words + mine % 2);
    fence_device(is_right ? emu_seq_cst : emu_acq_rel);
    memory.out[2 * mine + 1] = ptx::ld_relaxed_gpu(memory.words + 1 - mine % 2);
  }
}
LITMUS(independent_reads)

// The two last stores may be those that came first.
template <bool is_right>
void two_writes(Memory memory) {
  const int mine = blockIdx.x;
  ptx::st_relaxed_gpu(memory.words + mine, 1);
  if (is_right) fence_device(emu_acq_rel);
  ptx::st_relaxed_gpu(memory.words + 1 - mine, 2);
}
LITMUS(two_writes)

// A word's values are never seen backwards (right: one word; wrong: loads of two).
template <bool is_right>
void coherence(Memory memory) {
  if (blockIdx.x == 0) {
    for (int i = 1; i < 6; ++i) {
      ptx::st_relaxed_gpu(memory.words, i);
      ptx::st_relaxed_gpu(memory.words + 1, i);
    }
  } else {
    memory.out[0] = ptx::ld_relaxed_gpu(memory.words);
    memory.out[1] = ptx::ld_relaxed_gpu(memory.words + (is_right ? 0 : 1));
  }
}
LITMUS(coherence)

// … nor by a thread that was told by one which had seen a later one: two warps of block 1.
template <bool is_right>
void coherence_told(Memory memory) {
  if (blockIdx.x == 0) {
    for (int i = 1; i < 6 && threadIdx.x == 0; ++i) ptx::st_relaxed_gpu(memory.words, i);
    return;
  }
  if (threadIdx.x == 0) memory.out[0] = ptx::ld_relaxed_gpu(memory.words);
  if (is_right) ptx::syncthreads();
  if (threadIdx.x == 32) memory.out[1] = ptx::ld_relaxed_gpu(memory.words);
  if (!is_right) ptx::syncthreads();
}
LITMUS(coherence_told)

template <bool is_right>
void counting(Memory memory) {
  for (int i = 0; i < 4; ++i) {
    if (is_right) {
      ptx::atom_add_relaxed_gpu(memory.words, uint64(1));
    } else {
      ptx::st_relaxed_gpu(memory.words, ptx::ld_relaxed_gpu(memory.words) + 1);
    }
  }
}
LITMUS(counting)

// A value of two words that belong together; out: both.
template <bool is_right>
void torn_value(Memory memory) {
  if (blockIdx.x == 0) {
    ptx::st_relaxed_gpu(memory.words, uint64(1) << 32 | 5);
    ptx::st_relaxed_gpu(memory.words + 1, uint64(1) << 32 | 6);
  } else {
    uint64 first, second;
    do {
      first = ptx::ld_relaxed_gpu(memory.words);
      second = ptx::ld_relaxed_gpu(memory.words + 1);
    } while (first >> 32 != 1 || (is_right && second >> 32 != 1));
    memory.out[0] = uint32(first);
    memory.out[1] = uint32(second);
  }
}
LITMUS(torn_value)

template <bool is_right>
void last_block_order(Memory memory) {
  memory.data[blockIdx.x] = blockIdx.x + 1;
  const EmuOrder order = is_right ? emu_acq_rel : emu_relaxed;
  const uint64 before = emu_change(memory.words, 1, 0, 8, emu_add, order, emu_device_scope);
  if (before != gridDim.x - 1) return;
  for (unsigned i = 0; i < gridDim.x; ++i) memory.out[0] += memory.data[i];
}
LITMUS(last_block_order)

// The last block sums up what all threads of all blocks left: two warps each.
template <bool is_right>
void last_block_barrier(Memory memory) {
  auto& shared = ptx::shared_memory<Table>();
  memory.data[blockIdx.x * blockDim.x + threadIdx.x] = 1;
  if (is_right) ptx::syncthreads();
  if (threadIdx.x == 0) {
    shared.words[0] = emu_change(memory.words, 1, 0, 8, emu_add, emu_acq_rel, emu_device_scope);
  }
  ptx::syncthreads();
  if (shared.words[0] != gridDim.x - 1 || threadIdx.x != 0) return;
  for (unsigned i = 0; i < gridDim.x * blockDim.x; ++i) memory.out[0] += memory.data[i];
}
LITMUS(last_block_barrier)

// A chain of three blocks; the first value reaches the third through the second.
template <bool is_right>
void told_by_another(Memory memory) {
  if (blockIdx.x == 0) {
    memory.data[0] = 7;
    fence_device(emu_acq_rel);
    ptx::st_relaxed_gpu(memory.words, 1);
  } else if (blockIdx.x == 1) {
    wait_for(memory.words, 1);
    if (is_right) fence_device(emu_acq_rel);
    ptx::st_relaxed_gpu(memory.words + 1, 1);
  } else {
    wait_for(memory.words + 1, 1);
    fence_device(emu_acq_rel);
    memory.out[0] = memory.data[0];
  }
}
LITMUS(told_by_another)

// Stores and loads that release and acquire by themselves.
template <bool is_right>
void release_acquire(Memory memory) {
  if (blockIdx.x == 0) {
    memory.data[0] = 7;
    emu_store(memory.words, 1, 8, is_right ? emu_release : emu_relaxed, emu_device_scope);
  } else {
    while (emu_load(memory.words, 8, emu_acquire, emu_device_scope) == 0) {
    }
    memory.out[0] = memory.data[0];
  }
}
LITMUS(release_acquire)
