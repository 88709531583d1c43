// A launch that loads what nobody wrote to shared memory runs once more with other values there.
// Who loads and uses nothing of it, as lanes without elements do, leaves the same bytes behind.
#ifndef GPUALGO_EMULATOR_RERUNS_H
#define GPUALGO_EMULATOR_RERUNS_H

#include <stdint.h>

#include <string>
#include <vector>

#include "memory.h"

namespace emu {

// A page of global memory that a launch has written to.
struct ChangedPage {
  Region* region;
  OldPage page;
};
using Changes = std::vector<ChangedPage>;  // in the order of regions and pages

// Before a kernel writes.
void will_write(Region& region, uint64_t offset, uint64_t bytes);
// Remembers a load from shared memory of what nobody wrote.
void note_unwritten(const std::string& read, uint32_t place);

// Returns what the launch has changed, and undoes it.
Changes take_back();
void put(const Changes& changes);
// Where two runs of a launch have left different bytes; empty: nowhere. Both were taken back.
std::string first_difference(const Changes& first, const Changes& second);

}  // namespace emu

#endif
