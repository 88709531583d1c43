#include "late_stores.h"

#include <utility>

namespace emu {

namespace {

constexpr size_t most_late_stores = 64;

struct LateStore {
  Thread* thread;
  Bytes bytes;
  Value value;
};
std::vector<LateStore> stores;  // in the order in which they came

void perform(size_t number) {
  LateStore store = std::move(stores[number]);
  stores.erase(stores.begin() + ptrdiff_t(number));
  --store.thread->num_late_stores;
  set_word(store.bytes, std::move(store.value));
}

template <class Condition>
void perform_if(Condition condition) {
  for (size_t i = 0; i < stores.size();) {
    if (condition(stores[i])) {
      perform(i);
    } else {
      ++i;
    }
  }
}

bool overlaps(const Bytes& bytes, uint64_t address, uint64_t size) {
  return bytes.address() < address + size && address < bytes.address() + bytes.size;
}

}  // namespace

void add_late_store(Thread& thread, const Bytes& bytes, Value value) {
  stores.push_back(LateStore{&thread, bytes, std::move(value)});
  ++thread.num_late_stores;
  ++launch.stats.late_stores;
  if (stores.size() > most_late_stores) perform_some_store();
}

bool finds_own_late_store(Thread& thread, const Bytes& bytes, uint64_t& bits) {
  if (thread.num_late_stores == 0) return false;
  for (size_t i = stores.size(); i > 0; --i) {
    const LateStore& store = stores[i - 1];
    if (store.thread != &thread || !overlaps(store.bytes, bytes.address(), bytes.size)) continue;
    bits = store.value.bits;
    if (store.bytes.offset == bytes.offset && store.bytes.size == bytes.size) return true;
    flush_stores_at(thread, bytes.address(), bytes.size);
    return false;
  }
  return false;
}

void flush_stores(Thread& thread) {
  if (thread.num_late_stores == 0) return;
  perform_if([&](const LateStore& store) { return store.thread == &thread; });
}

void flush_stores_at(Thread& thread, uint64_t address, uint64_t size) {
  if (thread.num_late_stores == 0) return;
  perform_if([&](const LateStore& store) {
    return store.thread == &thread && overlaps(store.bytes, address, size);
  });
}

bool perform_some_store() {
  if (stores.empty()) return false;
  size_t number = launch.random.below(stores.size());
  for (size_t i = 0; i < number; ++i) {  // a thread's stores to one address keep their order
    const Bytes& picked = stores[number].bytes;
    if (stores[i].thread == stores[number].thread &&
        overlaps(stores[i].bytes, picked.address(), picked.size)) {
      number = i;
    }
  }
  perform(number);
  return true;
}

bool has_late_stores() { return !stores.empty(); }
void forget_late_stores() { stores.clear(); }

}  // namespace emu
