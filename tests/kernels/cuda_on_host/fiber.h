#pragma once
// One fiber: a function with a stack of its own that is left and entered again, on the thread that calls. After the
// first entry no switch makes a system call, since a kernel's threads switch a million times in a test.
#include <setjmp.h>
#include <ucontext.h>

#include <cstdint>

namespace shoal::cuda_on_host {

class Fiber {
 public:
  // `stack` is borrowed.
  void use_stack(void* stack, std::size_t bytes);
  // Runs `body` from its beginning (when it is new or was dropped) or goes on behind leave(). Returns at the next
  // leave(). `body` never returns.
  void enter(void (*body)());
  // From inside: back behind enter().
  void leave();
  // Never goes on; the next enter() begins again. Nothing on its stack is destroyed.
  void drop() { begun_ = false; }

  std::uintptr_t stack_begin() const { return reinterpret_cast<std::uintptr_t>(stack_); }
  std::uintptr_t stack_end() const { return stack_begin() + stack_bytes_; }

 private:
  ucontext_t first_;
  jmp_buf inside_, outside_;
  void* stack_ = nullptr;
  std::size_t stack_bytes_ = 0;
  bool begun_ = false;
};

}  // namespace shoal::cuda_on_host
