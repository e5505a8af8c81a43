// docs/EVENTS.md says what events/event_schema.h does, of every kind and field; and every event has somebody who
// writes it.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "events/event_schema.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string, std::less<>>;

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Without the spaces around each part.
std::vector<std::string> split(const std::string& text, char between) {
  std::vector<std::string> parts;
  std::istringstream rest(text);
  for (std::string part; std::getline(rest >> std::ws, part, between);)
    parts.push_back(part.substr(0, part.find_last_not_of(' ') + 1));
  return parts;
}

std::vector<std::string> words(const std::string& text, const std::string& pattern) {
  const std::regex word(pattern);
  return {std::sregex_token_iterator(text.begin(), text.end(), word, 1), {}};
}

// A row of the page's tables: what its first cell names, and its cells.
struct PageRow {
  std::string section;
  std::vector<std::string> names, cells;
};

std::vector<PageRow> page_rows() {
  std::vector<PageRow> rows;
  std::istringstream page(read(fs::path(SHOAL_SOURCE_DIR) / "docs/EVENTS.md"));
  std::string section;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) section = line.substr(3);
    if (!line.starts_with("| `")) continue;
    const std::vector<std::string> cells = split(line.substr(1), '|');
    rows.push_back({section, words(cells[0], "`([a-z_0-9]+)`"), cells});
  }
  return rows;
}

// Bits of writers, for a table of events; 0: it is none.
std::uint8_t writers_of(const std::string& section) {
  if (section == "Of any process") return event_writer::kAny;
  if (section.starts_with("Of the ")) return event_writer::kTrainer;
  return section == "Of a peer" ? event_writer::kPeer : 0;
}

TEST(EventNamesTest, ThePageNamesEveryFieldInItsForm) {
  Names told;
  for (const PageRow& row : page_rows()) {
    if (row.section != "Further fields, where they say something") continue;
    const std::vector<std::string> forms = split(row.cells.at(1), ',');
    for (std::size_t i = 0; i < row.names.size(); ++i) {
      const auto fields = event_fields();
      const auto field =
          std::find_if(fields.begin(), fields.end(), [&](const EventField& f) { return f.name == row.names[i]; });
      ASSERT_NE(field, fields.end()) << row.names[i] << " is on the page and no field";
      EXPECT_EQ(forms.at(forms.size() == 1 ? 0 : i), field->form) << row.names[i];
      told.insert(row.names[i]);
    }
  }
  for (const EventField& field : event_fields()) EXPECT_TRUE(told.contains(field.name)) << field.name;
}

// The stage of a peer's session is on all of its lines, and no row there names it.
TEST(EventNamesTest, ThePageNamesEveryEventWithItsWriterAndFields) {
  std::set<const EventRow*> told;
  for (const PageRow& page : page_rows()) {
    const std::uint8_t writers = writers_of(page.section);
    if (writers == 0) continue;
    for (const std::string& name : page.names) {
      const auto named = words(page.cells.at(1), "([a-z_0-9]+)");
      bool known = false;
      for (const EventRow& row : event_rows()) {
        if (row.name != name || (row.writers & writers) == 0) continue;
        known = true;
        if (page.cells.at(2).find(row.when) != std::string::npos) told.insert(&row);
        for (std::size_t i = 0; i < event_fields().size(); ++i) {
          const std::string_view field = event_fields()[i].name;
          if ((row.required >> i & 1) == 0 || (writers == event_writer::kPeer && field == "stage")) continue;
          EXPECT_THAT(named, testing::Contains(field)) << name << ", " << page.section;
        }
      }
      EXPECT_TRUE(known) << name << " is on the page and no event, " << page.section;
    }
  }
  for (const EventRow& row : event_rows())
    EXPECT_TRUE(row.writers == event_writer::kSolo || told.contains(&row))
        << "the page does not say of " << row.name << ": " << row.when;
}

TEST(EventNamesTest, ThePageSaysFromWhichLevelOnAnEventIsWritten) {
  std::map<std::string, EventLevel, std::less<>> told;
  for (const PageRow& row : page_rows()) {
    if (row.section != "Levels") continue;
    const auto level = event_level_named(row.names.at(0));
    ASSERT_TRUE(level) << row.names.at(0);
    for (const std::string& name : words(row.cells.at(1), "`([a-z_]+)`")) told[name] = *level;
  }
  for (const EventRow& row : event_rows()) {
    const auto found = told.find(row.name);
    EXPECT_EQ(found == told.end() ? EventLevel::kRounds : found->second, row.from) << row.name;
  }
  for (const auto& [name, level] : told)
    EXPECT_TRUE(std::ranges::any_of(event_rows(), [&](const EventRow& row) { return row.name == name; })) << name;
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

// What the product's sources name, apart from those that judge.
Names used() {
  Names names;
  for (const std::string folder : {"authority", "events", "router", "runtime", "sync", "state", "cli"})
    for (const auto& file : fs::recursive_directory_iterator(fs::path(SHOAL_SOURCE_DIR) / folder))
      if (file.path().extension() == ".cc" && file.path().parent_path().filename() != "audit")
        for (std::string& name : words(read(file.path()), "(EventKind::k[A-Za-z]+)")) names.insert(std::move(name));
  return names;
}

TEST(EventNamesTest, EveryEventHasAWriter) {
  const Names names = used();
  for (const EventRow& row : event_rows())
    EXPECT_TRUE(names.contains(enumerator_of(row.name))) << row.name << " is never written";
}

}  // namespace
}  // namespace shoal
