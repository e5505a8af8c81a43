#pragma once
// Where exceptions of the tensor library end. Included by .cc files that compute with it; sees c10's exceptions only.
#include <c10/util/Exception.h>

#include <new>
#include <string_view>

#include "common/result.h"

namespace shoal {

// ERRORS: kTooLarge (out of memory), kIo (the library or the driver failed otherwise; its first line).
inline Error error_of(const std::exception& thrown) {
  const auto* torch = dynamic_cast<const c10::Error*>(&thrown);
  std::string text = torch != nullptr ? torch->what_without_backtrace() : thrown.what();
  const bool memory = dynamic_cast<const c10::OutOfMemoryError*>(&thrown) != nullptr ||
                      dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr ||
                      text.find("DefaultCPUAllocator") != text.npos;
  text = text.substr(0, text.find('\n'));
  return make_error(memory ? ErrorCode::kTooLarge : ErrorCode::kIo, "libtorch: " + text);
}

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
