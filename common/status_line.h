#pragma once
// Where a process stands, in one line. While stderr is a terminal it is the last line there, drawn anew in place, and
// lines of the log go above it; elsewhere it is a line of the log. Thread: any.
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace shoal {

// A line has at most so many columns, and a log's line begins with the time of day and a blank.
inline constexpr std::size_t kLineColumns = 80, kTimeColumns = 9;

// Whether a status is drawn in place.
bool status_in_place();
// For a status: one less than the terminal's columns, so that it never wraps, and at most kLineColumns - 1; elsewhere
// what a line of the log has room for.
std::size_t status_columns();
// At level kInfo. What is longer than status_columns() is cut.
void show_status(std::string_view text);
// What stands there stays, and what is written next begins on a new line: at the end, and before somebody else writes
// to the terminal.
void end_status();

// A terminal of so many columns for tests, whose bytes go to `write`; an empty function restores stderr.
void set_status_terminal(std::function<void(std::string_view)> write, std::size_t columns);

// The status is not on the screen while one of these lives; nobody else draws. Internal, for the log.
class StatusHidden {
 public:
  StatusHidden();
  ~StatusHidden();
  StatusHidden(const StatusHidden&) = delete;
  StatusHidden& operator=(const StatusHidden&) = delete;
};

}  // namespace shoal
