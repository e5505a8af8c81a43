#include "stages/torch_guard.h"

#include <c10/util/Exception.h>

#include <new>
#include <string>

namespace shoal {

Error error_of(const std::exception& thrown) {
  const auto* torch = dynamic_cast<const c10::Error*>(&thrown);
  std::string text = torch != nullptr ? torch->what_without_backtrace() : thrown.what();
  const bool memory = dynamic_cast<const c10::OutOfMemoryError*>(&thrown) != nullptr ||
                      dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr ||
                      text.find("DefaultCPUAllocator") != text.npos;
  text = text.substr(0, text.find('\n'));
  return make_error(memory ? ErrorCode::kTooLarge : ErrorCode::kIo, "libtorch: " + text);
}

}  // namespace shoal
