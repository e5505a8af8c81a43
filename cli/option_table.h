#pragma once
// The commands and options of the program as plain rows, read from the parser itself: what completion of shells and
// manual pages are made of, so that neither can differ from `--help`.
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shoal {

struct OptionRow {
  std::vector<std::string> names;    // "-v", "--verbose"; of an argument by place the one word of its usage line
  std::string value;                 // "DIR"; empty: takes none
  std::string bounds;                // "INT in [0 - 255]"; empty: none
  std::vector<std::string> choices;  // all that it takes; empty: anything
  std::string help;
  bool required = false, repeats = false;
};

struct CommandRow {
  std::string path;  // "shoal", "shoal data prepare"
  std::string help;
  std::vector<OptionRow> options, places;  // of this command alone: those above it hold here too
  std::vector<CommandRow> commands;
};

CommandRow table_of(const CLI::App& program);

// What stands behind an option or at a place, as far as a shell could help.
enum class ValueKind { kNothing, kFile, kFolder, kAnything };
ValueKind value_kind(const OptionRow& option);

// Depth first, as printed.
std::vector<const CommandRow*> every_command(const CommandRow& top);

}  // namespace shoal
