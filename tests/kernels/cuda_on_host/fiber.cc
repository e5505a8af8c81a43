// Built without _FORTIFY_SOURCE, whose longjmp refuses another stack.
#include "tests/kernels/cuda_on_host/fiber.h"

#include "common/check.h"

namespace shoal::cuda_on_host {

void Fiber::use_stack(void* stack, std::size_t bytes) {
  stack_ = stack;
  stack_bytes_ = bytes;
}

void Fiber::enter(void (*body)()) {
  if (_setjmp(outside_) != 0) return;
  if (begun_) _longjmp(inside_, 1);
  begun_ = true;
  SHOAL_CHECK_EQ(getcontext(&first_), 0);
  first_.uc_stack.ss_sp = stack_;
  first_.uc_stack.ss_size = stack_bytes_;
  first_.uc_link = nullptr;
  makecontext(&first_, body, 0);
  setcontext(&first_);
  SHOAL_CHECK(false);  // it came back
}

void Fiber::leave() {
  if (_setjmp(inside_) == 0) _longjmp(outside_, 1);
}

}  // namespace shoal::cuda_on_host
