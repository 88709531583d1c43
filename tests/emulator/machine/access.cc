#include "access.h"

#include <string.h>

#include "fibers.h"
#include "late_stores.h"
#include "report.h"
#include "reruns.h"
#include "scheduler.h"

namespace emu {

namespace {

using ull = unsigned long long;

bool is_own_stack(uint64_t address) {
  return address - reinterpret_cast<uint64_t>(launch.current->stack) < stack_bytes;
}

bool is_constant(uint64_t address, uint64_t size) {
  const uint64_t params = reinterpret_cast<uint64_t>(launch.params.data());
  if (address - params < launch.param_bytes) return address - params + size <= launch.param_bytes;
  return address >= launch.image_begin && address + size <= launch.image_end;
}

[[noreturn]] void fail_outside(uint64_t address, uint64_t size, uint8_t kind, uint32_t place) {
  const std::string what = access_name(kind);
  for (const Block* block : launch.resident) {
    if (block->shared->holds(address)) {
      fail(place, "OUT OF BOUNDS: %s of %llu bytes in the shared memory of block %u", what.c_str(),
           ull(size), block->index);
    }
    for (const Thread& thread : block->threads) {
      if (thread.state == State::done) continue;
      if (address - reinterpret_cast<uint64_t>(thread.stack) < stack_bytes) {
        fail(place, "OUT OF BOUNDS: %s of %llu bytes on the stack of %s", what.c_str(), ull(size),
             agent_name(thread.agent).c_str());
      }
    }
  }
  fail(place, "OUT OF BOUNDS: %s of %llu bytes at %s", what.c_str(), ull(size),
       neighbour_of(address).c_str());
}

bool lies_in_piece(uint64_t offset, uint64_t size) {
  for (const SharedPiece& piece : launch.pieces) {
    if (offset >= piece.begin && offset + size <= piece.end) return true;
  }
  return false;
}

[[noreturn]] void fail_bounds(const Bytes& bytes, uint8_t kind, uint32_t place) {
  const std::string what = access_name(kind);
  if (!bytes.region->is_shared) {
    fail(place, "OUT OF BOUNDS: %s of %llu bytes at %s", what.c_str(), ull(bytes.size),
         address_name(*bytes.region, bytes.offset).c_str());
  }
  std::string pieces;
  for (const SharedPiece& piece : launch.pieces) {
    pieces += (pieces.empty() ? "" : ", ") + std::to_string(piece.begin) + ".." +
              std::to_string(piece.end);
  }
  fail(place, "OUT OF BOUNDS: %s of %llu bytes at shared memory +%llu; the block has %s",
       what.c_str(), ull(bytes.size), ull(bytes.offset), pieces.empty() ? "none" : pieces.c_str());
}

}  // namespace

Bytes find_bytes(uint64_t address, uint64_t size, uint8_t kind, uint32_t place) {
  Region& shared = *launch.current->block->shared;
  Region* region = shared.holds(address) ? &shared : region_at(address);
  if (region == nullptr) {
    if (kind == is_read && is_constant(address, size)) return {};
    fail_outside(address, size, kind, place);
  }
  const Bytes bytes{region, address - region->begin, size};
  const bool is_inside =
      region->is_shared ? lies_in_piece(bytes.offset, size) : size <= region->size - bytes.offset;
  if (!is_inside) fail_bounds(bytes, kind, place);
  return bytes;
}

Bytes reach(uint64_t address, uint64_t size, uint8_t kind, uint32_t place) {
  if (is_own_stack(address)) return {};
  look_at_late_write();
  if (++launch.stats.accesses == launch.suspicion_until) stop();
  if (launch.settings.preempt > 0 && launch.random.chance(launch.settings.preempt)) leave_fiber();
  return find_bytes(address, size, kind, place);
}

void check_alignment(uint64_t address, uint64_t size, uint32_t place) {
  if ((address & (size - 1)) == 0) return;
  const Bytes bytes = find_bytes(address, size, is_write, place);
  fail(place, "MISALIGNED access of %llu bytes at %s", ull(size),
       address_name(*bytes.region, bytes.offset).c_str());
}

void check_written(const Bytes& bytes, uint32_t place) {
  const bool is_shared = bytes.region->is_shared;
  if (launch.settings.uninitialised < (is_shared ? 2 : 1)) return;
  if (bytes.region->is_written(bytes.offset, bytes.size)) return;
  if (!launch.suspicion.empty()) return;
  const uint64_t first = bytes.region->first_unwritten(bytes.offset, bytes.size);
  const std::string read = "read of " + std::to_string(bytes.size) + " bytes at " +
                           address_name(*bytes.region, bytes.offset) + ", of which +" +
                           std::to_string(first) + " was not written, by " +
                           agent_name(launch.current->agent) + " " + place_name(place);
  if (is_shared) {
    note_unwritten(read, place);
    return;
  }
  // If a thread writes it later, nothing orders the two: then the report of that race says more.
  launch.suspicion = "UNINITIALISED: " + read + "\n";
  constexpr uint64_t patience = 1 << 20;
  launch.suspicion_until = launch.stats.accesses + patience;
}

void plain_access(uint64_t address, uint64_t size, uint8_t kind, uint32_t place) {
  const Bytes bytes = reach(address, size, kind, place);
  if (bytes.region == nullptr) return;
  Thread& thread = *launch.current;
  // Who polls loads no plain word of global memory.
  if (!bytes.region->is_shared) ++launch.progress, ++launch.effects;
  flush_stores_at(thread, address, size);
  check_races(bytes, kind, place);
  if (kind & is_write) {
    will_write(*bytes.region, bytes.offset, size);
    bytes.region->set_written(bytes.offset, size);
    forget_words(*bytes.region, bytes.offset, size);
  } else {
    thread.has_read = thread.has_read || !bytes.region->is_shared;
    check_written(bytes, place);
  }
}

}  // namespace emu
