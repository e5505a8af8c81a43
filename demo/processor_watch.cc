#include "demo/processor_watch.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr double kPeriod = 1;                                                // seconds between samples
constexpr std::size_t kIdleField = 3, kWaitField = 4, kStealField = 7;       // of /proc/stat; guests are in "user"
constexpr std::size_t kParentField = 1, kUserField = 11, kSystemField = 12;  // of /proc/PID/stat, behind the name

std::string text_of_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

template <class Number>
std::optional<Number> number_of(std::string_view word) {
  Number value{};
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failure != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \n");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.size(), line.find_first_of(" \n"));
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::map<pid_t, ProcessTicks> all_processes() {
  std::map<pid_t, ProcessTicks> all;
  std::error_code failure;
  for (fs::directory_iterator entry("/proc", failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    const auto pid = number_of<pid_t>(name);
    if (!pid) continue;
    if (const auto ticks = parse_process_ticks(text_of_file(entry->path() / "stat"))) all[*pid] = *ticks;
  }
  return all;
}

std::uint64_t used_since(const std::map<pid_t, ProcessTicks>& before, const std::map<pid_t, ProcessTicks>& now) {
  std::uint64_t used = 0;
  for (const auto& [pid, ticks] : now) {
    const auto known = before.find(pid);
    const std::uint64_t begun = known == before.end() ? 0 : known->second.used;
    used += ticks.used >= begun ? ticks.used - begun : ticks.used;  // else the number went to a new process
  }
  return used;
}

}  // namespace

BusySpan busy_in(const std::vector<ProcessorShare>& shares, double from, double to) {
  BusySpan span;
  for (const ProcessorShare& share : shares) {
    if (share.from < from || share.to > to) continue;
    const double seconds = share.to - share.from;
    span.watched += seconds;
    span.others += share.others * seconds;
    if (share.others > kOthersMax && share.idle < kIdleMin) span.seconds += seconds;
  }
  if (span.watched > 0) span.others /= span.watched;
  return span;
}

std::optional<MachineTicks> parse_machine_ticks(std::string_view stat) {
  const std::vector<std::string_view> words = words_of(stat.substr(0, stat.find('\n')));
  if (words.size() < kWaitField + 2 || words.front() != "cpu") return std::nullopt;
  MachineTicks ticks;
  for (std::size_t field = 0; field <= kStealField && field + 1 < words.size(); ++field) {
    const auto value = number_of<std::uint64_t>(words[field + 1]);
    if (!value) return std::nullopt;
    ticks.all += *value;
    if (field == kIdleField || field == kWaitField) ticks.idle += *value;
  }
  return ticks;
}

std::optional<ProcessTicks> parse_process_ticks(std::string_view stat) {
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  const std::vector<std::string_view> words = words_of(stat.substr(name_end + 1));
  if (words.size() <= kSystemField) return std::nullopt;
  const auto parent = number_of<pid_t>(words[kParentField]);
  const auto user = number_of<std::uint64_t>(words[kUserField]), system = number_of<std::uint64_t>(words[kSystemField]);
  if (!parent || !user || !system) return std::nullopt;
  return ProcessTicks{*parent, *user + *system};
}

std::map<pid_t, ProcessTicks> family_of(pid_t root, const std::map<pid_t, ProcessTicks>& all) {
  std::map<pid_t, ProcessTicks> family;
  std::multimap<pid_t, pid_t> children;
  for (const auto& [pid, ticks] : all) children.emplace(ticks.parent, pid);
  std::vector<pid_t> open = {root};
  while (!open.empty()) {
    const pid_t pid = open.back();
    open.pop_back();
    const auto found = all.find(pid);
    if (found == all.end() || !family.insert(*found).second) continue;
    const auto [first, last] = children.equal_range(pid);
    for (auto child = first; child != last; ++child) open.push_back(child->second);
  }
  return family;
}

void ProcessorWatch::look(double now) {
  if (looked_at_ && now - *looked_at_ < kPeriod) return;
  const auto machine = parse_machine_ticks(text_of_file("/proc/stat"));
  if (!machine) return;
  auto family = family_of(getpid(), all_processes());
  if (looked_at_ && machine->all > machine_.all && machine->idle >= machine_.idle) {
    const auto all = static_cast<double>(machine->all - machine_.all);
    const double idle = static_cast<double>(machine->idle - machine_.idle) / all;
    const double own = static_cast<double>(used_since(family_, family)) / all;
    shares_.push_back({.from = *looked_at_, .to = now, .others = std::clamp(1 - idle - own, 0.0, 1.0), .idle = idle});
  }
  looked_at_ = now;
  machine_ = *machine;
  family_ = std::move(family);
}

}  // namespace shoal
