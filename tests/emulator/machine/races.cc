// Races: two accesses to one byte, one of them a write, of which neither happened before the other
// (Serebryany and Iskhodzhanov, "ThreadSanitizer: data race detection in practice", 2009, whose
// four accesses per 8 bytes these are; Flanagan and Freund, "FastTrack", 2009, for the epochs).
#include <string.h>

#include "access.h"
#include "fibers.h"
#include "report.h"

namespace emu {

namespace {

struct LateWrite {
  bool is_there = false;
  uint64_t address, size;
  uint8_t old[16];
  std::string report;
};
LateWrite late_write;

// Who asks: a thread, or a copy with the view of the thread that starts it.
struct Asker {
  Agent agent;
  uint32_t epoch;
  uint32_t place;
  uint8_t kind;
  bool is_shared;  // memory
};

bool is_ordered(const Access& old, const Asker& now) {
  const Thread& thread = *launch.current;
  const View& view = thread.view;
  if (!(now.kind & is_copy) && old.agent == now.agent) return true;
  if (now.kind & is_bulk && old.kind & is_write && !(old.kind & is_bulk)) {
    const Clock& proxied = now.is_shared ? view.proxied_shared : view.proxied_global;
    return proxied.has(old.agent, old.epoch);  // a fence must stand between
  }
  return old.agent == thread.agent || view.before.has(old.agent, old.epoch);
}

// Whether both may meet without order: words that both sides expect the other to change.
bool is_agreed(const Access& old, const Asker& now) {
  if (!(old.kind & now.kind & is_relaxed)) return false;
  return !((old.kind | now.kind) & is_narrow) || block_of(old.agent) == block_of(now.agent);
}

// A read that reached a later write through votes or relaxed words only.
bool is_loosely_ordered(const Access& old, const Asker& now) {
  if (launch.settings.races != 1 || !(now.kind & is_write) || old.kind & (is_write | is_copy)) {
    return false;
  }
  const Thread& thread = *launch.current;
  const Agent first = thread.agent - thread.lane();
  const bool is_same_warp = old.agent >= first && old.agent < first + warp_threads;
  return (is_same_warp && thread.voted[old.agent - first] >= old.epoch) ||
         thread.view.loose.has(old.agent, old.epoch);
}

// Whether who races with the old access would race with the new one as well.
bool may_replace(const Access& old, const Asker& now, uint8_t bytes) {
  if (old.bytes & ~bytes || (old.kind & is_write && !(now.kind & is_write))) return false;
  if (now.kind & is_relaxed && !(old.kind & is_relaxed)) return false;
  return (old.kind & is_narrow) == (now.kind & is_narrow) &&
         (old.kind & is_copy) == (now.kind & is_copy);
}

void report_race(const Bytes& bytes, const Access& old, const Asker& now) {
  const std::string text = "RACE: " + access_name(now.kind) + " of " + std::to_string(bytes.size) +
                           " bytes at " + address_name(*bytes.region, bytes.offset) + " by " +
                           agent_name(now.agent) + " " + place_name(now.place) +
                           "; nothing orders it after: " + access_name(old.kind) + " by " +
                           agent_name(old.agent) + " " + place_name(old.place) + "\n";
  if (now.kind == is_write && old.kind == is_write && bytes.size <= sizeof(late_write.old)) {
    late_write.is_there = true;
    late_write.address = bytes.address();
    late_write.size = bytes.size;
    memcpy(late_write.old, reinterpret_cast<void*>(bytes.address()), bytes.size);
    late_write.report = text;
    return;
  }
  launch.report += text;
  stop();
}

// Where no place is free: of what is remembered, what others are least likely to race with.
Access& least_needed(Cell& cell) {
  for (const uint8_t kind : {is_relaxed, is_read}) {
    for (Access& old : cell.accesses) {
      if (!(old.kind & is_write) && (old.kind & kind) == kind && launch.random.chance(0.5)) {
        return old;
      }
    }
  }
  return cell.accesses[launch.random.below(4)];
}

// Compares with what a cell remembers and remembers the new access; false if a race was reported.
bool check_cell(const Bytes& bytes, Cell& cell, uint8_t mask, const Asker& now) {
  Access* free = nullptr;
  for (Access& old : cell.accesses) {
    if (old.bytes == 0) {
      if (free == nullptr) free = &old;
      continue;
    }
    const bool is_known = is_ordered(old, now);
    if (old.bytes & mask && (old.kind | now.kind) & is_write && !is_known && !is_agreed(old, now) &&
        !is_loosely_ordered(old, now)) {
      report_race(bytes, old, now);
      return false;
    }
    if (is_known && may_replace(old, now, mask)) {
      old.bytes = 0;
      if (free == nullptr) free = &old;
    }
  }
  if (free == nullptr) free = &least_needed(cell);
  *free = Access{now.agent, now.epoch, now.place, mask, now.kind};
  return true;
}

bool is_repeated(const Cell& cell, uint8_t mask, const Asker& now) {
  for (const Access& old : cell.accesses) {
    if (old.agent == now.agent && old.epoch == now.epoch && old.kind == now.kind &&
        (old.bytes & mask) == mask) {
      return true;
    }
  }
  return false;
}

void check(const Bytes& bytes, const Asker& now) {
  const uint64_t end = bytes.offset + bytes.size;
  for (uint64_t number = bytes.offset / 8; number * 8 < end; ++number) {
    const uint64_t first = number * 8;
    const uint64_t low = bytes.offset > first ? bytes.offset - first : 0;
    const uint64_t high = end < first + 8 ? end - first : 8;
    const uint8_t mask = uint8_t((1u << high) - (1u << low));
    Cell& cell = bytes.region->cell(number);
    if (!(now.kind & is_copy) && is_repeated(cell, mask, now)) continue;
    if (!check_cell(bytes, cell, mask, now)) return;
  }
}

}  // namespace

void check_races(const Bytes& bytes, uint8_t kind, uint32_t place) {
  if (!launch.finds_races()) return;
  const Thread& thread = *launch.current;
  check(bytes, Asker{thread.agent, thread.epoch, place, kind, bytes.region->is_shared});
}

void check_copy_races(const Bytes& bytes, uint8_t kind, uint32_t place, Agent agent,
                      uint32_t epoch) {
  if (!launch.finds_races()) return;
  check(bytes, Asker{agent, epoch, place, kind, bytes.region->is_shared});
}

void look_at_late_write() {
  if (!late_write.is_there) return;
  late_write.is_there = false;
  const void* now = reinterpret_cast<const void*>(late_write.address);
  if (memcmp(now, late_write.old, late_write.size) == 0 || launch.has_failed) return;
  launch.report += late_write.report;
  stop();
}

}  // namespace emu
