#include "collectives.h"

#include "fibers.h"
#include "kernel_calls.h"
#include "order.h"
#include "report.h"
#include "scheduler.h"

namespace emu {

namespace {

const char* const step_names[] = {"shfl_sync",     "shfl_up_sync",   "shfl_down_sync",
                                  "shfl_xor_sync", "ballot_sync",    "any_sync",
                                  "all_sync",      "match_any_sync", "syncwarp"};

// Those that have ended, or never were.
uint32_t absent_lanes(const Block& block, size_t warp) {
  uint32_t lanes = 0;
  for (uint32_t lane = 0; lane < warp_threads; ++lane) {
    const size_t index = warp * warp_threads + lane;
    if (index >= block.threads.size() || block.threads[index].state == State::done) {
      lanes |= 1u << lane;
    }
  }
  return lanes;
}

bool is_whole(const Collective& step, const Block& block, size_t warp) {
  const uint32_t missing = step.lanes & ~step.arrived;
  return missing == 0 || (missing & ~absent_lanes(block, warp)) == 0;
}

uint32_t source_lane(const Collective& step, uint32_t lane) {
  const uint32_t width = step.width, first = lane / width * width, argument = step.arguments[lane];
  switch (step.kind) {
    case emu_shuffle:
      return first + (argument & (width - 1));
    case emu_shuffle_up:
      return argument > lane - first ? lane : lane - argument;
    case emu_shuffle_down:
      return argument >= first + width - lane ? lane : lane + argument;
    default:
      return (lane ^ argument) >= first + width ? lane : lane ^ argument;
  }
}

uint32_t result_of(const Collective& step, uint32_t lane) {
  uint32_t is_true = 0, same = 0;
  for (uint32_t i = 0; i < warp_threads; ++i) {
    if (!(step.arrived >> i & 1)) continue;
    if (step.values[i] != 0) is_true |= 1u << i;
    if (step.values[i] == step.values[lane]) same |= 1u << i;
  }
  switch (step.kind) {
    case emu_sync:
      return 0;
    case emu_ballot:
      return is_true;
    case emu_any:
      return is_true != 0;
    case emu_all:
      return is_true == step.arrived;
    case emu_match:
      return same;
    default: {
      const uint32_t source = source_lane(step, lane);
      if (step.arrived >> source & 1) return step.values[source];
      return uint32_t(launch.random.next());  // from a lane that takes no part: anything
    }
  }
}

// Gives each lane its result and lets all but the running thread go on.
void complete(Block& block, size_t warp, size_t number) {
  auto& steps = block.collectives[warp];
  const Collective step = steps[number];
  steps.erase(steps.begin() + ptrdiff_t(number));
  Thread* threads[warp_threads];
  size_t count = 0;
  for (uint32_t lane = 0; lane < warp_threads; ++lane) {
    if (!(step.arrived >> lane & 1)) continue;
    Thread& thread = block.threads[warp * warp_threads + lane];
    thread.result = result_of(step, lane);
    threads[count++] = &thread;
  }
  if (step.kind == emu_sync) {
    meet(threads, count);
  } else {
    vote(threads, count);  // and shuffles: they order no memory
  }
  for (size_t i = 0; i < count; ++i) {
    if (threads[i] != launch.current) make_ready(*threads[i]);
  }
}

uint32_t warp_step(int kind, uint32_t lanes, uint32_t value, uint32_t argument, uint32_t width,
                   uint32_t place) {
  Thread& thread = *launch.current;
  Block& block = *thread.block;
  auto& steps = block.collectives[thread.warp()];
  if (!(lanes >> thread.lane() & 1)) {
    fail(place, "WARP: %s of lanes %08x called by lane %u, which is not one of them",
         step_names[kind], lanes, thread.lane());
  }
  size_t number = 0;
  while (number < steps.size() && !(steps[number].lanes & lanes)) ++number;
  if (number == steps.size()) steps.push_back(Collective{kind, lanes, width, 0, {}, {}});
  Collective& step = steps[number];
  if (step.lanes != lanes) {
    fail(place, "WARP: %s of lanes %08x while %s waits for lanes %08x", step_names[kind], lanes,
         step_names[step.kind], step.lanes);
  }
  if (step.kind != kind || step.width != width) {
    fail(place, "WARP: %s meets %s of other lanes of %08x", step_names[kind], step_names[step.kind],
         lanes);
  }
  step.arrived |= 1u << thread.lane();
  step.values[thread.lane()] = value;
  step.arguments[thread.lane()] = argument;
  thread.place = place;
  if (is_whole(step, block, thread.warp())) {
    complete(block, thread.warp(), number);
    maybe_switch();
  } else {
    thread.state = State::in_collective;
    make_unready(thread);
    leave_fiber();
  }
  return uint32_t(thread.result);
}

void try_barrier(Block& block, Barrier& barrier) {
  if (barrier.arrived.empty()) return;
  const size_t needed = barrier.num_awaited != 0 ? barrier.num_awaited : block.num_left;
  if (barrier.arrived.size() < needed) return;
  std::vector<Thread*> threads;
  for (Thread& thread : block.threads) {  // in order of their index
    if (thread.state == State::at_barrier && thread.result == uint64_t(&barrier)) {
      threads.push_back(&thread);
    }
  }
  const uint32_t count = barrier.num_true;
  const uint32_t result = barrier.vote == emu_and  ? count == threads.size()
                          : barrier.vote == emu_or ? count != 0
                                                   : count;
  barrier.arrived.clear();
  barrier.num_true = 0;
  ++launch.progress;
  meet(threads.data(), threads.size());
  for (Thread* thread : threads) {
    thread->result = result;
    make_ready(*thread);
  }
}

std::string count_name(uint32_t count) {
  return count == 0 ? "all threads" : std::to_string(count) + " threads";
}

uint32_t wait_at_barrier(int number, uint32_t count, bool is_true, int vote, uint32_t place) {
  Thread& thread = *launch.current;
  Block& block = *thread.block;
  if (number < 0 || number > 15 || count % warp_threads != 0 || count > launch.num_threads) {
    fail(place, "BARRIER %d of %u threads: there are 16, of whole warps of the block's %u threads",
         number, count, launch.num_threads);
  }
  Barrier& barrier = block.barriers[number];
  if (barrier.arrived.empty()) {
    barrier.num_awaited = count;
    barrier.vote = vote;
    barrier.place = place;
  } else if (barrier.num_awaited != count || barrier.vote != vote) {
    fail(place, "BARRIER %d: %s are awaited here and %s %s%s", number, count_name(count).c_str(),
         count_name(barrier.num_awaited).c_str(), place_name(barrier.place).c_str(),
         barrier.vote != vote ? " with another vote" : "");
  }
  barrier.arrived.push_back(&thread);
  barrier.num_true += is_true;
  thread.place = place;
  thread.state = State::at_barrier;
  thread.result = uint64_t(&barrier);
  make_unready(thread);
  try_barrier(block, barrier);
  leave_fiber();
  return uint32_t(thread.result);
}

// Some of the lanes that ask at one place at a time, the same for each of them.
uint32_t active_lanes(uint32_t place) {
  Thread& thread = *launch.current;
  thread.place = place;
  thread.state = State::in_activemask;
  thread.result = 0;
  leave_fiber();
  if (thread.result == 0) {
    const bool takes_all = launch.random.chance(0.6);
    Thread* first = &thread - thread.lane();
    uint32_t lanes = 0;
    for (uint32_t lane = 0; lane < warp_threads; ++lane) {
      if (thread.index - thread.lane() + lane >= launch.num_threads) break;
      const Thread& other = first[lane];
      const bool asks =
          other.state == State::in_activemask && other.place == place && other.result == 0;
      if (&other == &thread || (asks && (takes_all || launch.random.chance(0.7)))) {
        lanes |= 1u << lane;
      }
    }
    for (uint32_t lane = 0; lane < warp_threads; ++lane) {
      if (lanes >> lane & 1) first[lane].result = lanes;
    }
  }
  thread.state = State::ready;
  return uint32_t(thread.result);
}

}  // namespace

void complete_after_end(Thread& thread) {
  Block& block = *thread.block;
  auto& steps = block.collectives[thread.warp()];
  for (size_t i = 0; i < steps.size();) {
    if (is_whole(steps[i], block, thread.warp())) {
      complete(block, thread.warp(), i);
      i = 0;
    } else {
      ++i;
    }
  }
  for (auto& [number, barrier] : block.barriers) try_barrier(block, barrier);
}

}  // namespace emu

using namespace emu;

extern "C" {

uint32_t emu_warp_step(int step, uint32_t lanes, uint32_t value, uint32_t argument,
                       uint32_t width) {
  return warp_step(step, lanes, value, argument, width, caller());
}
uint32_t emu_active_lanes() { return active_lanes(caller()); }
uint32_t emu_barrier(int number, uint32_t threads, int is_true, int vote) {
  return wait_at_barrier(number, threads, is_true != 0, vote, caller());
}
}
