#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <map>

#include "fibers.h"

namespace emu {

namespace {

void say_arguments(const char* format, va_list arguments) {
  char text[2000];
  vsnprintf(text, sizeof(text), format, arguments);
  launch.report += text;
}

const char* state_name(const Thread& thread) {
  switch (thread.state) {
    case State::in_collective:
      return "wait for lanes of their warp";
    case State::at_barrier:
      return "wait at a barrier";
    case State::in_activemask:
      return "ask which lanes are active";
    default:
      return thread.is_polling   ? "poll"
             : thread.place != 0 ? "can go on, after a wait"
                                 : "can go on";
  }
}

// What a thread does, and where; a thread that has not waited yet is nowhere in particular.
std::string doing(const Thread& thread) {
  return state_name(thread) + (thread.place != 0 ? " " + place_name(thread.place) : "");
}

// 0..31, or the threads one by one.
std::string range_of(const std::vector<uint32_t>& threads) {
  std::string text;
  for (size_t i = 0; i < threads.size();) {
    size_t end = i + 1;
    while (end < threads.size() && threads[end] == threads[end - 1] + 1) ++end;
    if (!text.empty()) text += ", ";
    if (text.size() > 100) return text + "…";
    text += std::to_string(threads[i]);
    if (end - i > 1) text += ".." + std::to_string(threads[end - 1]);
    i = end;
  }
  return text;
}

void say_missing(const Block& block) {
  for (size_t warp = 0; warp < block.collectives.size(); ++warp) {
    for (const Collective& step : block.collectives[warp]) {
      std::vector<uint32_t> missing;
      for (uint32_t lane = 0; lane < warp_threads; ++lane) {
        if ((step.lanes & ~step.arrived) >> lane & 1) {
          missing.push_back(uint32_t(warp) * warp_threads + lane);
        }
      }
      say("  block %u warp %zu: lanes %08x are asked for, threads %s have not come\n", block.index,
          warp, step.lanes, range_of(missing).c_str());
    }
  }
  for (const auto& [number, barrier] : block.barriers) {
    if (barrier.arrived.empty()) continue;
    say("  block %u barrier %d: %zu of %u threads have come\n", block.index, number,
        barrier.arrived.size(), barrier.num_awaited ? barrier.num_awaited : block.num_left);
  }
  for (const auto& [address, barrier] : block.mbarriers) {
    if (barrier.bytes == 0) continue;
    say("  block %u mbarrier at shared +%llu: phase %u, %u arrivals and %lld bytes to come\n",
        block.index, static_cast<unsigned long long>(address - block.shared->begin), barrier.phase,
        barrier.pending, static_cast<long long>(barrier.bytes));
  }
}

}  // namespace

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say_arguments(format, arguments);
  va_end(arguments);
}

void fail(uint32_t place, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say_arguments(format, arguments);
  va_end(arguments);
  say(" by %s %s\n", agent_name(launch.current->agent).c_str(), place_name(place).c_str());
  stop();
}

void stop() {
  launch.has_failed = true;
  leave_fiber();
  abort();
}

std::string place_name(uint32_t place) {
  char text[20];
  snprintf(text, sizeof(text), "@%x", place);
  return text;
}

std::string agent_name(Agent agent) {
  const uint32_t index = agent % block_agents;
  std::string text = "block " + std::to_string(block_of(agent));
  const std::string number = std::to_string(index % most_threads);
  if (index / most_threads == of_barriers) return text + " bulk copies of mbarrier " + number;
  text += " thread " + number;
  return is_thread(agent) ? text : text + "'s copies";
}

std::string access_name(uint8_t kind) {
  std::string text = kind & is_bulk      ? "bulk copy's "
                     : kind & is_copy    ? "copy's "
                     : kind & is_narrow  ? "relaxed (block) "
                     : kind & is_relaxed ? "relaxed "
                                         : "";
  return text + (kind & is_write ? "write" : "read");
}

std::string address_name(const Region& region, uint64_t offset) {
  char text[300];
  snprintf(text, sizeof(text), "%s+%llu", region.is_shared ? "shared memory " : "",
           static_cast<unsigned long long>(offset));
  if (region.is_shared) return text;
  return std::string(text) + " of " + region.name + " (" + std::to_string(region.size) + " bytes)";
}

void say_who_waits() {
  int num_blocks = 0;
  for (const Block* block : launch.resident) {
    if (++num_blocks > 6) {
      say("  and %zu more blocks\n", launch.resident.size() - 6);
      return;
    }
    std::map<std::string, std::vector<uint32_t>> groups;
    for (const Thread& thread : block->threads) {
      if (thread.state == State::done) continue;
      groups[doing(thread)].push_back(thread.index);
    }
    for (const auto& [what, threads] : groups) {
      say("  block %u: threads %s %s\n", block->index, range_of(threads).c_str(), what.c_str());
    }
    say_missing(*block);
  }
}

}  // namespace emu
