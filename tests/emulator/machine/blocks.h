// How blocks and their threads begin and end.
#ifndef GPUALGO_EMULATOR_BLOCKS_H
#define GPUALGO_EMULATOR_BLOCKS_H

#include "launch.h"

namespace emu {

constexpr uint64_t most_shared_bytes = 232 << 10;

void begin_block(uint32_t index);
// A thread has returned; false: has_failed.
bool end_thread(Thread& thread);
// After a failure: as they stand.
void abandon_blocks();

}  // namespace emu

#endif
