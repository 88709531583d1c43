// Who runs next.
#ifndef GPUALGO_EMULATOR_SCHEDULER_H
#define GPUALGO_EMULATOR_SCHEDULER_H

#include "launch.h"

namespace emu {

void make_ready(Thread& thread);
void make_unready(Thread& thread);

// The running thread lets others run, or does so as the settings and chance say.
void maybe_switch();
// The same, where it waits for others to change something.
void poll(uint32_t place);

}  // namespace emu

#endif
