#include "cli/option_table.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace shoal {
namespace {

// "{a,b}" -> a, b; anything else -> none.
std::vector<std::string> choices_of(const std::string& validator) {
  std::vector<std::string> choices;
  if (!validator.starts_with("{") || !validator.ends_with("}")) return choices;
  std::string inside = validator.substr(1, validator.size() - 2);
  for (std::string& one : CLI::detail::split(inside, ',')) choices.push_back(std::move(one));
  return choices;
}

// The parser has the name of a value and what checks it in one text: "INT:INT in [0 - 255]".
void read_value(const CLI::Option& option, OptionRow& row) {
  const std::string text = option.get_type_name();
  const std::size_t colon = text.find(':');
  const bool path = text.find('/') != std::string::npos;
  const bool checked = colon != std::string::npos && colon + 1 < text.size() && !path &&
                       (text[colon + 1] == '{' || text.find(" in [", colon) != std::string::npos);
  row.value = checked ? text.substr(0, colon) : text;
  if (!checked) return;
  row.choices = choices_of(text.substr(colon + 1));
  if (row.choices.empty()) row.bounds = text.substr(colon + 1);
}

OptionRow row_of(const CLI::Option& option) {
  OptionRow row;
  for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  if (row.names.empty()) row.names.push_back(option.get_single_name());
  if (option.get_items_expected_max() > 0) read_value(option, row);
  row.help = option.get_description();
  row.required = option.get_required();
  row.repeats = option.get_items_expected_max() > 1;
  return row;
}

CommandRow row_of(const CLI::App& command, const std::string& above) {
  CommandRow row;
  row.path = above.empty() ? command.get_name() : above + " " + command.get_name();
  row.help = command.get_description();
  for (const CLI::Option* option : command.get_options())
    (option->nonpositional() ? row.options : row.places).push_back(row_of(*option));
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; }))
    row.commands.push_back(row_of(*below, row.path));
  return row;
}

}  // namespace

CommandRow table_of(const CLI::App& program) { return row_of(program, ""); }

ValueKind value_kind(const OptionRow& option) {
  const std::string& value = option.value;
  if (value.empty()) return ValueKind::kNothing;
  const auto says = [&](const char* word) { return value.find(word) != std::string::npos; };
  if (says("FILE") || says(".toml") || says(".csv") || says("CSV") || says("PATH") || value == "IN")
    return ValueKind::kFile;
  return says("DIR") || says("FOLDER") || says("SAVED") ? ValueKind::kFolder : ValueKind::kAnything;
}

std::vector<const CommandRow*> every_command(const CommandRow& top) {
  std::vector<const CommandRow*> all{&top};
  for (const CommandRow& below : top.commands)
    for (const CommandRow* one : every_command(below)) all.push_back(one);
  return all;
}

}  // namespace shoal
