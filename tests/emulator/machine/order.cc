#include "order.h"

#include <algorithm>

#include "late_stores.h"

namespace emu {

namespace {

bool is_same_warp(Thread* const* threads, size_t count) {
  return count == warp_threads && threads[0]->lane() == 0 &&
         threads[count - 1]->index == threads[0]->index + warp_threads - 1;
}

// Of threads of one block in order of their index, whose epochs go on after `epoch`.
void raise_all(Clock& clock, Thread* const* threads, size_t count, uint32_t epoch) {
  if (count == launch.num_threads) {
    clock.raise_block(threads[0]->agent, epoch);
    return;
  }
  for (size_t i = 0; i < count;) {
    const size_t rest = std::min<size_t>(count - i, warp_threads);
    if (is_same_warp(threads + i, rest)) {
      clock.raise_warp(threads[i]->agent, epoch);
      i += warp_threads;
    } else {
      clock.raise(threads[i]->agent, threads[i]->epoch);
      ++i;
    }
  }
}

uint32_t last_epoch(Thread* const* threads, size_t count) {
  uint32_t epoch = 0;
  for (size_t i = 0; i < count; ++i) epoch = std::max(epoch, threads[i]->epoch);
  return epoch;
}

}  // namespace

void close_epoch(Thread& thread) {
  flush_stores(thread);
  if (!launch.finds_races()) return;
  thread.view.before.raise(thread.agent, thread.epoch);
  ++thread.epoch;
}

void meet(Thread* const* threads, size_t count) {
  for (size_t i = 0; i < count; ++i) flush_stores(*threads[i]);
  if (!launch.finds_races()) return;
  View view = threads[0]->view;
  for (size_t i = 1; i < count; ++i) view.join(threads[i]->view);
  const uint32_t epoch = last_epoch(threads, count);
  raise_all(view.before, threads, count, epoch);
  for (size_t i = 0; i < count; ++i) {
    threads[i]->view = view;
    threads[i]->epoch = epoch + 1;
    threads[i]->has_read = false;
  }
}

void vote(Thread* const* threads, size_t count) {
  if (launch.settings.races != 1) return;
  const uint32_t epoch = last_epoch(threads, count);
  bool has_read = false;
  for (size_t i = 0; i < count; ++i) has_read = has_read || threads[i]->has_read;
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < count; ++k) threads[i]->voted[threads[k]->lane()] = epoch;
    threads[i]->has_voted = threads[i]->has_voted || has_read;
    threads[i]->epoch = epoch + 1;
  }
}

void complete_loose(Thread& thread) {
  View& view = thread.view;
  if (!view.in_loose.is(view.before)) view.loose.join(view.before);
  view.in_loose = view.before;
  if (thread.has_read) view.loose.raise(thread.agent, thread.epoch++);
  thread.has_read = false;
  if (!thread.has_voted) return;
  thread.has_voted = false;
  const Agent first = thread.agent - thread.lane();
  for (uint32_t lane = 0; lane < warp_threads; ++lane) {
    view.loose.raise(first + lane, thread.voted[lane]);
  }
}

void fence(Thread& thread, Order order, Scope scope) {
  close_epoch(thread);
  if (!launch.finds_races()) return;
  View& view = thread.view;
  view.join(thread.seen[0]);
  if (scope == Scope::device) view.join(thread.seen[1]);
  if (order == Order::seq_cst) {
    // Fences of one kind have an order among themselves, the one in which they come here.
    Clock* orders[] = {&thread.block->fence_order, &launch.fence_order};
    for (int i = 0; i <= (scope == Scope::device); ++i) {
      view.fences.join(*orders[i]);
      orders[i]->join(view.fences);
      orders[i]->join(view.before);
    }
  }
  thread.released[0] = view;
  if (scope == Scope::device) thread.released[1] = view;
}

}  // namespace emu
