#pragma once
// `shoal inspect TICKET --watch`, for `shoal top`.
#include <string>

namespace shoal {

// Until the run has ended, or Ctrl-C, both of which are 0 here. Returns the exit code.
int watch_run(const std::string& ticket, bool json);

}  // namespace shoal
