#include "bench/python_rival.h"

#include <cstdlib>
#include <filesystem>

#include "common/os/offspring.h"
#include "common/os/thread_loop.h"
#include "demo/file_tail.h"

namespace shoal {
namespace {

constexpr char kScript[] = "plain_gpt.py";
constexpr Duration kBudget = 600s;

}  // namespace

std::string source_file(const std::string& program, const std::string& name) {
  return (std::filesystem::path(program).parent_path() / "../../../bench" / name).lexically_normal().string();
}

PythonRival::PythonRival(std::string program, std::string python, std::string folder)
    : script_(source_file(program, kScript)), python_(std::move(python)), folder_(std::move(folder)) {}

std::string PythonRival::missing() const {
  const std::string error = folder_ + "/python.err";
  auto child = Offspring::start({{"/usr/bin/env", python_, "-c", "import torch"}, "", error});
  if (!child.ok()) return child.error().message;
  if (child->wait_until(monotonic_now() + kBudget) == 0)
    return std::filesystem::exists(script_) ? "" : script_ + " is not there: this program lies in no build folder";
  const auto lines = FileTail(error).new_lines();
  return python_ + " cannot import torch" + (lines.empty() ? "" : ": " + lines.back());
}

Result<double> PythonRival::tokens_per_s(const std::vector<std::string>& arguments,
                                         const std::function<bool()>& stop_wanted) const {
  const std::string output = folder_ + "/python.out", error = folder_ + "/python.err";
  std::vector<std::string> words{"/usr/bin/env", python_, script_};
  words.insert(words.end(), arguments.begin(), arguments.end());
  SHOAL_ASSIGN(Offspring child, Offspring::start({std::move(words), output, error}));
  for (const TimePoint deadline = monotonic_now() + kBudget; !child.wait_until(monotonic_now() + 100ms);) {
    if (stop_wanted()) return make_error(ErrorCode::kInterrupted, "interrupted");
    if (monotonic_now() > deadline) return make_error(ErrorCode::kTimeout, script_ + " did not end");
  }
  const auto lines = FileTail(output).new_lines();
  if (child.exit_code() != 0 || lines.empty())
    return make_error(ErrorCode::kUnreachable, script_ + " failed; it said:" + last_lines(error, 3));
  return std::atof(lines.back().c_str());
}

}  // namespace shoal
