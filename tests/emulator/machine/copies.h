// Asynchronous copies: each is carried out in two steps, a read and a write, at any time between
// its start and the end of the wait for it.
#ifndef GPUALGO_EMULATOR_COPIES_H
#define GPUALGO_EMULATOR_COPIES_H

#include "launch.h"

namespace emu {

bool perform_some_copy();
bool has_copies();
void forget_copies();
// When a block's threads have ended: all its copies must have been awaited. False: has_failed.
bool check_copies_at_end(Block& block);

}  // namespace emu

#endif
