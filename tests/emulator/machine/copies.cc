#include "copies.h"

#include <string.h>

#include <algorithm>

#include "access.h"
#include "kernel_calls.h"
#include "late_stores.h"
#include "mbarriers.h"
#include "order.h"
#include "report.h"
#include "reruns.h"
#include "scheduler.h"

namespace emu {

namespace {

struct Copy {
  enum Kind { to_shared, bulk_load, bulk_store } kind;
  Thread* thread;
  Bytes target, source;
  uint32_t group;    // of the thread's copies of this kind
  uint64_t barrier;  // that a bulk load tells, by address
  bool has_read = false;
  std::vector<char> data;
  std::vector<bool> is_written;
};
std::vector<Copy> copies;  // under way

void read(Copy& copy) {
  const char* source = reinterpret_cast<const char*>(copy.source.address());
  copy.data.assign(source, source + copy.source.size);
  const Region& region = *copy.source.region;
  if (!region.is_written(copy.source.offset, copy.source.size)) {
    for (uint64_t i = 0; i < copy.source.size; ++i) {
      copy.is_written.push_back(region.is_written(copy.source.offset + i, 1));
      if (launch.is_second && !region.is_shared && !copy.is_written[i]) {
        copy.data[i] = char(~copy.data[i]);
      }
    }
  }
  copy.has_read = true;
  ++launch.progress;
  ++launch.effects;
}

void write(size_t number) {
  Copy copy = std::move(copies[number]);
  copies.erase(copies.begin() + ptrdiff_t(number));
  Region& region = *copy.target.region;
  will_write(region, copy.target.offset, copy.target.size);
  memcpy(reinterpret_cast<void*>(copy.target.address()), copy.data.data(), copy.data.size());
  region.set_written(copy.target.offset, copy.target.size);
  for (uint64_t i = 0; i < copy.is_written.size(); ++i) {
    if (!copy.is_written[i]) region.set_written(copy.target.offset + i, 1, false);
  }
  forget_words(region, copy.target.offset, copy.target.size);
  if (copy.kind == Copy::bulk_load) {
    bytes_have_come(*copy.thread->block, copy.barrier, uint32_t(copy.target.size));
  }
  ++launch.stats.copies;
  ++launch.progress;
  ++launch.effects;
}

// Carries out a thread's copies of groups before `end`, or their reads alone.
void carry_out(Thread& thread, Copy::Kind kind, uint32_t end, bool only_reads) {
  for (size_t i = 0; i < copies.size();) {
    Copy& copy = copies[i];
    const bool is_meant = copy.thread == &thread && copy.kind == kind && copy.group < end;
    if (is_meant && !copy.has_read) read(copy);
    if (is_meant && !only_reads) {
      write(i);
    } else {
      ++i;
    }
  }
}

uint32_t groups_to_await(uint32_t num_groups, uint32_t left) {
  return num_groups > left ? num_groups - left : 0;
}

// The epoch of group g is g + 1: from now on the thread knows the first `end` groups.
void know_groups(Thread& thread, AgentGroup agents, uint32_t end) {
  if (launch.finds_races()) thread.view.before.raise(thread.agent_of(agents), end);
}

// Who a copy is when it reads, and when it writes.
struct Agents {
  Agent reader, writer;
  uint32_t epoch;
};

void start(Copy copy, const Agents& agents, uint32_t place) {
  const uint8_t how = copy.kind == Copy::to_shared ? is_copy : is_copy | is_bulk;
  const bool is_load = copy.kind != Copy::bulk_store;
  if (copy.target.region == nullptr || copy.source.region == nullptr ||
      copy.target.region->is_shared != is_load || copy.source.region->is_shared == is_load) {
    fail(place, "COPY: one side must lie in shared memory, the other in global memory");
  }
  flush_stores(*copy.thread);
  check_copy_races(copy.source, how, place, agents.reader, agents.epoch);
  check_copy_races(copy.target, how | is_write, place, agents.writer, agents.epoch);
  copies.push_back(std::move(copy));
  maybe_switch();
}

Copy copy_of(Copy::Kind kind, void* target, const void* source, uint32_t bytes, uint32_t place) {
  look_at_late_write();
  Copy copy{};
  copy.kind = kind;
  copy.thread = launch.current;
  copy.target = find_bytes(reinterpret_cast<uint64_t>(target), bytes, is_copy | is_write, place);
  copy.source = find_bytes(reinterpret_cast<uint64_t>(source), bytes, is_copy, place);
  return copy;
}

// The agent of bulk loads is their mbarrier, its epochs are the phases.
Agents agents_of_load(void* barrier, uint32_t place) {
  const Mbarrier& told = mbarrier_of_load(barrier, place);
  const Agent agent = told.agent_in(*launch.current->block);
  return {agent, agent, told.epoch};
}

void check_bulk(const void* target, const void* source, uint32_t bytes, uint32_t place) {
  const uint64_t all =
      reinterpret_cast<uint64_t>(target) | reinterpret_cast<uint64_t>(source) | bytes;
  if (all % 16 == 0) return;
  fail(place, "MISALIGNED bulk copy of %u bytes from %p to %p: they must be multiples of 16", bytes,
       source, target);
}

bool fail_at_end(const Thread& thread, const char* what) {
  launch.has_failed = true;
  say("COPY: %s ended and did not wait for its %s\n", agent_name(thread.agent).c_str(), what);
  return false;
}

}  // namespace

bool has_copies() { return !copies.empty(); }
void forget_copies() { copies.clear(); }

bool perform_some_copy() {
  if (copies.empty()) return false;
  const size_t number = launch.random.below(copies.size());
  if (copies[number].has_read) {
    write(number);
  } else {
    read(copies[number]);
  }
  return true;
}

bool check_copies_at_end(Block& block) {
  for (Thread& thread : block.threads) {
    const uint32_t group = thread.copy_group + thread.has_open_copies;
    if (thread.copies_awaited < group) return fail_at_end(thread, "copies to shared memory");
    if (thread.bulk_reads_awaited < thread.bulk_group + thread.has_open_bulk_stores) {
      return fail_at_end(thread, "bulk stores to have read shared memory");
    }
    carry_out(thread, Copy::bulk_store, ~0u, false);
  }
  return check_mbarriers_at_end(block);
}

}  // namespace emu

