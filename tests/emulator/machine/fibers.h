// Threads of the kernel as fibers of the one thread that runs the launch.
#ifndef GPUALGO_EMULATOR_FIBERS_H
#define GPUALGO_EMULATOR_FIBERS_H

#include "launch.h"

namespace emu {

constexpr uint64_t stack_bytes = 64 << 10;

// Gives a thread a stack on which it will begin; takes it back.
void begin_fiber(Thread& thread);
void end_fiber(Thread& thread);

// From the scheduler to a thread, until that leaves; from the thread back.
void enter_fiber(Thread& thread);
void leave_fiber();

}  // namespace emu

#endif
