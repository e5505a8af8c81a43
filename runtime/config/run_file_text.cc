// RunConfig to a run file for people, through the option table.
#include "runtime/config/run_file_text.h"

#include <algorithm>
#include <variant>

#include "runtime/config/config_table.h"

namespace shoal {
namespace {

constexpr std::size_t kHelpColumn = 36, kColumns = 120;

bool is_for_launch(const OptionRow& row) {
  RunConfig scratch;
  return std::holds_alternative<std::vector<Digest>*>(row.slot(scratch));
}

std::string help_of(const OptionRow& row) {
  const std::string type = type_text(row);
  std::string help(row.help);
  if (type.starts_with("one of ")) help += " (" + type + ")";
  if (row.manifest == InManifest::kNever) help += "; of this machine only";
  return help;
}

// The option, and behind it what it is, on as many lines as that takes.
std::string lines_of(std::string option, std::string_view help) {
  std::string out, line = std::move(option);
  line.resize(std::max(line.size() + 1, kHelpColumn), ' ');
  line += '#';
  for (std::size_t at = 0; at < help.size();) {
    const std::size_t end = std::min(help.find(' ', at), help.size());
    const std::string_view word = help.substr(at, end - at);
    if (line.size() + 1 + word.size() > kColumns && !line.ends_with('#')) {
      out += line + '\n';
      line = std::string(kHelpColumn, ' ') + '#';
    }
    line += ' ' + std::string(word);
    at = end + 1;
  }
  return out + line + '\n';
}

}  // namespace

std::string run_file_text(const RunConfig& config) {
  const RunConfig defaults = default_config();
  std::string text;
  std::string_view section;
  for (const OptionRow& row : option_table()) {
    if (is_for_launch(row)) continue;
    if (row.section != section) text += (text.empty() ? "[" : "\n[") + std::string(row.section) + "]\n";
    section = row.section;
    const std::string value = value_text(row, config);
    const bool given = row.fallback.empty() || value != value_text(row, defaults);
    const std::string option =
        given ? std::string(row.key) + " = " + value : "#" + std::string(row.key) + " = " + std::string(row.fallback);
    text += lines_of(option, help_of(row));
  }
  return text;
}

}  // namespace shoal
