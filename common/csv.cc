#include "common/csv.h"

#include <algorithm>

namespace shoal {
namespace {

constexpr std::string_view kBlanks = " \r";

std::string_view without_blanks(std::string_view cell) {
  const std::size_t first = cell.find_first_not_of(kBlanks);
  return first == std::string_view::npos ? std::string_view()
                                         : cell.substr(first, cell.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t comma = line.find(',');
    cells.push_back(without_blanks(line.substr(0, comma)));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

std::vector<CsvRow> csv_rows(std::string_view text) {
  std::vector<CsvRow> rows;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!without_blanks(line).empty()) rows.push_back({number, cells_of(line)});
  }
  return rows;
}

}  // namespace shoal
