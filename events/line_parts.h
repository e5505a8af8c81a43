#pragma once
// Lines for people that fit their columns: put together of parts, the least wanted of which go first, and of numbers
// whose width is bounded whatever they are. ASCII only. Pure; thread-safe.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/time.h"

namespace shoal {

struct LinePart {
  std::string text;
  int rank = 0;  // parts of the highest go first; those of 0 stay
};
// The parts in their order, two blanks between them, or one where two are too wide. Empty parts are left out. What is
// too wide even so is cut, and ends in "...".
std::string fitted(std::vector<LinePart> parts, std::size_t columns);

// "41.2k", "1.31M": three significant digits, at most 9 characters of any number.
std::string short_number(double value);
std::string short_number(std::uint64_t value);
std::string brief_number(double value);                             // "1.1M", "34M": two significant digits
std::string loss_text(double loss);                                 // "3.456"; at most 9 characters
std::string percent_text(std::uint64_t done, std::uint64_t total);  // "97%", and "100%" only when it is; "" of nothing
// "0:12", "1:02:03", "12 d", at most 8 characters: the time that is left of something.
std::string span_text(Duration span);
std::string clock_text(Duration elapsed);  // "0:01:15"

}  // namespace shoal
