// Words that several threads read and write at once, by relaxed loads, stores and atomic changes:
// what each of them may see. A word keeps its last values; a thread may load any that is not older
// than one which it knows, from before or by who told it (coherence).
#ifndef GPUALGO_EMULATOR_WORDS_H
#define GPUALGO_EMULATOR_WORDS_H

#include <stdint.h>

#include <utility>
#include <vector>

#include "clocks.h"

namespace emu {

class Region;
struct Bytes;

// All that a thread knows of what happened before.
struct View {
  Clock before;
  Clock loose;     // also where a relaxed word stands between a read and a later write
  Clock fences;    // also where fences have an order among themselves: for loads of words alone
  Clock in_loose;  // the last `before` that `loose` has taken in
  Clock proxied_shared, proxied_global;  // what bulk copies see of either memory

  void join(const View& other) {
    before.join(other.before);
    loose.join(other.loose);
    fences.join(other.fences);
    in_loose = other.in_loose;
    proxied_shared.join(other.proxied_shared);
    proxied_global.join(other.proxied_global);
  }
};

// A value that a word had.
struct Value {
  uint64_t bits = 0;
  bool is_written = true;  // false: what lay there before anybody wrote
  Agent writer = 0;
  uint32_t epoch = 0;   // 0: all know it
  View in_block, wide;  // what those learn who see it: of the writer's block, of others
  Clock loose;          // the writer's
  std::vector<std::pair<Agent, uint32_t>> readers;
};

struct Word {
  std::vector<Value> values;  // the last one lies in memory
};

// The words of 8 bytes, all of one size; `is_mixed` if they were accessed by different sizes: then
// nobody sees older values.
struct Words {
  int size = 0;
  bool is_mixed = false;
  Word words[8];
};

// Steps of the running thread. Orders and scopes are those of kernel_calls.h.
uint64_t load_word(const void* address, int size, int order, int scope, uint32_t place);
void store_word(void* address, uint64_t bits, int size, int order, int scope, uint32_t place);
// `change` gives the new value for the old one. Returns the old one.
uint64_t change_word(void* address, int size, int order, int scope, uint32_t place,
                     uint64_t (*change)(uint64_t old, const void* operands), const void* operands);

// Gives a word a new value, for all to see.
void set_word(const Bytes& bytes, Value value);
// Called where a plain write or a copy changes bytes: the words there have new first values.
void forget_words(Region& region, uint64_t offset, uint64_t bytes);

}  // namespace emu

#endif
