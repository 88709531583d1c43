#ifndef GPUALGO_EMULATOR_RANDOM_H
#define GPUALGO_EMULATOR_RANDOM_H

#include <stdint.h>

namespace emu {

// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
struct Random {
  uint64_t state = 0;

  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  uint64_t below(uint64_t end) { return uint64_t((unsigned __int128)next() * end >> 64); }
  bool chance(double probability) { return double(next() >> 11) * 0x1p-53 < probability; }
};

}  // namespace emu

#endif
