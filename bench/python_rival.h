#pragma once
// Plain PyTorch at the same work (bench/plain_gpt.py), as a child process. Thread: one.
#include <functional>
#include <string>
#include <vector>

#include "common/result.h"

namespace shoal {

// The sources lie beside the build folder: build/PRESET/bin/shoal-bench is `program`.
std::string source_file(const std::string& program, const std::string& name);

class PythonRival {
 public:
  // `python`: whose torch is used. `folder`: for what the child says.
  PythonRival(std::string program, std::string python, std::string folder);
  // Why there is nothing to compare with; empty: Python's torch is there.
  std::string missing() const;
  // Tokens a second, by the script's last line. `stop_wanted`: asked ten times a second. ERRORS: kInterrupted,
  // kTimeout, kUnreachable (what it said).
  Result<double> tokens_per_s(const std::vector<std::string>& arguments,
                              const std::function<bool()>& stop_wanted) const;

 private:
  std::string script_, python_, folder_;
};

}  // namespace shoal
