#include "fibers.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "access.h"
#include "report.h"

// Keeps the registers that a function must keep on the stack, takes another stack and the
// registers that lie there.
extern "C" void emu_switch_stack(void** from, void* to);

#if defined(__x86_64__)
constexpr int kept_words = 6, return_word = 6;
asm(R"(
  .text
  .globl emu_switch_stack
  .hidden emu_switch_stack
  .type emu_switch_stack, %function
emu_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
#elif defined(__aarch64__)
constexpr int kept_words = 20, return_word = 11;
asm(R"(
  .text
  .globl emu_switch_stack
  .hidden emu_switch_stack
  .type emu_switch_stack, %function
emu_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");
#else
#error "fibers.cc: write emu_switch_stack for this processor"
#endif

namespace emu {

namespace {

void* scheduler_stack;
std::vector<char*> free_stacks;  // kept between launches

void run_thread() {
  launch.entry(launch.params.data());
  Thread& thread = *launch.current;
  thread.state = State::done;
  --thread.block->num_left;
  ++launch.progress;
  ++launch.effects;
  leave_fiber();
  abort();
}

}  // namespace

void begin_fiber(Thread& thread) {
  if (free_stacks.empty()) {
    constexpr uint64_t many = 256;
    void* memory = mmap(nullptr, many * stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (uint64_t i = many; i > 0; --i) {
      free_stacks.push_back(static_cast<char*>(memory) + (i - 1) * stack_bytes);
    }
  }
  thread.stack = free_stacks.back();
  free_stacks.pop_back();
  // As if it had left at run_thread's begin, called with the stack aligned to 16 bytes.
  void** top = reinterpret_cast<void**>(thread.stack + stack_bytes) - 4;
  void** kept = top - kept_words;
  for (void** word = kept; word <= top + 1; ++word) *word = nullptr;
  kept[return_word] = reinterpret_cast<void*>(run_thread);
  thread.stack_pointer = kept;
}

void end_fiber(Thread& thread) { free_stacks.push_back(thread.stack); }

void enter_fiber(Thread& thread) {
  launch.current = &thread;
  emu_switch_stack(&scheduler_stack, thread.stack_pointer);
}

void leave_fiber() {
  Thread& thread = *launch.current;
  look_at_late_write();
  const char* here = static_cast<char*>(__builtin_frame_address(0));
  if (here - thread.stack < 4096 && !launch.has_failed) {
    launch.has_failed = true;
    say("STACK: %s has used all of its %d KiB\n", agent_name(thread.agent).c_str(),
        int(stack_bytes >> 10));
  }
  emu_switch_stack(&thread.stack_pointer, scheduler_stack);
}

}  // namespace emu
