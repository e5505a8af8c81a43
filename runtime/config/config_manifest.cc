// RunConfig to text, through the option table: the manifest of a run.
#include <charconv>
#include <type_traits>

#include "runtime/config/config_table.h"
#include "runtime/config/derived_options.h"

namespace shoal {
namespace {

// As a basic string of TOML.
std::string in_quotes(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += std::string("\\u00") + kHex[byte >> 4] + kHex[byte & 15];
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

template <class Integer>
std::string text_of(const Integer* value) {
  return std::to_string(*value);
}
std::string text_of(const std::string* value) { return in_quotes(*value); }
std::string text_of(ChoiceSlot choice) { return "\"" + std::string(choice.names[*choice.value]) + "\""; }
std::string text_of(ChoicesSlot choices) {
  std::string text;
  for (const Auto<CodecId>& codec : choices.value->codecs)
    text += (text.empty() ? "\"" : ", \"") +
            std::string(codec.given ? kCodecNames[static_cast<std::size_t>(*codec.given)] : kAutoName) + "\"";
  return choices.value->per_stage ? "[" + text + "]" : text;
}
std::string text_of(const double* value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, *value).ptr;
  return std::string(digits, end);
}
std::string text_of(const std::vector<std::uint32_t>* list) {
  std::string text = "[";
  for (std::uint32_t value : *list) text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  return text + "]";
}
std::string text_of(const std::vector<double>* list) {
  std::string text = "[";
  for (const double& value : *list) text += (text.size() > 1 ? ", " : "") + text_of(&value);
  return text + "]";
}
template <class Value>
std::string text_of(const Auto<Value>* value) {
  return value->given ? text_of(&*value->given) : "\"auto\"";
}
template <class Number>
std::string text_of(DerivedSlot<Number> slot) {
  return *slot.value == kAuto<Number> ? "\"auto\"" : text_of(slot.value);
}
template <class Key>
requires std::is_same_v<Key, PeerId> || std::is_same_v<Key, Digest> std::string text_of(const std::vector<Key>* list) {
  std::string text = "[";
  for (const Key& key : *list) text += (text.size() > 1 ? ", \"" : "\"") + hex_of(key) + "\"";
  return text + "]";
}
std::string text_of(TextsSlot texts) {
  std::string text = "[";
  for (const std::string& one : *texts.value) text += (text.size() > 1 ? ", " : "") + in_quotes(one);
  return text + "]";
}

}  // namespace

std::string value_text(const OptionRow& row, const RunConfig& config) {
  RunConfig copy = config;
  return std::visit([](auto slot) { return text_of(slot); }, row.slot(copy));
}

Result<std::string> canonical_text(const RunConfig& config) {
  std::string text;
  std::string_view section;
  for (const OptionRow& row : option_table()) {
    if (row.manifest == InManifest::kNever) continue;
    const std::string value = value_text(row, config);
    if (row.manifest == InManifest::kUnlessDefault && value == row.fallback) continue;
    if (row.section != section) text += "[" + std::string(row.section) + "]\n";
    section = row.section;
    text += std::string(row.key) + " = " + value + "\n";
  }
  if (text.size() > kManifestBytesMax) {
    return make_error(ErrorCode::kTooLarge, "the manifest would have " + std::to_string(text.size()) +
                                                " bytes, allowed are 8192: shorten [admission] keys or [pipeline] "
                                                "layers_per_stage, or join files of [data] path");
  }
  return text;
}

Result<RunConfig> parse_manifest(std::string_view body) {
  if (body.size() > kManifestBytesMax) return make_error(ErrorCode::kTooLarge, "manifest: larger than 8 KiB");
  auto config = parse_options(body, "manifest", OptionsOf::kManifest, {});
  if (!config.ok()) return make_error(ErrorCode::kMalformed, config.error().message);
  const auto again = canonical_text(*config);
  if (!again.ok() || *again != body) {
    return make_error(ErrorCode::kMalformed, "manifest: not in canonical form (written by another version?)");
  }
  return config;
}

}  // namespace shoal
