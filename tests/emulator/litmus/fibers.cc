// What two functions hold while each switches to the other, by nothing but the switch itself: what
// calls it in the machine keeps registers as well.
#include "../machine/fibers.cc"

// For each of the two.
struct Held {
  const uint64_t* words;
  const double* numbers;
  uint64_t* words_after;
  double* numbers_after;
  uint64_t room;  // bytes of the stack, so many that only the frame's register tells what is where
};

// More of each kind than there are registers that a function keeps for its caller. There is but one
// call, so that these are what compilers keep them in; neighbours part, or they go as one vector.
__attribute__((no_sanitize("thread", "undefined"), noinline)) void hold(Held& held, void** from,
                                                                        void** to) {
  held.room = reinterpret_cast<uint64_t>(__builtin_alloca(held.room));
  const uint64_t* a = held.words;
  const double* b = held.numbers;
  const uint64_t a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3], a4 = a[4], a5 = a[5], a6 = a[6],
                 a7 = a[7], a8 = a[8], a9 = a[9], a10 = a[10], a11 = a[11];
  const double b0 = b[0], b1 = b[1], b2 = b[2], b3 = b[3], b4 = b[4], b5 = b[5], b6 = b[6],
               b7 = b[7], b8 = b[8], b9 = b[9], b10 = b[10], b11 = b[11];
  emu_switch_stack(from, *to);
  uint64_t* to_a = held.words_after;
  to_a[11] = a0, to_a[10] = a1, to_a[9] = a2, to_a[8] = a3, to_a[7] = a4, to_a[6] = a5;
  to_a[5] = a6, to_a[4] = a7, to_a[3] = a8, to_a[2] = a9, to_a[1] = a10, to_a[0] = a11;
  double* to_b = held.numbers_after;
  to_b[11] = b0, to_b[10] = b1, to_b[9] = b2, to_b[8] = b3, to_b[7] = b4, to_b[6] = b5;
  to_b[5] = b6, to_b[4] = b7, to_b[3] = b8, to_b[2] = b9, to_b[1] = b10, to_b[0] = b11;
}

static Held* both;
static uint64_t place;        // of a variable that is aligned if the stack was at first
static void *first, *second;  // their stacks, while the other runs

static void begin_second(const void*) {
  alignas(16) uint32_t aligned[4];
  place = reinterpret_cast<uint64_t>(aligned);
  hold(both[1], &second, &first);
  emu_switch_stack(&second, first);
}

// Returns a place that 16 divides.
extern "C" uint64_t hold_both(Held* given) {
  both = given;
  emu::Thread thread;
  emu::begin_fiber(thread);
  emu::launch.entry = begin_second;
  second = thread.stack_pointer;
  hold(both[0], &first, &second);
  emu_switch_stack(&first, second);
  emu::launch.entry = nullptr;
  emu::end_fiber(thread);
  return place;
}
