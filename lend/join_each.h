#pragma once
// One process for each of several devices: starts them, prints what they say behind their names, passes on signals and
// their owner's words, and starts again what may go better the next time (lend/lend_unit.h says which exit codes),
// though not while their owner has them paused.
#include <functional>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/time.h"

namespace shoal {

// Until a process that closed its stderr, or has no socket for its owner's words yet, is looked at again.
inline constexpr Duration kLookAgain = 50ms;

struct EachProcess {
  std::string name;                // of its lines
  std::vector<std::string> words;  // the program by its absolute path, and its arguments
  std::string home;                // where it hears its owner
  std::string output;              // file for its stdout; empty: /dev/null
};

struct EachOptions {
  std::vector<EachProcess> processes;
  std::string home;  // where their owner's words come; empty: nowhere
  Duration restart_pause{};
  std::function<void(const std::string& line)> print;  // "cuda-0: ...", without its end; on the loop
};

// Blocks until all have ended for good; their exit codes, in order. After a signal that ends programs, or the owner's
// word to finish, none is started again. ERRORS: kIo, kMissing (no such program), at the first start of one: then
// none is left running.
Result<std::vector<int>> run_each(EachOptions options);

}  // namespace shoal
