#pragma once
// Tables of which a line is a row and a comma ends a cell, as published traces and tables of lines have them; nothing
// is quoted. Pure. Thread: any.
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace shoal {

struct CsvRow {
  std::size_t line = 1;                 // of the text, from 1
  std::vector<std::string_view> cells;  // of the text, without blanks around them; one at least
};

// Blank lines are no rows.
std::vector<CsvRow> csv_rows(std::string_view text);

// The number of a cell that holds nothing else.
template <class Number>
std::optional<Number> csv_number(std::string_view cell) {
  Number value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc() && end == cell.data() + cell.size() ? std::optional(value) : std::nullopt;
}

}  // namespace shoal
