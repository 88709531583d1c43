// What compilers call under -fsanitize=thread at each load and store, and under
// -fsanitize=undefined where something is undefined. The machine stands in for both libraries.
#include <string.h>

#include "access.h"
#include "fibers.h"
#include "report.h"

using namespace emu;

namespace {

void plain(void* address, uint64_t size, uint8_t kind, uint32_t place) {
  if (launch.current == nullptr) return;
  plain_access(reinterpret_cast<uint64_t>(address), size, kind, place);
}

void plain_aligned(void* address, uint64_t size, uint8_t kind, uint32_t place) {
  plain(address, size, kind, place);
  const uint64_t begin = reinterpret_cast<uint64_t>(address);
  if (begin % size == 0 || launch.current == nullptr) return;
  if (begin - reinterpret_cast<uint64_t>(launch.current->stack) < stack_bytes) return;
  check_alignment(begin, size, place);
}

void plain_range(const void* address, uint64_t size, uint8_t kind, uint32_t place) {
  if (size > 0) plain(const_cast<void*>(address), size, kind, place);
}

struct SourcePlace {
  const char* file;
  uint32_t line, column;
};

[[noreturn]] void fail_undefined(const char* what, const SourcePlace* at, uint64_t first,
                                 uint64_t second, uint32_t place) {
  fail(place, "UNDEFINED: %s (%#llx, %#llx) at %s:%u:%u", what,
       static_cast<unsigned long long>(first), static_cast<unsigned long long>(second), at->file,
       at->line, at->column);
}

}  // namespace

#define GPUALGO_ACCESS(size)                                                                   \
  void __tsan_read##size(void* address) { plain_aligned(address, size, is_read, caller()); }   \
  void __tsan_write##size(void* address) { plain_aligned(address, size, is_write, caller()); } \
  void __tsan_unaligned_read##size(void* address) { plain(address, size, is_read, caller()); } \
  void __tsan_unaligned_write##size(void* address) { plain(address, size, is_write, caller()); }

#define GPUALGO_UNDEFINED_CALL(call, what)                            \
  void call(const SourcePlace* at, uint64_t first, uint64_t second) { \
    fail_undefined(what, at, first, second, caller());                \
  }
#define GPUALGO_UNDEFINED(name, what)                 \
  GPUALGO_UNDEFINED_CALL(__ubsan_handle_##name, what) \
  GPUALGO_UNDEFINED_CALL(__ubsan_handle_##name##_abort, what)

extern "C" {

GPUALGO_ACCESS(1)
GPUALGO_ACCESS(2)
GPUALGO_ACCESS(4)
GPUALGO_ACCESS(8)
GPUALGO_ACCESS(16)

void __tsan_read_range(void* address, uint64_t size) {
  plain_range(address, size, is_read, caller());
}
void __tsan_write_range(void* address, uint64_t size) {
  plain_range(address, size, is_write, caller());
}
void* __tsan_memcpy(void* target, const void* source, uint64_t size) {
  plain_range(source, size, is_read, caller());
  plain_range(target, size, is_write, caller());
  return memcpy(target, source, size);
}
void* __tsan_memmove(void* target, const void* source, uint64_t size) {
  plain_range(source, size, is_read, caller());
  plain_range(target, size, is_write, caller());
  return memmove(target, source, size);
}
void* __tsan_memset(void* target, int value, uint64_t size) {
  plain_range(target, size, is_write, caller());
  return memset(target, value, size);
}
void __tsan_func_entry(void*) {}
void __tsan_func_exit(void*) {}
void __tsan_init() {}

GPUALGO_UNDEFINED(add_overflow, "sum")
GPUALGO_UNDEFINED(sub_overflow, "difference")
GPUALGO_UNDEFINED(mul_overflow, "product")
GPUALGO_UNDEFINED(negate_overflow, "negation")
GPUALGO_UNDEFINED(divrem_overflow, "quotient")
GPUALGO_UNDEFINED(shift_out_of_bounds, "shift")
GPUALGO_UNDEFINED(out_of_bounds, "index out of bounds of its array")
GPUALGO_UNDEFINED(builtin_unreachable, "end of a path that was called unreachable")
GPUALGO_UNDEFINED(missing_return, "end of a function without return")
GPUALGO_UNDEFINED(vla_bound_not_positive, "size of an array")
GPUALGO_UNDEFINED(load_invalid_value, "value that its type does not have")
GPUALGO_UNDEFINED(invalid_builtin, "argument of a builtin")
GPUALGO_UNDEFINED(pointer_overflow, "pointer")
GPUALGO_UNDEFINED(type_mismatch_v1, "address for its type")
GPUALGO_UNDEFINED(alignment_assumption, "alignment that was promised")
GPUALGO_UNDEFINED(nonnull_arg, "null argument")
GPUALGO_UNDEFINED(nonnull_return_v1, "null result")
GPUALGO_UNDEFINED(float_cast_overflow, "conversion of a float")
}
