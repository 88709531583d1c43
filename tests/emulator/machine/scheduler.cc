#include "scheduler.h"

#include <algorithm>
#include <numeric>

#include "blocks.h"
#include "collectives.h"
#include "copies.h"
#include "fibers.h"
#include "late_stores.h"
#include "report.h"

namespace emu {

namespace {

enum ThreadOrder { at_random, depth_first, by_priority, few_switches };

uint64_t lowest_priority;  // goes down with each thread that polls

double switch_probability() {
  switch (launch.settings.order) {
    case depth_first:
      return 0.02;
    case few_switches:
      return 0.05;
    default:
      return 0.5;
  }
}

using Threads = std::vector<Thread*>;

Thread* any_of(const Threads& threads) { return threads[launch.random.below(threads.size())]; }

// As in probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi and Nagarakatte, "A
// randomized scheduler with probabilistic guarantees of finding bugs", 2010): the first of some
// threads always runs, and priorities change a few times.
Thread* first_by_priority(const Threads& threads) {
  constexpr size_t most_compared = 48;
  const size_t count = std::min(threads.size(), most_compared);
  Thread* best = nullptr;
  for (size_t i = 0; i < count; ++i) {
    Thread* thread = threads.size() <= most_compared ? threads[i] : any_of(threads);
    if (best == nullptr || thread->priority > best->priority) best = thread;
  }
  if (launch.random.chance(0.002)) best->priority = launch.random.next();
  if (best->is_polling) best->priority = --lowest_priority;
  return best;
}

Thread* next_thread() {
  Thread* last = launch.current;
  // Who waits for a change that has not come has little to do.
  const bool is_waiting =
      launch.ready.empty() || (!launch.parked.empty() && launch.random.chance(0.1));
  const Threads& threads = is_waiting ? launch.parked : launch.ready;
  switch (launch.settings.order) {
    case depth_first:
      if (last != nullptr && last->state == State::ready && !last->is_polling &&
          !launch.random.chance(0.001)) {
        return last;
      }
      return any_of(threads);
    case by_priority:
      return first_by_priority(threads);
    default:
      return any_of(threads);
  }
}

bool perform_something() {
  if (launch.random.chance(0.5)) return perform_some_store() || perform_some_copy();
  return perform_some_copy() || perform_some_store();
}

// Of blocks that have not begun, in the order in which they will.
class Queue {
 public:
  Queue() : order(launch.num_blocks) {
    std::iota(order.begin(), order.end(), 0u);
    if (!launch.settings.blocks_any_order) return;
    for (size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[launch.random.below(i)]);
    }
  }
  bool is_empty() const { return next == order.size(); }
  bool has_room() const {
    const size_t most = size_t(launch.settings.residency);
    return !is_empty() && (most == 0 || launch.resident.size() < most);
  }
  void begin_some() {
    while (has_room()) {
      begin_block(order[next++]);
      if (launch.random.chance(0.3)) break;
    }
  }

 private:
  std::vector<uint32_t> order;
  size_t next = 0;
};

// Finds launches that go on for ever, though each step may be allowed.
class Patience {
 public:
  // After a step of a thread; true: all poll, and nobody can change what they see.
  bool ends(const Thread& thread) {
    if (launch.progress != progress) {
      progress = launch.progress;
      num_idle = 0;
    }
    if (launch.effects != effects) {
      effects = launch.effects;
      num_polls = 0;
    }
    if (!thread.is_polling) return false;
    ++num_idle;
    ++num_polls;
    Block& block = *thread.block;
    if (block.polled_after != effects) block.num_polls = 0;
    block.polled_after = effects;
    ++block.num_polls;
    const size_t num_ready = launch.ready.size() + launch.parked.size();
    const bool is_long = num_idle > few_polls + 500 * num_ready;
    const bool is_checked = num_polls > few_polls && num_polls % 1024 == 0;
    return is_long || (is_checked && all_blocks_poll());
  }
  void begin_anew() { num_idle = num_polls = 0; }

 private:
  static constexpr uint64_t few_polls = 100000;

  // Whether each block goes round, with barriers and words of its own, in loops that poll.
  bool all_blocks_poll() const {
    return std::all_of(launch.resident.begin(), launch.resident.end(), [&](const Block* block) {
      return block->polled_after == effects && block->num_polls > 100 * launch.num_threads;
    });
  }

  uint64_t progress = 0, num_idle = 0;  // polls since then
  uint64_t effects = 0, num_polls = 0;
};

void fail_launch(const char* what, const Queue& queue) {
  launch.current = nullptr;
  launch.has_failed = true;
  say("%s%s\n", what, queue.is_empty() ? "" : "; further blocks wait for room");
  say_who_waits();
}

}  // namespace

namespace {

void add(Threads& threads, Thread& thread) {
  thread.ready_at = threads.size();
  threads.push_back(&thread);
}

void remove(Threads& threads, Thread& thread) {
  Thread* last = threads.back();
  threads[thread.ready_at] = last;
  last->ready_at = thread.ready_at;
  threads.pop_back();
}

void set_parked(Thread& thread, bool is_parked) {
  if (thread.is_parked == is_parked) return;
  remove(is_parked ? launch.ready : launch.parked, thread);
  add(is_parked ? launch.parked : launch.ready, thread);
  thread.is_parked = is_parked;
}

}  // namespace

void make_ready(Thread& thread) {
  thread.state = State::ready;
  add(launch.ready, thread);
}

void make_unready(Thread& thread) { remove(launch.ready, thread); }

void maybe_switch() {
  if (launch.random.chance(switch_probability())) leave_fiber();
}

void poll(uint32_t place) {
  Thread& thread = *launch.current;
  thread.is_polling = true;
  thread.place = place;
  ++launch.stats.polls;
  if (thread.polled_after == launch.word_changes) set_parked(thread, true);
  thread.polled_after = launch.word_changes;
  leave_fiber();
}

bool run_launch() {
  Queue queue;
  lowest_priority = uint64_t(1) << 40;
  Patience patience;
  const double work =
      launch.settings.weak == 2 ? 0.02 : 0.1;  // probability of a late store, a copy
  while (true) {
    queue.begin_some();
    if (launch.resident.empty() && queue.is_empty()) break;
    const size_t num_ready = launch.ready.size() + launch.parked.size();
    if (num_ready == 0 || launch.random.chance(work)) perform_something();
    if (launch.ready.empty() && launch.parked.empty()) {
      if (has_late_stores() || has_copies() || queue.has_room()) continue;
      fail_launch("DEADLOCK: nobody can go on", queue);
      return false;
    }
    Thread& thread = *next_thread();
    thread.is_polling = false;
    set_parked(thread, false);
    ++launch.stats.switches;
    enter_fiber(thread);
    if (launch.has_failed) return false;
    if (thread.state == State::done) {
      launch.current = nullptr;
      if (!end_thread(thread)) return false;
    } else if (patience.ends(thread)) {
      patience.begin_anew();
      if (perform_something() || queue.has_room()) continue;
      fail_launch("LIVELOCK: all poll and nothing changes", queue);
      return false;
    }
    if (launch.settings.max_steps != 0 && launch.stats.switches > launch.settings.max_steps) {
      fail_launch("TOO LONG: more steps than max_steps", queue);
      return false;
    }
  }
  while (perform_something()) {
  }
  return !launch.has_failed;
}

}  // namespace emu
