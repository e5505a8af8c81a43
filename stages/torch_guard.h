#pragma once
// Where exceptions of the tensor library end. Included by .cc files that compute with it. Thread: any.
#include <exception>

#include "common/result.h"

namespace shoal {

// ERRORS: kTooLarge (out of memory), kIo (the library or the driver failed otherwise; its first line).
Error error_of(const std::exception& thrown);

// Runs a function that returns a Result; a thrown exception becomes its error.
template <class Function>
auto guard_torch(Function&& function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::exception& thrown) {
    return error_of(thrown);
  }
}

// For operations that have nothing to refuse: memory was reserved before. What fails here is a bug or a broken device.
template <class Function>
void must_not_throw(Function&& function) {
  try {
    function();
  } catch (const std::exception& thrown) {
    check_failed(__FILE__, __LINE__, "libtorch succeeds", error_of(thrown).message);
  }
}

}  // namespace shoal
