// docs/EVENTS.md names every event that the code writes, and no other.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace {

using Names = std::set<std::string>;

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Literals given to event(), note() and EventRecord::event. What the authority says of itself gets a prefix.
void collect(const std::string& text, const std::string& prefix, Names& names) {
  static const std::regex kWritten(
      R"re((?:event|note)\((?:[^"()]*\? )?"([a-z_]+)"(?: : "([a-z_]+)")?[,)]|event = "([a-z_]+)")re");
  for (std::sregex_iterator at(text.begin(), text.end(), kWritten), end; at != end; ++at)
    for (std::size_t group = 1; group < at->size(); ++group)
      if (const std::string name = (*at)[group].str(); !name.empty() && !name.ends_with('_'))
        names.insert(prefix + name);
}

Names written() {
  Names names;
  for (const std::string folder : {"events", "router", "runtime", "sync", "cli"})
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(SHOAL_SOURCE_DIR) / folder))
      if (file.path().extension() == ".cc") collect(read(file.path()), folder == "sync" ? "authority_" : "", names);
  return names;
}

// The first cells of the page's tables below "## Of".
Names documented() {
  Names names;
  std::istringstream page(read(std::filesystem::path(SHOAL_SOURCE_DIR) / "docs/EVENTS.md"));
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

TEST(EventNamesTest, ThePageNamesWhatTheCodeWritesAndNothingElse) {
  const Names code = written(), page = documented();
  EXPECT_GT(code.size(), 40u);
  for (const std::string& name : code) EXPECT_TRUE(page.contains(name)) << name << " is written and not on the page";
  for (const std::string& name : page) EXPECT_TRUE(code.contains(name)) << name << " is on the page and never written";
}

TEST(EventNamesTest, BothBranchesOfAChoiceAreFound) {
  Names names;
  collect(R"(port_.event(e.state == kCounted ? "undo" : "drop", id); x.event = "end"; note("saved to " + y);)", "",
          names);
  EXPECT_EQ(names, (Names{"drop", "end", "undo"}));
}

}  // namespace