using namespace emu;

extern "C" {

void emu_copy_async(void* shared, const void* global, uint32_t bytes) {
  Thread& thread = *launch.current;
  check_alignment(reinterpret_cast<uint64_t>(shared), bytes, caller());
  check_alignment(reinterpret_cast<uint64_t>(global), bytes, caller());
  Copy copy = copy_of(Copy::to_shared, shared, global, bytes, caller());
  copy.group = thread.copy_group;
  thread.has_open_copies = true;
  const Agent agent = thread.agent_of(of_copies);
  start(std::move(copy), {agent, agent, thread.copy_group + 1}, caller());
}

void emu_copy_commit() {
  ++launch.current->copy_group;
  launch.current->has_open_copies = false;
}

void emu_copy_wait(uint32_t left) {
  Thread& thread = *launch.current;
  const uint32_t end = groups_to_await(thread.copy_group, left);
  carry_out(thread, Copy::to_shared, end, false);
  thread.copies_awaited = std::max(thread.copies_awaited, end);
  know_groups(thread, of_copies, end);
  maybe_switch();
}

void emu_bulk_load(void* shared, const void* global, uint32_t bytes, void* barrier) {
  check_bulk(shared, global, bytes, caller());
  Copy copy = copy_of(Copy::bulk_load, shared, global, bytes, caller());
  copy.barrier = reinterpret_cast<uint64_t>(barrier);
  start(std::move(copy), agents_of_load(barrier, caller()), caller());
}

void emu_bulk_store(void* global, const void* shared, uint32_t bytes) {
  check_bulk(global, shared, bytes, caller());
  Copy copy = copy_of(Copy::bulk_store, global, shared, bytes, caller());
  Thread& thread = *launch.current;
  copy.group = thread.bulk_group;
  thread.has_open_bulk_stores = true;
  start(std::move(copy),
        {thread.agent_of(of_bulk_reads), thread.agent_of(of_bulk_writes), copy.group + 1},
        caller());
}

void emu_bulk_commit() {
  ++launch.current->bulk_group;
  launch.current->has_open_bulk_stores = false;
}

void emu_bulk_wait(uint32_t left, int only_reads) {
  Thread& thread = *launch.current;
  const uint32_t end = groups_to_await(thread.bulk_group, left);
  carry_out(thread, Copy::bulk_store, end, only_reads != 0);
  thread.bulk_reads_awaited = std::max(thread.bulk_reads_awaited, end);
  know_groups(thread, of_bulk_reads, end);
  if (!only_reads) know_groups(thread, of_bulk_writes, end);
  maybe_switch();
}
}
