// The launch under way: its settings, threads, blocks, and what went wrong.
#ifndef GPUALGO_EMULATOR_LAUNCH_H
#define GPUALGO_EMULATOR_LAUNCH_H

#include <stdint.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "clocks.h"
#include "control.h"
#include "memory.h"
#include "random.h"
#include "words.h"

namespace emu {

struct Block;

constexpr uint32_t warp_threads = 32;
constexpr uint32_t most_threads = 1024;  // of a block

// A block's agents, in groups of `most_threads`: each clock's part of them is one subtree.
enum AgentGroup : uint32_t {
  of_threads,
  of_copies,       // cp.async, an epoch for each group of copies
  of_bulk_reads,   // bulk stores as they read shared memory, likewise
  of_bulk_writes,  // … as they write global memory
  of_barriers,     // bulk loads, an epoch for each phase of their mbarrier
  num_agent_groups = 8
};
constexpr uint32_t block_agents = num_agent_groups * most_threads;

enum class State : uint8_t { ready, in_collective, at_barrier, in_activemask, done };

struct Thread {
  Block* block = nullptr;
  uint32_t index = 0;
  Agent agent = 0;
  State state = State::ready;
  bool is_polling = false;
  bool is_parked = false;     // polls, and nothing had changed since it last did
  uint64_t polled_after = 0;  // so many changes of words
  uint32_t place = 0;         // where it waits or polls
  uint64_t result = 0;        // of what it waited for
  uint64_t priority = 0;
  size_t ready_at = 0;  // in launch.ready, or launch.parked

  void* stack_pointer = nullptr;
  char* stack = nullptr;

  uint32_t epoch = 1;
  View view;
  uint32_t voted[warp_threads] = {};  // with whom in its warp, up to which of their epochs
  // Whether it read global memory plainly, or voted with who did, since `view.loose` has that.
  bool has_read = false, has_voted = false;
  View released[2];  // at its last fence: of the block, of the device
  View seen[2];      // what relaxed loads saw and a fence will make known, likewise
  uint32_t num_late_stores = 0;

  uint32_t copy_group = 0, copies_awaited = 0;      // cp.async: groups; those known to have ended
  bool has_open_copies = false;                     // … that no group has yet
  uint32_t bulk_group = 0, bulk_reads_awaited = 0;  // bulk stores
  bool has_open_bulk_stores = false;

  uint32_t lane() const { return index % warp_threads; }
  uint32_t warp() const { return index / warp_threads; }
  Agent agent_of(AgentGroup group) const { return agent + group * most_threads; }
};

// A warp's step of which some lanes have come.
struct Collective {
  int kind;
  uint32_t lanes;
  uint32_t width;
  uint32_t arrived = 0;
  uint32_t values[warp_threads], arguments[warp_threads];
};

struct Barrier {
  uint32_t num_awaited = 0;  // 0: all threads that have not ended
  int vote = 0;
  uint32_t num_true = 0;
  uint32_t place = 0;
  std::vector<Thread*> arrived;
};

struct Mbarrier {
  uint32_t index;        // of its agent
  uint32_t count;        // arrivals of a phase
  uint32_t pending = 0;  // of this one
  int64_t bytes = 0;     // announced and not here yet
  uint32_t phase = 0;
  uint32_t epoch = 1;    // grows with each phase, for ever
  uint32_t awaited = 0;  // the last epoch whose end some thread saw
  uint32_t last_with_copies = 0;
  View arriving, complete;

  Agent agent_in(const Block& block) const;  // of the loads that tell it
};

struct Block {
  uint32_t index = 0;
  uint32_t num_left = 0;  // threads that have not ended
  std::vector<Thread> threads;
  std::vector<std::vector<Collective>> collectives;  // of each warp
  std::map<int, Barrier> barriers;
  std::map<uint64_t, Mbarrier> mbarriers;  // by address
  std::unique_ptr<Region> shared;
  Clock fence_order;
  uint64_t polled_after = 0, num_polls = 0;  // of its threads since so many effects

  Agent first_agent() const { return index * block_agents; }
};

// One piece of shared memory: a static variable, or what the launch adds.
struct SharedPiece {
  const void* variable;
  uint64_t begin, end;
};

struct Stats {
  uint64_t switches, accesses, polls, copies, most_resident, clock_bytes, old_loads, late_stores;
};

// The multiprocessors' clock, from the first look at it on.
struct Cycles {
  bool is_drawn = false, stands_still = false;
  uint32_t now = 0;
};

struct alignas(64) ParamBytes {
  char bytes[64];
};

struct Launch {
  Settings settings{};
  Random random;
  uint32_t num_blocks = 0, num_threads = 0;
  uint64_t dynamic_bytes = 0;
  std::vector<ParamBytes> params;
  uint64_t param_bytes = 0;
  void (*entry)(const void*) = nullptr;
  void (*op)(void*, const void*, const void* const*) = nullptr;
  uint64_t image_begin = 0, image_end = 0;  // the kernel's library

  std::vector<SharedPiece> pieces;
  std::vector<Block*> resident;
  std::vector<Thread*> ready, parked;
  Thread* current = nullptr;
  Clock fence_order;
  Cycles cycles;
  uint64_t progress = 0;      // counts steps of those who do not poll
  uint64_t word_changes = 1;  // … and what those who do may see
  uint64_t effects = 1;       // … and what goes on outside shared memory, but for polls
  std::string report;
  bool has_failed = false;
  std::string suspicion;         // a read of what nobody had written; who writes it may come yet
  uint64_t suspicion_until = 0;  // so many accesses
  bool keeps_old = false;        // of global memory: the launch may run once more
  bool is_second = false;        // it does, with other values where nobody wrote
  std::string unwritten_reads;   // of shared memory
  std::vector<uint32_t> unwritten_places;
  Stats stats{};

  bool finds_races() const { return settings.races != 0; }
  bool is_strict() const { return settings.races == 2; }
};

extern Launch launch;

inline Agent Mbarrier::agent_in(const Block& block) const {
  return block.first_agent() + of_barriers * most_threads + index;
}

inline uint32_t block_of(Agent agent) { return agent / block_agents; }
inline bool is_thread(Agent agent) { return agent % block_agents < most_threads; }

// Runs all blocks to their end; false: has_failed.
bool run_launch();

}  // namespace emu

#endif
