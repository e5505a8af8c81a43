#pragma once
// Text as printf writes it, and lists. Thread-safe.
#include <string>
#include <string_view>

namespace shoal {

[[gnu::format(printf, 1, 2)]] std::string formatted(const char* pattern, ...);

// "a, b"
template <class Texts>
std::string list_text(const Texts& texts) {
  std::string all;
  for (const std::string_view text : texts) all.append(all.empty() ? "" : ", ").append(text);
  return all;
}

}  // namespace shoal
