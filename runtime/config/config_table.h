#pragma once
// The options of RUN.toml as a table. Internal to the config files.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/config/config.h"

namespace shoal {

// An enumerator by name: the index in `names` is its value.
struct ChoiceSlot {
  std::uint8_t* value;
  std::span<const std::string_view> names;
};
// The same, or a list of them.
struct ChoicesSlot {
  EdgeCodecs* value;
  std::span<const std::string_view> names;
};
// A text, or a list of them.
struct TextsSlot {
  std::vector<std::string>* value;
};
// A number that derive_options() puts in the place of "auto".
template <class Number>
struct DerivedSlot {
  Number* value;
};
using OptionSlot =
    std::variant<std::string*, TextsSlot, std::uint16_t*, std::uint32_t*, std::uint64_t*, double*, ChoiceSlot,
                 ChoicesSlot, std::vector<std::uint32_t>*, std::vector<double>*, std::vector<PeerId>*,
                 std::vector<Digest>*, Auto<double>*, Auto<std::uint32_t>*, Auto<std::vector<double>>*,
                 DerivedSlot<std::uint32_t>, DerivedSlot<std::uint64_t>, DerivedSlot<double>>;

// Whether the manifest has an option. What came after the first manifests stands there only with another value than its
// default, so that theirs stay what they are.
enum class InManifest : std::uint8_t { kAlways, kUnlessDefault, kNever };

struct OptionRow {
  std::string_view section, key;
  OptionSlot (*slot)(RunConfig&);  // where the value lives
  std::string_view fallback;       // TOML text of the default; empty: the option must be given
  double min, max;                 // numbers: bounds of the value; texts and lists: of the length
  InManifest manifest;             // kNever: of this machine only
  std::string_view help;
};

std::span<const OptionRow> option_table();

// The candidate closest to `word` by edit distance, when it is close enough to be a slip of the pen; else empty.
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates);

// An option's value as TOML text.
std::string value_text(const OptionRow& row, const RunConfig& config);

// A manifest has no local options.
enum class OptionsOf : std::uint8_t { kRunFile, kManifest };
// The model in the folder that [model] from names.
using ModelReader = std::function<Result<ModelSpec>(const std::string& from)>;
// Text to RunConfig. With `model_of` the shapes of a given [model] from need not be given; where they are, they agree
// with the folder's. ERRORS: kInput, kUnsupported, and model_of's.
Result<RunConfig> parse_options(std::string_view text, const std::string& origin, OptionsOf options,
                                const ModelReader& model_of);

std::string number_text(double value);
// "integer", "auto or number", "one of raw, int8", ...
std::string type_text(const OptionRow& row);
bool takes_auto(const OptionRow& row);

}  // namespace shoal
