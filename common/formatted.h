#pragma once
// Text as printf writes it. Thread-safe.
#include <string>

namespace shoal {

[[gnu::format(printf, 1, 2)]] std::string formatted(const char* pattern, ...);

}  // namespace shoal
