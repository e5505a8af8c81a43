// docs/CLI.md has a row for every option of every command, as --help has it; only what more there is to say of it is
// written by hand.
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "tests/live/processes.h"

namespace shoal {
namespace {

constexpr std::size_t kHelpColumn = 28;
constexpr char kHead[] = "| option | what it is | more |";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> help_of(Processes& swarm, const std::string& command) {
  std::istringstream in(command);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  words.emplace_back("--help");
  swarm.start("help", words);
  EXPECT_EQ(swarm.exit_code("help"), 0) << command;
  return lines_of(swarm.output("help"));
}

// What stands below "NAME:", each with its help, which is on the next line where the first column is too narrow.
std::vector<std::pair<std::string, std::string>> rows_below(const std::vector<std::string>& help,
                                                            const std::string& name) {
  std::vector<std::pair<std::string, std::string>> rows;
  bool there = false;
  for (std::size_t at = 0; at < help.size(); ++at) {
    const std::string& line = help[at];
    const std::string below(kHelpColumn, ' ');
    if (!line.starts_with("  ")) {
      there = line == name + ":";
    } else if (there && line.starts_with(below)) {
      rows.back().second = line.substr(kHelpColumn);
    } else if (there) {
      const bool fits = line.size() > kHelpColumn && !(at + 1 < help.size() && help[at + 1].starts_with(below));
      std::string first = fits ? line.substr(2, kHelpColumn - 2) : line.substr(2);
      first.erase(first.find_last_not_of(' ') + 1);
      rows.emplace_back(first, fits ? line.substr(kHelpColumn) : "");
    }
  }
  return rows;
}

std::vector<std::pair<std::string, std::string>> options_of(Processes& swarm, const std::string& command) {
  auto rows = rows_below(help_of(swarm, command), "Options");
  std::erase_if(rows, [](const auto& row) { return row.first.starts_with("-h,") || row.first == "--version"; });
  return rows;
}

// All commands that have options of their own, those of the program itself under no name.
std::set<std::string> commands_with_options(Processes& swarm, const std::string& command = "") {
  std::set<std::string> found;
  const auto help = help_of(swarm, command);
  if (!options_of(swarm, command).empty()) found.insert(command);
  for (const auto& [name, text] : rows_below(help, "Subcommands"))
    found.merge(commands_with_options(swarm, command.empty() ? name : command + " " + name));
  return found;
}

// A cell may not end its row.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string row_of(const std::string& option, const std::string& help) {
  return "| `" + cell(option) + "` | " + cell(help) + " | ";
}

// The names alone: what a value is held to may change while what is said of it stays.
std::string names_in(const std::string& row) { return row.substr(0, row.find_first_of(" `", 3)); }

std::string last_cell(const std::string& row) {
  const std::size_t last = row.rfind(" | ");
  return row.substr(last + 3, row.size() - last - 5);
}

TEST(OptionsPageTest, HasEveryOptionAsHelpHasIt) {
  Processes swarm;
  const std::vector<std::string> page = lines_of(ScratchFolder::read(SHOAL_SOURCE_DIR "/docs/CLI.md"));
  auto missing = commands_with_options(swarm);
  std::string wanted, heading;
  for (std::size_t at = 0; at < page.size(); ++at) {
    if (page[at].starts_with("#")) heading = page[at].substr(page[at].find(' ') + 1);
    wanted += page[at] + "\n";
    if (page[at] != kHead) continue;
    wanted += "|---|---|---|\n";
    std::map<std::string, std::string> said;
    for (++at; at + 1 < page.size() && page[at + 1].starts_with("|"); ++at)
      said[names_in(page[at + 1])] = last_cell(page[at + 1]);
    const std::string command = heading == "Global options" ? "" : heading;
    missing.erase(command);
    for (const auto& [option, help] : options_of(swarm, command)) {
      const std::string row = row_of(option, help);
      wanted += row + said[names_in(row)] + " |\n";
    }
  }
  EXPECT_EQ(missing, std::set<std::string>()) << "no table \"" << kHead << "\" below a heading of this name";
  if (ScratchFolder::read(SHOAL_SOURCE_DIR "/docs/CLI.md") == wanted) return;
  const std::string path = testing::TempDir() + "CLI.md";
  std::ofstream(path) << wanted;
  ADD_FAILURE() << "docs/CLI.md differs from --help.\nHINT: as it should be: " << path;
}

}  // namespace
}  // namespace shoal
