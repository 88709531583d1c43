// Relaxed stores that only the thread itself sees so far. They become visible at any time, those of
// a thread to different words in any order, and before the thread releases anything.
#ifndef GPUALGO_EMULATOR_LATE_STORES_H
#define GPUALGO_EMULATOR_LATE_STORES_H

#include "access.h"

namespace emu {

void add_late_store(Thread& thread, const Bytes& bytes, Value value);
// What the thread itself loads, if it has a late store to just these bytes.
bool finds_own_late_store(Thread& thread, const Bytes& bytes, uint64_t& bits);

// Makes a thread's stores visible; those to some bytes; one that chance picks.
void flush_stores(Thread& thread);
void flush_stores_at(Thread& thread, uint64_t address, uint64_t size);
bool perform_some_store();
bool has_late_stores();
void forget_late_stores();

}  // namespace emu

#endif
