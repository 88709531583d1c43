// Vector clocks: which epochs of which agents happened before something. There may be a million
// agents, so a clock is a tree, 32 children to a node, that shares its nodes with other clocks;
// where all agents below a place have one epoch there is a number instead of a node. After a
// barrier of a block that is one number for all its threads.
#ifndef GPUALGO_EMULATOR_CLOCKS_H
#define GPUALGO_EMULATOR_CLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include <utility>

namespace emu {

// Whoever accesses memory in an order of its own: a thread, or a queue of asynchronous copies.
using Agent = uint32_t;

class Clock {
 public:
  Clock() = default;
  Clock(const Clock& other) : tree(shared(other.tree)) {}
  Clock(Clock&& other) noexcept : tree(std::exchange(other.tree, nothing)) {}
  Clock& operator=(Clock other) noexcept {
    std::swap(tree, other.tree);
    return *this;
  }
  ~Clock() { drop(tree); }

  // Whether both are one tree; equal clocks need not be.
  bool is(const Clock& other) const { return tree == other.tree; }
  uint32_t of(Agent agent) const;
  bool has(Agent agent, uint32_t epoch) const { return epoch <= of(agent); }

  // Takes in an agent's epochs up to this one.
  void raise(Agent agent, uint32_t epoch);
  // The same for the aligned 32 or 1024 agents around this one, of which it knows nothing newer.
  void raise_warp(Agent agent, uint32_t epoch);
  void raise_block(Agent agent, uint32_t epoch);
  void join(const Clock& other);

  // Before a launch: how many agents it has. Forgets all clocks that were.
  static void begin(uint64_t num_agents);
  static size_t most_bytes();  // at once, in this launch

 private:
  friend struct Tree;
  using Ref = uint64_t;  // a node's address, or twice the epoch of all agents below, plus one
  static constexpr Ref nothing = 1;

  static Ref shared(Ref tree);
  static void drop(Ref tree);

  Ref tree = nothing;
};

}  // namespace emu

#endif
