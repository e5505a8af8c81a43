// Sees the TOML library: text to RunConfig, through the option table.
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "runtime/config/config_table.h"
#include "runtime/config/derived_options.h"
#include "stages/boundary.h"

namespace shoal {
namespace {

// Longer sequences are asked for: their memory grows faster than they do.

// Where a message points to: "run.toml:12: ".
std::string at(const std::string& origin, const toml::source_region& where) {
  return origin + (where.begin.line > 0 ? ":" + std::to_string(where.begin.line) : "") + ": ";
}

Error input_error(std::string message) { return make_error(ErrorCode::kInput, std::move(message)); }

std::string name_of(const OptionRow& row) { return "[" + std::string(row.section) + "] " + std::string(row.key); }

Status check_bound(const OptionRow& row, double value, const char* unit) {
  if (value >= row.min && value <= row.max) return {};
  return input_error(name_of(row) + " = " + number_text(value) + unit + " is out of bounds: allowed is " +
                     number_text(row.min) + " to " + number_text(row.max) + unit +
                     (takes_auto(row) ? ", or \"auto\"" : ""));
}

Error wrong_type(const OptionRow& row) { return input_error(name_of(row) + " must be " + type_text(row)); }

template <class Integer>
Status assign_integer(const OptionRow& row, const toml::node& node, Integer* out) {
  const auto value = node.is_integer() ? node.value<std::int64_t>() : std::nullopt;
  if (!value) return wrong_type(row);
  SHOAL_TRY(check_bound(row, static_cast<double>(*value), ""));
  *out = static_cast<Integer>(*value);
  return {};
}

Status assign(const OptionRow& row, const toml::node& node, std::uint16_t* out) {
  return assign_integer(row, node, out);
}
Status assign(const OptionRow& row, const toml::node& node, std::uint32_t* out) {
  return assign_integer(row, node, out);
}
Status assign(const OptionRow& row, const toml::node& node, std::uint64_t* out) {
  return assign_integer(row, node, out);
}

// Zero has no sign: "-0" in a manifest would be read as the integer 0, which is written otherwise.
std::optional<double> number_of(const toml::node& node) {
  const auto value = node.is_number() ? node.value<double>() : std::nullopt;
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return *value == 0 ? 0.0 : *value;
}

Status assign(const OptionRow& row, const toml::node& node, double* out) {
  const std::optional<double> value = number_of(node);
  if (!value) return wrong_type(row);
  SHOAL_TRY(check_bound(row, *value, ""));
  *out = *value;
  return {};
}

Status assign(const OptionRow& row, const toml::node& node, std::string* out) {
  const auto value = node.is_string() ? node.value<std::string>() : std::nullopt;
  if (!value) return wrong_type(row);
  SHOAL_TRY(check_bound(row, static_cast<double>(value->size()), " characters"));
  *out = *value;
  return {};
}

Result<std::uint8_t> choice_of(const OptionRow& row, const toml::node& node, std::span<const std::string_view> names) {
  const auto value = node.is_string() ? node.value<std::string>() : std::nullopt;
  if (!value) return wrong_type(row);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (*value == names[i]) return static_cast<std::uint8_t>(i);
  const std::string_view meant = nearest_name(*value, names);
  return input_error(name_of(row) + " = \"" + *value + "\" is not known: it is " + type_text(row) +
                     (meant.empty() ? "" : "; did you mean \"" + std::string(meant) + "\"?"));
}

Status assign(const OptionRow& row, const toml::node& node, ChoiceSlot out) {
  SHOAL_ASSIGN(*out.value, choice_of(row, node, out.names));
  return {};
}

Status assign(const OptionRow& row, const toml::node& node, ChoicesSlot out) {
  const toml::array* list = node.as_array();
  out.value->per_stage = list != nullptr;
  out.value->codecs.clear();
  const auto add = [&](const toml::node& one) -> Status {
    SHOAL_ASSIGN(const std::uint8_t choice, choice_of(row, one, out.names));
    out.value->codecs.push_back(choice < std::size(kCodecs) ? Auto(static_cast<CodecId>(choice)) : Auto<CodecId>());
    return {};
  };
  if (list == nullptr) return add(node);
  SHOAL_TRY(check_bound(row, static_cast<double>(list->size()), " items"));
  for (const toml::node& one : *list) SHOAL_TRY(add(one));
  return {};
}

Status assign(const OptionRow& row, const toml::node& node, std::vector<std::uint32_t>* out) {
  const toml::array* list = node.as_array();
  if (list == nullptr) return wrong_type(row);
  SHOAL_TRY(check_bound(row, static_cast<double>(list->size()), " items"));
  out->clear();
  for (const toml::node& item : *list) {
    const auto value = item.is_integer() ? item.value<std::int64_t>() : std::nullopt;
    if (!value || *value < 0 || *value > UINT32_MAX) return wrong_type(row);
    out->push_back(static_cast<std::uint32_t>(*value));
  }
  return {};
}

Status assign(const OptionRow& row, const toml::node& node, std::vector<double>* out) {
  const toml::array* list = node.as_array();
  if (list == nullptr) return wrong_type(row);
  SHOAL_TRY(check_bound(row, static_cast<double>(list->size()), " items"));
  out->clear();
  for (const toml::node& item : *list) {
    const std::optional<double> value = number_of(item);
    if (!value) return wrong_type(row);
    out->push_back(*value);
  }
  return {};
}

// 32 bytes each, as hex digits. `hint` follows what is wrong with one.
template <class Key>
Status assign_keys(const OptionRow& row, const toml::node& node, std::vector<Key>* out, const std::string& hint) {
  const toml::array* list = node.as_array();
  if (list == nullptr) return wrong_type(row);
  SHOAL_TRY(check_bound(row, static_cast<double>(list->size()), " items"));
  out->clear();
  for (const toml::node& item : *list) {
    const auto value = item.value<std::string>();
    if (!value) return wrong_type(row);
    const auto key = parse_hex32(*value);
    if (!key.ok()) return input_error(name_of(row) + ": " + key.error().message + hint);
    out->push_back(Key{key.value()});
  }
  return {};
}

Status assign(const OptionRow& row, const toml::node& node, std::vector<PeerId>* out) {
  return assign_keys(row, node, out, " (`shoal key` prints a machine's key)");
}
Status assign(const OptionRow& row, const toml::node& node, std::vector<Digest>* out) {
  return assign_keys(row, node, out, "");
}

Status assign(const OptionRow& row, const toml::node& node, TextsSlot out) {
  constexpr std::size_t kListMax = 64;
  const toml::array* list = node.as_array();
  out.value->clear();
  const auto add = [&](const toml::node& one) -> Status {
    std::string text;
    SHOAL_TRY(assign(row, one, &text));
    out.value->push_back(std::move(text));
    return {};
  };
  if (list == nullptr) return add(node);
  const std::size_t least = row.fallback == "[]" ? 0 : 1;
  if (list->size() < least || list->size() > kListMax)
    return input_error(name_of(row) + " lists " + std::to_string(list->size()) + " texts: allowed is " +
                       std::to_string(least) + " to " + std::to_string(kListMax));
  for (const toml::node& one : *list) SHOAL_TRY(add(one));
  return {};
}

// REQUIRES: `node` is a text.
Status check_auto(const OptionRow& row, const toml::node& node, bool is_list) {
  if (*node.value<std::string>() == "auto") return {};
  const std::string bounds = number_text(row.min) + " to " + number_text(row.max);
  return input_error(name_of(row) + " = \"" + *node.value<std::string>() + "\" is not known: it is \"auto\", or " +
                     (is_list ? "a list of " + bounds + " numbers" : bounds));
}

template <class Value>
Status assign(const OptionRow& row, const toml::node& node, Auto<Value>* out) {
  if (!node.is_string()) {
    out->given = Value{};
    return assign(row, node, &*out->given);
  }
  SHOAL_TRY(check_auto(row, node, !std::is_arithmetic_v<Value>));
  out->given.reset();
  return {};
}

template <class Number>
Status assign(const OptionRow& row, const toml::node& node, DerivedSlot<Number> out) {
  if (!node.is_string()) return assign(row, node, out.value);
  SHOAL_TRY(check_auto(row, node, false));
  *out.value = kAuto<Number>;
  return {};
}

Status apply(const OptionRow& row, const toml::node& node, RunConfig& config) {
  return std::visit([&](auto slot) { return assign(row, node, slot); }, row.slot(config));
}

const OptionRow* find_row(std::string_view section, std::string_view key) {
  for (const OptionRow& row : option_table()) {
    if (row.section == section && row.key == key) return &row;
  }
  return nullptr;
}

std::vector<std::string_view> section_names() {
  std::vector<std::string_view> names;
  for (const OptionRow& row : option_table()) {
    if (names.empty() || names.back() != row.section) names.push_back(row.section);
  }
  return names;
}

Error unknown_section(const std::string& origin, const toml::node& node, std::string_view section) {
  std::string message = at(origin, node.source()) + "unknown section [" + std::string(section) + "]";
  const std::string_view meant = nearest_name(section, section_names());
  if (!meant.empty()) message += "; did you mean [" + std::string(meant) + "]?";
  return input_error(std::move(message));
}

Error unknown_key(const std::string& origin, const toml::source_region& where, std::string_view section,
                  std::string_view key) {
  std::string message =
      at(origin, where) + "unknown key \"" + std::string(key) + "\" in [" + std::string(section) + "]";
  std::vector<std::string_view> keys;
  for (const OptionRow& row : option_table()) {
    if (row.key == key) return input_error(message + "; did you mean " + name_of(row) + "?");
    if (row.section == section) keys.push_back(row.key);
  }
  const std::string_view meant = nearest_name(key, keys);
  if (!meant.empty()) return input_error(message + "; did you mean \"" + std::string(meant) + "\"?");
  message += "; known are:";
  for (std::string_view known : keys) message += " " + std::string(known);
  return input_error(std::move(message));
}

Status apply_defaults(RunConfig& config) {
  std::string text;
  for (const OptionRow& row : option_table()) {
    if (!row.fallback.empty())
      text += std::string(row.section) + "." + std::string(row.key) + " = " + std::string(row.fallback) + "\n";
  }
  const toml::table defaults = toml::parse(text);
  for (const OptionRow& row : option_table()) {
    if (!row.fallback.empty()) SHOAL_TRY(apply(row, *defaults[row.section][row.key].node(), config));
  }
  return {};
}

Status apply_file(const toml::table& file, const std::string& origin, RunConfig& config) {
  for (const auto& [section_key, section_node] : file) {
    const std::string_view section = section_key.str();
    const auto sections = section_names();
    if (std::find(sections.begin(), sections.end(), section) == sections.end())
      return unknown_section(origin, section_node, section);
    const toml::table* entries = section_node.as_table();
    if (entries == nullptr) {
      return input_error(at(origin, section_node.source()) + "[" + std::string(section) +
                         "] must be a section, not a value");
    }
    for (const auto& [key, node] : *entries) {
      const OptionRow* row = find_row(section, key.str());
      if (row == nullptr) return unknown_key(origin, node.source(), section, key.str());
      const Status status = apply(*row, node, config);
      if (!status.ok()) return make_error(status.code(), at(origin, node.source()) + status.error().message);
    }
  }
  return {};
}

Status check_required(const toml::table& file, const std::string& origin, OptionsOf options, bool model_is_known) {
  for (const OptionRow& row : option_table()) {
    if (!row.fallback.empty() || (row.manifest == InManifest::kNever && options == OptionsOf::kManifest)) continue;
    if (model_is_known && row.section == "model") continue;
    if (!file[row.section][row.key]) {
      return input_error(origin + ": " + name_of(row) + " is missing (" + type_text(row) + ": " +
                         std::string(row.help) + ")");
    }
  }
  return {};
}

// Whether the file names a folder that has the model's shapes.
Result<bool> fill_model(const toml::table& file, const std::string& origin, const ModelReader& model_of,
                        RunConfig& config) {
  const auto from = file["model"]["from"].value<std::string>();
  if (!model_of || !from || from->empty()) return false;
  const auto model = model_of(*from);
  if (!model.ok()) {
    const toml::source_region where = file["model"]["from"].node()->source();
    return make_error(model.code(), at(origin, where) + "[model] from: " + model.error().message);
  }
  static_cast<ModelSpec&>(config.model) = *model;
  if (has_boundary(*model)) config.model.boundary_table = model->boundary_table;
  config.model.positions = std::min(model->context_length(), kPositionsOfFolder);
  return true;
}

// The folder's shapes are what they are; sequences may be shorter.
Status check_agrees(const toml::table& file, const std::string& origin, const RunConfig& filled,
                    const RunConfig& config) {
  for (const OptionRow& row : option_table()) {
    const toml::node* given = file[row.section][row.key].node();
    const bool free =
        row.key == "from" || row.key == "positions" || row.key == "weights" || row.key.starts_with("lora_");
    if (row.section != "model" || free || given == nullptr) continue;
    const std::string wanted = value_text(row, config), has = value_text(row, filled);
    if (wanted == has) continue;
    const bool wants_one = row.key == "boundary" && !has_boundary(filled.model);
    return input_error(at(origin, given->source()) + name_of(row) + " = " + wanted + ", but the model of from = \"" +
                       config.model.from + "\" has " + has + ". HINT: leave the key out" +
                       (wants_one ? "; `shoal fit` makes a folder that has a boundary" : ""));
  }
  return {};
}

}  // namespace

RunConfig default_config() {
  RunConfig config;
  const Status applied = apply_defaults(config);
  SHOAL_CHECK(applied.ok());
  return config;
}

Result<RunConfig> parse_options(std::string_view text, const std::string& origin, OptionsOf options,
                                const ModelReader& model_of) {
  toml::table file;
  try {
    file = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return input_error(at(origin, error.source()) + "not TOML: " + std::string(error.description()));
  }
  RunConfig config;
  SHOAL_TRY(apply_defaults(config));
  SHOAL_ASSIGN(const bool from_folder, fill_model(file, origin, model_of, config));
  const RunConfig filled = config;
  SHOAL_TRY(apply_file(file, origin, config));
  if (from_folder) SHOAL_TRY(check_agrees(file, origin, filled, config));
  SHOAL_TRY(check_required(file, origin, options, from_folder));
  derive_options(config);
  SHOAL_TRY(check_config(config, origin));
  return config;
}

}  // namespace shoal
