#pragma once
// Where the end of memory stops: whoever allocates much, and can refuse, refuses. Thread: any.
#include <new>
#include <string>

#include "common/result.h"

namespace shoal {

// Runs a function that returns a Result or a Status; when memory ends in it, that is kTooLarge.
template <class Function>
auto guard_memory(const char* what, Function&& function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::kTooLarge, std::string("out of memory: ") + what);
  }
}

}  // namespace shoal
