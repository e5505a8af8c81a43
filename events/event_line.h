#pragma once
// Fields of one line of an event file, read leniently; Json is nlohmann::json, which no header of ours includes. Pure;
// thread-safe.
#include <cstdint>
#include <string>

namespace shoal {

// A text; empty when the line has none of this name.
template <class Json>
std::string event_text(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->template get<std::string>() : std::string();
}

// A counter; 0 when it is absent or no counter.
template <class Json>
std::uint64_t event_count(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number_unsigned() ? found->template get<std::uint64_t>() : 0;
}

}  // namespace shoal
