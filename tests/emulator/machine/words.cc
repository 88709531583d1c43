#include "words.h"

#include <string.h>

#include <algorithm>

#include "access.h"
#include "kernel_calls.h"
#include "late_stores.h"
#include "order.h"
#include "report.h"
#include "reruns.h"
#include "scheduler.h"

namespace emu {

namespace {

constexpr size_t most_values = 8;    // that a word remembers
constexpr size_t most_readers = 64;  // of a value
// Words of different sizes become one, as if all their values had been written at once.
void mix(Words& words) {
  words.is_mixed = true;
  Value all;
  for (Word& word : words.words) {
    for (const Value& value : word.values) {
      all.in_block.join(value.in_block);
      all.wide.join(value.wide);
      all.loose.join(value.loose);
    }
    word.values.clear();
  }
  words.words[0].values.assign(1, all);
}

// The word there, which has a value.
struct Found {
  Word& word;
  bool is_mixed;
};
Found find_word(const Bytes& bytes) {
  auto& all = bytes.region->words;
  if (all.empty()) all.resize((bytes.region->size + 7) / 8);
  std::unique_ptr<Words>& there = all[bytes.offset / 8];
  if (there == nullptr) there = std::make_unique<Words>();
  Words& words = *there;
  if (words.size == 0) words.size = int(bytes.size);
  if (words.size != int(bytes.size) && !words.is_mixed) mix(words);
  Word& word = words.words[words.is_mixed ? 0 : bytes.offset % 8 / bytes.size];
  if (word.values.empty()) {
    Value first;
    memcpy(&first.bits, reinterpret_cast<void*>(bytes.address()), bytes.size);
    first.is_written = bytes.region->is_written(bytes.offset, bytes.size);
    word.values.push_back(std::move(first));
  }
  return {word, words.is_mixed};
}

void append(const Found& found, Value value) {
  auto& values = found.word.values;
  if (found.is_mixed) {
    value.in_block.join(values.back().in_block);
    value.wide.join(values.back().wide);
    value.loose.join(values.back().loose);
    values.clear();
  }
  if (values.size() == most_values) values.erase(values.begin());
  values.push_back(std::move(value));
}

bool knows(const Thread& thread, Agent agent, uint32_t epoch) {
  return agent == thread.agent || thread.view.before.has(agent, epoch) ||
         thread.view.fences.has(agent, epoch);
}

// Whether a thread may see nothing older than this value.
bool knows(const Thread& thread, const Value& value) {
  if (value.epoch == 0 || knows(thread, value.writer, value.epoch)) return true;
  for (const auto& [agent, epoch] : value.readers) {
    if (knows(thread, agent, epoch)) return true;
  }
  return false;
}

bool has_seen(const Thread& thread, const Value& value) {
  for (const auto& [agent, epoch] : value.readers) {
    if (agent == thread.agent) return true;
  }
  return false;
}

size_t choose(const Thread& thread, const Word& word) {
  const size_t newest = word.values.size() - 1;
  if (launch.settings.weak == 0) return newest;
  size_t oldest = newest;
  while (oldest > 0 && !knows(thread, word.values[oldest])) --oldest;
  if (oldest == newest) return newest;
  const bool comes_again = has_seen(thread, word.values[oldest]);  // and shall not wait for ever
  const double is_new = comes_again ? 0.9 : launch.settings.weak == 1 ? 0.5 : 0.25;
  if (launch.random.chance(is_new)) return newest;
  ++launch.stats.old_loads;
  return oldest + launch.random.below(newest - oldest);
}

// Remembers who has seen a value: what that thread tells others, they may not unsee.
void add_reader(const Thread& thread, Word& word, size_t number) {
  auto& readers = word.values[number].readers;
  if (readers.size() == most_readers) {  // too many to remember: all see this one or a newer one
    word.values.erase(word.values.begin(), word.values.begin() + ptrdiff_t(number));
  } else {
    readers.emplace_back(thread.agent, thread.epoch);
  }
}

bool acquires(int order) { return order == emu_acquire || order >= emu_acq_rel; }
bool releases(int order) { return order >= emu_release; }

void take_in(Thread& thread, const Value& value, int order, int scope) {
  const bool is_near = block_of(value.writer) == thread.block->index && value.epoch != 0;
  if (is_near) {
    (acquires(order) ? thread.view : thread.seen[0]).join(value.in_block);
  } else if (scope == emu_device_scope) {
    (acquires(order) ? thread.view : thread.seen[1]).join(value.wide);
  }
  thread.view.loose.join(value.loose);
}

// What a thread leaves with a value that it stores.
Value value_of(Thread& thread, const Bytes& bytes, uint64_t bits, int order, int scope) {
  if (releases(order)) close_epoch(thread);
  Value value;
  value.bits = bits;
  if (!launch.finds_races()) return value;
  value.writer = thread.agent;
  value.epoch = thread.epoch;
  value.in_block = releases(order) ? thread.view : thread.released[0];
  if (scope == emu_device_scope) value.wide = releases(order) ? thread.view : thread.released[1];
  if (!launch.is_strict() && !bytes.region->is_shared) {
    complete_loose(thread);
    value.loose = thread.view.loose;
  }
  return value;
}

uint8_t kind_of(int scope) {
  return scope == emu_block_scope ? is_relaxed | is_narrow : is_relaxed;
}

// An access to a word, checked but for what it reads.
Bytes reach_word(const void* address, int size, uint8_t kind, uint32_t place) {
  const uint64_t begin = reinterpret_cast<uint64_t>(address);
  const Bytes bytes = reach(begin, uint64_t(size), kind, place);
  if (bytes.region == nullptr) {
    fail(place, "WORD: a relaxed or atomic access to a thread's own memory");
  }
  check_alignment(begin, uint64_t(size), place);
  check_races(bytes, kind, place);
  return bytes;
}

}  // namespace

void set_word(const Bytes& bytes, Value value) {
  const uint64_t bits = value.bits;
  if (launch.finds_races()) append(find_word(bytes), std::move(value));
  void* memory = reinterpret_cast<void*>(bytes.address());
  will_write(*bytes.region, bytes.offset, bytes.size);
  if (!bytes.region->is_shared && memcmp(memory, &bits, bytes.size) != 0) ++launch.effects;
  memcpy(memory, &bits, bytes.size);
  bytes.region->set_written(bytes.offset, bytes.size);
  ++launch.progress;
  ++launch.word_changes;
}

void forget_words(Region& region, uint64_t offset, uint64_t bytes) {
  if (region.words.empty()) return;
  for (uint64_t number = offset / 8; number * 8 < offset + bytes; ++number) {
    Words* words = region.words[number].get();
    if (words == nullptr) continue;
    if (words->is_mixed) {
      region.words[number].reset();
      continue;
    }
    for (uint64_t i = 0; i * uint64_t(words->size) < 8; ++i) {  // neighbours stay as they are
      const uint64_t first = number * 8 + i * uint64_t(words->size);
      if (first < offset + bytes && offset < first + uint64_t(words->size)) {
        words->words[i].values.clear();
      }
    }
  }
}

uint64_t load_word(const void* address, int size, int order, int scope, uint32_t place) {
  poll(place);
  Thread& thread = *launch.current;
  const Bytes bytes = reach_word(address, size, kind_of(scope), place);
  uint64_t bits = 0;
  if (finds_own_late_store(thread, bytes, bits)) return bits;
  memcpy(&bits, address, size_t(size));
  if (!launch.finds_races()) {
    check_written(bytes, place);
    return bits;
  }
  const auto [word, is_mixed] = find_word(bytes);
  const size_t number = choose(thread, word);
  Value& value = word.values[number];
  if (!value.is_written) check_written(bytes, place);
  if (!is_mixed) bits = value.bits;
  const bool is_new = !has_seen(thread, value);
  if (is_new || acquires(order)) take_in(thread, value, order, scope);
  if (is_new) add_reader(thread, word, number);
  return bits;
}

void store_word(void* address, uint64_t bits, int size, int order, int scope, uint32_t place) {
  const Bytes bytes = reach_word(address, size, kind_of(scope) | is_write, place);
  Thread& thread = *launch.current;
  Value value = value_of(thread, bytes, bits, order, scope);
  if (launch.settings.weak == 0) {
    set_word(bytes, std::move(value));
  } else {
    add_late_store(thread, bytes, std::move(value));
  }
  ++launch.progress;
  maybe_switch();
}

uint64_t change_word(void* address, int size, int order, int scope, uint32_t place,
                     uint64_t (*change)(uint64_t, const void*), const void* operands) {
  Thread& thread = *launch.current;
  const Bytes bytes = reach_word(address, size, kind_of(scope) | is_write, place);
  flush_stores_at(thread, bytes.address(), bytes.size);
  check_written(bytes, place);
  uint64_t old = 0;
  memcpy(&old, address, size_t(size));
  const uint64_t bits = change(old, operands);
  Value value;
  if (launch.finds_races()) {
    // It sees the newest value, and hands on what that told (a release sequence).
    const Value before = find_word(bytes).word.values.back();
    take_in(thread, before, order, scope);
    value = value_of(thread, bytes, bits, order, scope);
    if (block_of(before.writer) == thread.block->index) value.in_block.join(before.in_block);
    value.wide.join(before.wide);
  } else {
    value = value_of(thread, bytes, bits, order, scope);
  }
  set_word(bytes, std::move(value));
  maybe_switch();
  return old;
}

}  // namespace emu
