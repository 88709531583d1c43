// Kernels' calls for words that several threads access: kernel_calls.h.
#include <string.h>

#include <algorithm>

#include "access.h"
#include "kernel_calls.h"
#include "order.h"
#include "report.h"
#include "scheduler.h"
#include "words.h"

using namespace emu;

namespace {

struct Operands {
  uint64_t operand, expected;
  int size, change;
  uint32_t place;
};

int64_t as_signed(uint64_t bits, int size) {
  return size == 4 ? int64_t(int32_t(uint32_t(bits))) : int64_t(bits);
}

template <class Float>
uint64_t add_floats(uint64_t a, uint64_t b) {
  Float x, y;
  memcpy(&x, &a, sizeof(x));
  memcpy(&y, &b, sizeof(y));
  x += y;
  uint64_t sum = 0;
  memcpy(&sum, &x, sizeof(x));
  return sum;
}

uint64_t changed(uint64_t old, const void* operands) {
  const auto& [operand, expected, size, change, place] = *static_cast<const Operands*>(operands);
  switch (change) {
    case emu_add:
      return old + operand;
    case emu_bit_and:
      return old & operand;
    case emu_bit_or:
      return old | operand;
    case emu_bit_xor:
      return old ^ operand;
    case emu_exchange:
      return operand;
    case emu_compare_exchange:
      return old == expected ? operand : old;
    case emu_min_signed:
      return uint64_t(std::min(as_signed(old, size), as_signed(operand, size)));
    case emu_max_signed:
      return uint64_t(std::max(as_signed(old, size), as_signed(operand, size)));
    case emu_min_unsigned:
      return std::min(old, operand);
    case emu_max_unsigned:
      return std::max(old, operand);
    case emu_add_float:
      return size == 4 ? add_floats<float>(old, operand) : add_floats<double>(old, operand);
    default:
      fail(place, "WORD: no change has number %d", change);
  }
}

// Of the low bytes of a word.
uint64_t low(uint64_t bits, int size) {
  return size == 8 ? bits : bits & ((uint64_t(1) << 8 * size) - 1);
}

}  // namespace

extern "C" {

uint64_t emu_load(const void* address, int size, int order, int scope) {
  return load_word(address, size, order, scope, caller());
}

void emu_store(void* address, uint64_t value, int size, int order, int scope) {
  store_word(address, low(value, size), size, order, scope, caller());
}

uint64_t emu_change(void* address, uint64_t operand, uint64_t expected, int size, int change,
                    int order, int scope) {
  const Operands operands{low(operand, size), low(expected, size), size, change, caller()};
  return change_word(address, size, order, scope, caller(), changed, &operands);
}

void emu_fence(int order, int scope) {
  look_at_late_write();
  fence(*launch.current, Order(order), Scope(scope));
  maybe_switch();
}

void emu_sleep() { poll(caller()); }

uint32_t emu_clock_cycles() {
  auto& [is_drawn, stands_still, now] = launch.cycles;
  if (!is_drawn) {  // here, so that launches without a clock go as they would
    is_drawn = true;
    stands_still = launch.random.chance(0.3);
    now = uint32_t(launch.random.next());
  }
  if (!stands_still) now += uint32_t(launch.random.below(200));
  ++launch.progress;
  const uint32_t seen = now;
  maybe_switch();
  return seen;
}
}
