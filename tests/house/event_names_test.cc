// docs/EVENTS.md names every event, and no other; and every event has somebody who writes it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "events/event_kind.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string, std::less<>>;

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

Names all_names() {
  Names names;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(kEventKindLast); ++i)
    names.emplace(name_of(static_cast<EventKind>(i)));
  return names;
}

// The first cells of the page's tables below "## Of".
Names documented() {
  Names names;
  std::istringstream page(read(fs::path(SHOAL_SOURCE_DIR) / "docs/EVENTS.md"));
  bool of_events = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) of_events = line.starts_with("## Of ");
    if (!of_events || !line.starts_with("| `")) continue;
    const std::string cell = line.substr(0, line.find(" |", 2));
    static const std::regex kName("`([a-z_]+)`");
    for (std::sregex_iterator at(cell.begin(), cell.end(), kName), end; at != end; ++at) names.insert((*at)[1].str());
  }
  return names;
}

// "round_commit" -> "EventKind::kRoundCommit"
std::string enumerator_of(std::string_view name) {
  std::string text = "EventKind::k";
  bool up = true;
  for (const char c : name) {
    if (c != '_') text += up ? static_cast<char>(c - 'a' + 'A') : c;
    up = c == '_';
  }
  return text;
}

// What the product's sources name, apart from the list itself.
Names used() {
  Names names;
  const std::regex enumerator("EventKind::k[A-Za-z]+");
  for (const std::string folder : {"events", "router", "runtime", "sync", "cli"})
    for (const auto& file : fs::recursive_directory_iterator(fs::path(SHOAL_SOURCE_DIR) / folder)) {
      if (file.path().extension() != ".cc" || file.path().filename() == "event_kind.cc") continue;
      const std::string text = read(file.path());
      for (std::sregex_iterator at(text.begin(), text.end(), enumerator), end; at != end; ++at) names.insert(at->str());
    }
  return names;
}

TEST(EventNamesTest, ThePageNamesEveryEventAndNothingElse) {
  const Names list = all_names(), page = documented();
  EXPECT_GT(list.size(), 40u);
  for (const std::string& name : list) EXPECT_TRUE(page.contains(name)) << name << " is written and not on the page";
  for (const std::string& name : page) EXPECT_TRUE(list.contains(name)) << name << " is on the page and no event";
}

TEST(EventNamesTest, EveryEventHasAWriter) {
  const Names names = used();
  for (const std::string& name : all_names())
    EXPECT_TRUE(names.contains(enumerator_of(name))) << name << " is never written";
}

}  // namespace
}  // namespace shoal
