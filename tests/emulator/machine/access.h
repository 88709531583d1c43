// What happens at each load and store of a kernel.
#ifndef GPUALGO_EMULATOR_ACCESS_H
#define GPUALGO_EMULATOR_ACCESS_H

#include <stdint.h>

#include "launch.h"

namespace emu {

// Bytes that lie within one region.
struct Bytes {
  Region* region;
  uint64_t offset, size;
  uint64_t address() const { return region->begin + offset; }
};

// The running thread's access to memory that is not its stack: may switch to another thread; then
// checks bounds. Region null: the stack, the parameters, or constants, where nothing is to check.
Bytes reach(uint64_t address, uint64_t size, uint8_t kind, uint32_t place);
// Without a switch.
Bytes find_bytes(uint64_t address, uint64_t size, uint8_t kind, uint32_t place);
void check_alignment(uint64_t address, uint64_t size, uint32_t place);
void check_written(const Bytes& bytes, uint32_t place);

// A plain load or store: all of the above, and races.
void plain_access(uint64_t address, uint64_t size, uint8_t kind, uint32_t place);
// Remembers an access of the running thread; reports one that it races with.
void check_races(const Bytes& bytes, uint8_t kind, uint32_t place);
// The same by a copy that the running thread starts.
void check_copy_races(const Bytes& bytes, uint8_t kind, uint32_t place, Agent agent,
                      uint32_t epoch);

// Two writes without order are let pass if the later one changes nothing, which shows when it has
// been done: at the thread's next step.
void look_at_late_write();

}  // namespace emu

#endif
