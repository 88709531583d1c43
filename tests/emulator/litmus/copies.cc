// Asynchronous copies.
#include "litmus.h"

struct Stages {
  alignas(16) uint32 stages[2][32];
  alignas(8) uint64 barriers[2];
};

// --- by each thread: one warp ---

template <bool is_right>
void copy_not_awaited(Memory memory) {
  auto& shared = ptx::shared_memory<Stages>();
  ptx::cp_async_ca<4>(&shared.stages[0][threadIdx.x], memory.data + threadIdx.x);
  ptx::cp_async_commit_group();
  if (is_right) ptx::cp_async_wait_group<0>();
  memory.out[threadIdx.x] = shared.stages[0][threadIdx.x];
  ptx::cp_async_wait_group<0>();
}
LITMUS(copy_not_awaited)

template <bool is_right>
void copy_of_another_lane(Memory memory) {
  auto& shared = ptx::shared_memory<Stages>();
  ptx::cp_async_ca<4>(&shared.stages[0][threadIdx.x], memory.data + threadIdx.x);
  ptx::cp_async_commit_group();
  ptx::cp_async_wait_group<0>();
  if (is_right) ptx::syncwarp();
  memory.out[threadIdx.x] = shared.stages[0][31 - threadIdx.x];
}
LITMUS(copy_of_another_lane)

template <bool is_right>
void too_few_groups_awaited(Memory memory) {
  auto& shared = ptx::shared_memory<Stages>();
  for (int i = 0; i < 2; ++i) {
    ptx::cp_async_ca<4>(&shared.stages[i][threadIdx.x], memory.data + threadIdx.x);
    ptx::cp_async_commit_group();
  }
  ptx::cp_async_wait_group<1>();
  memory.out[threadIdx.x] = shared.stages[is_right ? 0 : 1][threadIdx.x];
  ptx::cp_async_wait_group<0>();
}
LITMUS(too_few_groups_awaited)

template <bool is_right>
void copy_at_the_end(Memory memory) {
  auto& shared = ptx::shared_memory<Stages>();
  ptx::cp_async_ca<4>(&shared.stages[0][threadIdx.x], memory.data + threadIdx.x);
  ptx::cp_async_commit_group();
  if (is_right) ptx::cp_async_wait_group<0>();
}
LITMUS(copy_at_the_end)

template <bool is_right>
void two_copies_to_one_place(Memory memory) {
  auto& shared = ptx::shared_memory<Stages>();
  for (int i = 0; i < 2; ++i) {
    ptx::cp_async_ca<4>(&shared.stages[0][threadIdx.x], memory.data + threadIdx.x);
    ptx::cp_async_commit_group();
    if (is_right) ptx::cp_async_wait_group<0>();
  }
  ptx::cp_async_wait_group<0>();
}
LITMUS(two_copies_to_one_place)

// --- bulk loads: one warp, of which lane 0 copies ---

enum Mistake {
  none,
  no_wait,
  wrong_phase,
  no_init,
  no_fence_after_init,
  no_announcement,
  one_arrival_more,
  overwritten,
  no_wait_at_all,
  too_few_bytes
};

template <Mistake mistake>
void load_in_bulk(Memory memory) {
  auto& shared = ptx::shared_memory<Stages>();
  uint64* barrier = &shared.barriers[0];
  if (threadIdx.x == 0) {
    if (mistake != no_init) ptx::mbarrier_init(barrier, 1);
    if (mistake != no_fence_after_init) ptx::fence_proxy_async();
  }
  ptx::syncwarp();
  for (uint32 round = 0; round < 2; ++round) {
    if (threadIdx.x == 0) {
      if (mistake == overwritten && round == 1) *barrier = 0;
      if (mistake != no_announcement) {
        ptx::mbarrier_arrive_expect_tx(barrier, mistake == too_few_bytes ? 64 : 128);
      }
      if (mistake == one_arrival_more) ptx::mbarrier_arrive_expect_tx(barrier, 0);
      ptx::cp_async_bulk_shared_global(shared.stages[0], memory.data, 128, barrier);
    }
    if (mistake == no_wait_at_all && round == 1) return;
    if (mistake != no_wait) {
      const uint32 parity = mistake == wrong_phase ? (round + 1) % 2 : round % 2;
      while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
      }
    }
    memory.out[threadIdx.x] += shared.stages[0][threadIdx.x];
    ptx::syncwarp();
  }
}

