// docs/RUN.md has a row for every option of RUN.toml, as the table of options has it; only when to change it is written
// by hand.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "runtime/config/config_table.h"

namespace shoal {
namespace {

// A cell may not end its row.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string bounds_of(const OptionRow& row) {
  const std::string type = type_text(row);
  const bool number = type.ends_with("integer") || type.ends_with("number");
  return number ? number_text(row.min) + " to " + number_text(row.max) : "";
}

// All of the row but its last cell.
std::string begin_of(const OptionRow& row) {
  std::ostringstream out;
  out << "| `" << row.key << "` | " << type_text(row) << " | "
      << (row.fallback.empty() ? "required" : "`" + std::string(row.fallback) + "`") << " | " << bounds_of(row) << " | "
      << cell(row.help) << (row.manifest == InManifest::kNever ? "; of this machine only" : "") << " | ";
  return out.str();
}

std::string page_text() {
  std::ostringstream text;
  text << std::ifstream(SHOAL_SOURCE_DIR "/docs/RUN.md").rdbuf();
  return text.str();
}

// What the page says of when to change an option: the last cell of its row.
std::map<std::string, std::string> advice_of(const std::string& page) {
  std::map<std::string, std::string> advice;
  std::istringstream lines(page);
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## [")) section = line.substr(4, line.find(']') - 4);
    if (!line.starts_with("| `")) continue;
    const std::size_t last = line.rfind(" | ");
    advice[section + "." + line.substr(3, line.find('`', 3) - 3)] = line.substr(last + 3, line.size() - last - 5);
  }
  return advice;
}

TEST(RunPageTest, HasEveryOptionAsTheTableHasIt) {
  const std::string page = page_text();
  const auto advice = advice_of(page);
  std::ostringstream wanted;
  wanted << page.substr(0, page.find("\n## ["));
  std::string_view section;
  for (const OptionRow& row : option_table()) {
    if (row.section != section)
      wanted << "\n## [" << row.section << "]\n| option | type | default | bounds | what it is | change it |\n"
             << "|---|---|---|---|---|---|\n";
    section = row.section;
    const auto said = advice.find(std::string(row.section) + "." + std::string(row.key));
    const bool is_said = said != advice.end() && said->second.size() > 3;
    EXPECT_TRUE(is_said) << "the page does not say when to change [" << row.section << "] " << row.key;
    wanted << begin_of(row) << (is_said ? said->second : "") << " |\n";
  }
  if (page == wanted.str()) return;
  const std::string path = testing::TempDir() + "RUN.md";
  std::ofstream(path) << wanted.str();
  ADD_FAILURE() << "docs/RUN.md differs from the table of options.\nHINT: as it should be: " << path;
}

}  // namespace
}  // namespace shoal
