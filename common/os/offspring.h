#pragma once
// A program that this one started: ends with it, is ended by nobody else, and is reaped here.
// Owns the child: the destructor kills what still runs. Thread: the one that started it (the kernel ends a child with
// the thread that forked it), one at a time.
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/time.h"

namespace shoal {

struct OffspringCommand {
  std::vector<std::string> words;                    // the program's path and its arguments
  std::string output_path{}, error_path{};           // files, made anew; empty: /dev/null
  int error_descriptor = -1;                         // in place of error_path; borrowed
  std::map<std::string, std::string> environment{};  // beside ours
};

class Offspring {
 public:
  // In a process group of its own, so that a Ctrl-C at the terminal reaches us alone. ERRORS: kMissing (no such
  // program), kIo.
  static Result<Offspring> start(const OffspringCommand& command);
  Offspring(Offspring&& other) noexcept;
  Offspring& operator=(Offspring&& other) noexcept;
  ~Offspring();

  pid_t pid() const { return pid_; }
  bool running();  // reaps when it has ended
  // Exit code, 128 + signal when a signal ended it, none while it runs.
  std::optional<int> exit_code();
  void send_signal(int signal);  // nothing when it has ended
  // Waits for the end. None: it still runs at the deadline.
  std::optional<int> wait_until(TimePoint deadline);

 private:
  explicit Offspring(pid_t pid) : pid_(pid) {}
  void end();
  pid_t pid_ = -1;
  std::optional<int> code_;
};

}  // namespace shoal
