// What happens before what: how threads' views meet.
#ifndef GPUALGO_EMULATOR_ORDER_H
#define GPUALGO_EMULATOR_ORDER_H

#include "launch.h"

namespace emu {

enum class Order { relaxed, acquire, release, acq_rel, seq_cst };
enum class Scope { block, device };

// Makes what a thread did so far part of its view, for whoever takes that in.
void close_epoch(Thread& thread);
// Each knows afterwards what any of them knew and did.
void meet(Thread* const* threads, size_t count);
// Lanes of a warp vote: each may write afterwards what any of them read before.
void vote(Thread* const* threads, size_t count);
// Takes what a thread otherwise knows into its view's `loose`.
void complete_loose(Thread& thread);
void fence(Thread& thread, Order order, Scope scope);

}  // namespace emu

#endif