#define BULK_LOAD(name)                           \
  template <bool is_right>                        \
  void load_##name(Memory memory) {               \
    load_in_bulk<is_right ? none : name>(memory); \
  }                                               \
  LITMUS(load_##name)

BULK_LOAD(no_wait)
BULK_LOAD(wrong_phase)
BULK_LOAD(no_init)
BULK_LOAD(no_fence_after_init)
BULK_LOAD(no_announcement)
BULK_LOAD(one_arrival_more)
BULK_LOAD(overwritten)
BULK_LOAD(no_wait_at_all)
BULK_LOAD(too_few_bytes)

// What this launch wrote to global memory is read by a bulk load.
template <bool is_right>
void fence_for_global(Memory memory) {
  auto& shared = ptx::shared_memory<Stages>();
  uint64* barrier = &shared.barriers[0];
  memory.data[threadIdx.x] = threadIdx.x;
  if (threadIdx.x == 0) ptx::mbarrier_init(barrier, 1);
  if (is_right) {
    ptx::fence_proxy_async();
  } else {
    ptx::fence_proxy_async_shared_cta();
  }
  ptx::syncwarp();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(barrier, 128);
    ptx::cp_async_bulk_shared_global(shared.stages[0], memory.data, 128, barrier);
  }
  while (!ptx::mbarrier_try_wait_parity(barrier, 0)) {
  }
  memory.out[threadIdx.x] = shared.stages[0][threadIdx.x];
}
LITMUS(fence_for_global)

// --- bulk stores ---

enum StoreMistake {
  nothing,
  no_fence,
  no_syncwarp,
  no_wait_before_reuse,
  no_wait_at_end,
  misaligned
};

template <StoreMistake mistake>
void store_in_bulk(Memory memory) {
  auto& shared = ptx::shared_memory<Stages>();
  for (uint32 round = 0; round < 2; ++round) {
    shared.stages[0][threadIdx.x] = round + threadIdx.x;
    if (mistake != no_fence) ptx::fence_proxy_async_shared_cta();
    if (mistake != no_syncwarp) ptx::syncwarp();
    if (threadIdx.x == 0) {
      const int bytes = mistake == misaligned ? 100 : 128;
      ptx::cp_async_bulk_global_shared(memory.data + 32 * round, shared.stages[0], bytes);
      ptx::cp_async_bulk_commit_group();
      const bool is_last = round == 1;
      if (is_last ? mistake != no_wait_at_end : mistake != no_wait_before_reuse) {
        ptx::cp_async_bulk_wait_group_read<0>();
      }
    }
    ptx::syncwarp();
  }
}

#define BULK_STORE(name)                              \
  template <bool is_right>                            \
  void store_##name(Memory memory) {                  \
    store_in_bulk<is_right ? nothing : name>(memory); \
  }                                                   \
  LITMUS(store_##name)

BULK_STORE(no_fence)
BULK_STORE(no_syncwarp)
BULK_STORE(no_wait_before_reuse)
BULK_STORE(no_wait_at_end)
BULK_STORE(misaligned)

// To have read is not to have written: out is loaded by the same thread.
template <bool is_right>
void store_awaited_reads_only(Memory memory) {
  auto& shared = ptx::shared_memory<Stages>();
  shared.stages[0][threadIdx.x] = threadIdx.x;
  ptx::fence_proxy_async_shared_cta();
  ptx::syncwarp();
  if (threadIdx.x != 0) return;
  ptx::cp_async_bulk_global_shared(memory.data, shared.stages[0], 128);
  ptx::cp_async_bulk_commit_group();
  emu_bulk_wait(0, is_right ? 0 : 1);
  memory.out[0] = memory.data[5];
}
LITMUS(store_awaited_reads_only)
