#pragma once
// Fields of one line of an event file, read leniently; Json is nlohmann::json, which no header of ours includes. Pure;
// thread-safe.
#include <charconv>
#include <cstdint>
#include <string>

namespace shoal {

// A text; empty when the line has none of this name.
template <class Json>
std::string event_text(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->template get<std::string>() : std::string();
}

// A counter, which stands in events as a text; 0 when it is absent or no number.
template <class Json>
std::uint64_t event_count(const Json& line, const char* key) {
  const std::string text = event_text(line, key);
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace shoal
