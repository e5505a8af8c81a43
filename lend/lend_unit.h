#pragma once
// The texts of `shoal lend`: systemd's unit for a `shoal join`, and the line that does the same without systemd. Which
// exit codes a new start may mend is said here once. Pure.
#include <string>
#include <vector>

namespace shoal {

// `words`: the program by its absolute path, and its arguments. `variables`: "NAME=VALUE" that its environment gets.
std::string lend_unit(const std::vector<std::string>& words, const std::vector<std::string>& variables);
// Whether a process that ended so is not started again: it ended well or was stopped, or would only fail again.
bool ends_for_good(int exit_code);
inline constexpr int kRestartSeconds = 30;  // before another is

std::string lend_loop(const std::vector<std::string>& words);

}  // namespace shoal
