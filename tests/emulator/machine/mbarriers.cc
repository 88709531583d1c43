#include "mbarriers.h"

#include <string.h>

#include "access.h"
#include "kernel_calls.h"
#include "order.h"
#include "report.h"
#include "scheduler.h"

namespace emu {

namespace {

using ull = unsigned long long;

constexpr uint64_t pattern = 0x7265697272616d62;  // lies where an mbarrier is

void end_phase_if_complete(Mbarrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  ++barrier.epoch;
  barrier.pending = barrier.count;
  barrier.complete = barrier.arriving;
  ++launch.progress;
  ++launch.word_changes;
}

// Who wrote last to the 8 bytes of an mbarrier, as far as that is remembered.
std::string last_writer(const Bytes& bytes) {
  if (!launch.finds_races()) return "";
  for (const Access& access : bytes.region->cell(bytes.offset / 8).accesses) {
    if (access.bytes != 0 && access.kind == is_write) {
      return " by " + agent_name(access.agent) + " " + place_name(access.place);
    }
  }
  return "";
}

Mbarrier& find_mbarrier(void* address, const Bytes& bytes, uint32_t place) {
  auto& barriers = launch.current->block->mbarriers;
  auto found = barriers.find(reinterpret_cast<uint64_t>(address));
  if (found == barriers.end()) {
    fail(place, "MBARRIER at shared memory +%llu: used before it was initialised",
         ull(bytes.offset));
  }
  uint64_t now;
  memcpy(&now, address, sizeof(now));
  if (now != pattern) {
    fail(place, "MBARRIER at shared memory +%llu: overwritten%s; used", ull(bytes.offset),
         last_writer(bytes).c_str());
  }
  return found->second;
}

Bytes reach_mbarrier(void* address, uint8_t kind, uint32_t place) {
  const uint64_t begin = reinterpret_cast<uint64_t>(address);
  const Bytes bytes = reach(begin, sizeof(uint64_t), kind, place);
  if (bytes.region == nullptr || !bytes.region->is_shared) {
    fail(place, "MBARRIER: %p does not lie in shared memory", address);
  }
  check_alignment(begin, sizeof(uint64_t), place);
  return bytes;
}

Mbarrier& use_mbarrier(void* address, uint8_t kind, uint32_t place) {
  const Bytes bytes = reach_mbarrier(address, kind, place);
  Mbarrier& barrier = find_mbarrier(address, bytes, place);
  check_races(bytes, kind | is_relaxed, place);
  return barrier;
}

void init(void* address, uint32_t count, uint32_t place) {
  const Bytes bytes = reach_mbarrier(address, is_write, place);
  check_races(bytes, is_write, place);
  bytes.region->set_written(bytes.offset, bytes.size);
  memcpy(address, &pattern, sizeof(pattern));
  auto& barriers = launch.current->block->mbarriers;
  const auto [found, is_new] = barriers.try_emplace(reinterpret_cast<uint64_t>(address));
  Mbarrier& barrier = found->second;
  if (is_new) {
    barrier.index = uint32_t(barriers.size() - 1) % most_threads;
  } else {
    ++barrier.epoch;
  }
  barrier.count = barrier.pending = count;
  barrier.bytes = 0;
  barrier.phase = 0;
}

void arrive(void* address, uint32_t bytes, uint32_t place) {
  Mbarrier& barrier = use_mbarrier(address, is_write, place);
  Thread& thread = *launch.current;
  if (barrier.pending == 0) {
    fail(place, "MBARRIER: phase %u has had its %u arrivals; one more", barrier.phase,
         barrier.count);
  }
  close_epoch(thread);
  barrier.bytes += bytes;
  --barrier.pending;
  barrier.arriving.join(thread.view);
  ++launch.progress;
  end_phase_if_complete(barrier);
  maybe_switch();
}

bool has_ended(void* address, uint32_t parity, uint32_t place) {
  poll(place);
  Mbarrier& barrier = use_mbarrier(address, is_read, place);
  if ((barrier.phase & 1) == parity) return false;
  if (barrier.phase > 0) barrier.awaited = barrier.epoch - 1;
  launch.current->view.join(barrier.complete);
  return true;
}

}  // namespace

Mbarrier& mbarrier_of_load(void* address, uint32_t place) {
  const Bytes bytes = reach_mbarrier(address, is_read, place);
  Mbarrier& barrier = find_mbarrier(address, bytes, place);
  check_copy_races(bytes, is_relaxed | is_copy | is_bulk, place,
                   barrier.agent_in(*launch.current->block), barrier.epoch);
  barrier.last_with_copies = barrier.epoch;
  return barrier;
}

void bytes_have_come(Block& block, uint64_t address, uint32_t bytes) {
  Mbarrier& barrier = block.mbarriers[address];
  barrier.bytes -= bytes;
  if (launch.finds_races()) barrier.arriving.before.raise(barrier.agent_in(block), barrier.epoch);
  end_phase_if_complete(barrier);
}

bool check_mbarriers_at_end(const Block& block) {
  for (const auto& [address, barrier] : block.mbarriers) {
    if (barrier.last_with_copies <= barrier.awaited) continue;
    launch.has_failed = true;
    say("MBARRIER at shared memory +%llu: block %u ended and nobody waited for the bulk loads of "
        "phase %u\n",
        ull(address - block.shared->begin), block.index,
        barrier.phase - (barrier.epoch - barrier.last_with_copies));
    return false;
  }
  return true;
}

}  // namespace emu

using namespace emu;

extern "C" {

void emu_mbarrier_init(void* barrier, uint32_t count) { init(barrier, count, caller()); }
void emu_mbarrier_arrive(void* barrier, uint32_t bytes) { arrive(barrier, bytes, caller()); }
int emu_mbarrier_has_ended(void* barrier, uint32_t parity) {
  return has_ended(barrier, parity, caller());
}

void emu_proxy_fence(int only_shared) {
  Thread& thread = *launch.current;
  look_at_late_write();
  close_epoch(thread);
  thread.view.proxied_shared.join(thread.view.before);
  if (!only_shared) thread.view.proxied_global.join(thread.view.before);
}
}
