// docs/TIMES.md shows times and bounds as the constants in the headers have them: what a row says of a constant's value
// is read from the header that the row names.
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <regex>
#include <sstream>
#include <vector>

namespace shoal {
namespace {

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(SHOAL_SOURCE_DIR "/" + path).rdbuf();
  return text.str();
}

// The text between the constant's '=' and the next ',' or ';' outside of braces.
std::optional<std::string> value_in(const std::string& header, const std::string& name) {
  const std::regex declared("\\bconstexpr [^;]*\\b" + name + "\\s*=\\s*([^,;]+)");
  std::smatch found;
  if (!std::regex_search(header, found, declared)) return std::nullopt;
  return std::regex_replace(found[1].str(), std::regex("\\s+"), " ");
}

// As a person reads it: "256u << 10" is 256 KiB, "20'000" is 20000. What it does not know stays as it is.
std::string readable(std::string value) {
  value = std::regex_replace(value, std::regex("'"), "");
  value = std::regex_replace(value, std::regex("std::(?:uint64_t|size_t)\\{(\\d+)\\}"), "$1");
  value = std::regex_replace(value, std::regex("(\\d)(?:u|ull)\\b"), "$1");
  std::smatch parts;
  if (std::regex_match(value, parts, std::regex("(\\d+) << (10|20|30)")))
    return parts[1].str() + (parts[2] == "10" ? " KiB" : parts[2] == "20" ? " MiB" : " GiB");
  if (std::regex_match(value, parts, std::regex("1 << (\\d+)"))) return std::to_string(1ull << std::stoi(parts[1]));
  if (std::regex_match(value, parts, std::regex("(\\d+) \\* 3600s"))) return parts[1].str() + " h";
  if (std::regex_match(value, parts, std::regex("(\\d+)(ms|s)"))) return parts[1].str() + " " + parts[2].str();
  if (std::regex_match(value, parts, std::regex("std::chrono::(hours|minutes)\\((\\d+)\\)")))
    return parts[2].str() + (parts[1] == "hours" ? " h" : " min");
  return value;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream rest(line.substr(2));
  for (std::string cell; std::getline(rest, cell, '|');) {
    const auto from = cell.find_first_not_of(' '), to = cell.find_last_not_of(' ');
    cells.push_back(from == std::string::npos ? "" : cell.substr(from, to - from + 1));
  }
  return cells;
}

std::string without_ticks(const std::string& cell) { return std::regex_replace(cell, std::regex("`"), ""); }

TEST(TimesTest, ThePageHasTheValuesOfTheHeaders) {
  std::istringstream page(read("docs/TIMES.md"));
  int rows = 0;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    ++rows;
    const auto cells = cells_of(line);
    ASSERT_GE(cells.size(), 4u) << line;
    const std::string name = without_ticks(cells[0]), path = without_ticks(cells[2]);
    const std::string constant = name.substr(name.rfind(':') == std::string::npos ? 0 : name.rfind(':') + 1);
    const auto value = value_in(read(path), constant);
    if (!value) {
      ADD_FAILURE() << path << " has no constant " << constant;
      continue;
    }
    EXPECT_EQ(cells[1], readable(*value)) << path << ": " << name;
    EXPECT_GT(cells[3].size(), 3u) << name << ": what it bounds is not said";
  }
  EXPECT_GT(rows, 60);
}

TEST(TimesTest, ValuesAreShownAsAPersonReadsThem) {
  EXPECT_EQ(value_in("static constexpr Duration kA = 1000ms, kB = 4s;\n", "kB"), "4s");
  EXPECT_EQ(value_in("inline constexpr int kC =\n    7;  // seven\n", "kC"), "7");
  EXPECT_EQ(value_in("int kD = 1;\n", "kD"), std::nullopt);
  EXPECT_EQ(readable("256u << 10"), "256 KiB");
  EXPECT_EQ(readable("std::size_t{16} << 20"), "16 MiB");
  EXPECT_EQ(readable("1000ms"), "1000 ms");
  EXPECT_EQ(readable("std::chrono::hours(24)"), "24 h");
  EXPECT_EQ(readable("20'000"), "20000");
  EXPECT_EQ(readable("6 * 3600s"), "6 h");
  EXPECT_EQ(readable("1u << 18"), "262144");
  EXPECT_EQ(readable("alignof(float)"), "alignof(float)");
}

}  // namespace
}  // namespace shoal
