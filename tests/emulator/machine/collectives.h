// Steps that the lanes of a warp, or the threads of a block, take together.
#ifndef GPUALGO_EMULATOR_COLLECTIVES_H
#define GPUALGO_EMULATOR_COLLECTIVES_H

#include "launch.h"

namespace emu {

// Ends the steps and barriers that waited for nobody but a thread that has ended.
void complete_after_end(Thread& thread);

}  // namespace emu

#endif
