// Memory of the device, and of the host where kernels may use it.
#ifndef GPUALGO_EMULATOR_ALLOCATIONS_H
#define GPUALGO_EMULATOR_ALLOCATIONS_H

#include <stdint.h>

namespace emu {

void* allocate(uint64_t size, const char* name);
void deallocate(void* memory);
void add_region(void* memory, uint64_t size, const char* name, bool is_written);
void remove_region(void* memory);

}  // namespace emu

#endif
