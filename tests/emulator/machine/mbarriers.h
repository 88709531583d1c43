// Barriers in shared memory that bulk loads tell when they have come.
#ifndef GPUALGO_EMULATOR_MBARRIERS_H
#define GPUALGO_EMULATOR_MBARRIERS_H

#include "launch.h"

namespace emu {

// The mbarrier that the running thread names for a bulk load that it starts.
Mbarrier& mbarrier_of_load(void* address, uint32_t place);
void bytes_have_come(Block& block, uint64_t barrier, uint32_t bytes);
// Whether all loads were awaited; false: has_failed.
bool check_mbarriers_at_end(const Block& block);

}  // namespace emu

#endif
