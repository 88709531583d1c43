// What went wrong, in words.
#ifndef GPUALGO_EMULATOR_REPORT_H
#define GPUALGO_EMULATOR_REPORT_H

#include <stdint.h>

#include <string>

#include "launch.h"

namespace emu {

// Adds to the report.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
// Ends the launch with the report as it stands; the running thread does not come back.
[[noreturn]] void stop();
// Says something, which thread and where, and stops.
[[noreturn]] void fail(uint32_t place, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

// Where the kernel called the function that calls this.
__attribute__((always_inline)) inline uint32_t caller() {
  const uint64_t address = reinterpret_cast<uint64_t>(__builtin_return_address(0));
  return uint32_t(address - launch.image_begin);
}

std::string place_name(uint32_t place);                           // @1f0
std::string agent_name(Agent agent);                              // block 1 thread 2
std::string access_name(uint8_t kind);                            // relaxed write
std::string address_name(const Region& region, uint64_t offset);  // shared +16, name +16 of 32
// Which threads wait where.
void say_who_waits();

}  // namespace emu

#endif
