#include "common/fault.h"

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "common/log.h"

namespace shoal {

std::atomic<bool> fault_internal::any_armed{false};

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

enum class Action { kKill, kExit, kError, kHold, kDelay };

struct Fault {
  Action action = Action::kError;
  std::uint64_t argument = 0;
  std::uint64_t from_hit = 0;  // 0: every one
  bool and_later = false;      // than from_hit
  std::uint64_t hits = 0;
  std::optional<SteadyTime> hold_end;
};

std::mutex g_mutex;
std::map<std::string, Fault, std::less<>> g_faults;  // guarded by g_mutex

struct ActionRow {
  std::string_view name;
  Action action;
  bool needs_argument;
  std::uint64_t default_argument;
  std::uint64_t argument_max;
};
constexpr ActionRow kActions[] = {
    {"kill", Action::kKill, false, 0, 0},          {"exit", Action::kExit, false, 70, 255},
    {"error", Action::kError, false, 0, 0},        {"hold", Action::kHold, true, 0, 86'400},
    {"delay", Action::kDelay, true, 0, 3'600'000},
};

std::optional<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Error bad_item(std::string_view item, const std::string& why) {
  return make_error(ErrorCode::kInput, "fault point '" + std::string(item) + "': " + why +
                                           ". HINT: NAME=kill|exit[:CODE]|error|hold:SECONDS|delay:MS, then @N for the "
                                           "N-th time only, @N+ from then on");
}

Result<std::pair<std::string, Fault>> parse_item(std::string_view item) {
  const std::size_t equals = item.find('=');
  if (equals == std::string_view::npos || equals == 0) return bad_item(item, "it has no NAME= in front");
  std::string_view what = item.substr(equals + 1);
  Fault fault;
  if (const std::size_t at = what.find('@'); at != std::string_view::npos) {
    fault.and_later = what.ends_with('+');
    const auto hit = parse_count(what.substr(at + 1, what.size() - at - 1 - (fault.and_later ? 1 : 0)));
    if (!hit || *hit == 0) return bad_item(item, "what stands after @ is not a count from 1");
    fault.from_hit = *hit;
    what = what.substr(0, at);
  }
  const std::size_t colon = what.find(':');
  const std::string_view action = what.substr(0, colon);
  for (const ActionRow& row : kActions) {
    if (row.name != action) continue;
    fault.action = row.action;
    fault.argument = row.default_argument;
    if (colon == std::string_view::npos) {
      if (row.needs_argument) return bad_item(item, std::string(action) + " needs a number");
    } else {
      const auto argument = parse_count(what.substr(colon + 1));
      if (!argument || *argument > row.argument_max) {
        return bad_item(item, std::string(action) + " takes at most " + std::to_string(row.argument_max));
      }
      fault.argument = *argument;
    }
    return std::pair{std::string(item.substr(0, equals)), fault};
  }
  return bad_item(item, "'" + std::string(action) + "' is no action");
}

}  // namespace

Status arm_faults(std::string_view option) {
  std::vector<std::pair<std::string, Fault>> parsed;
  while (!option.empty()) {
    const std::size_t comma = option.find(',');
    SHOAL_ASSIGN(auto item, parse_item(option.substr(0, comma)));
    parsed.push_back(std::move(item));
    option = comma == std::string_view::npos ? std::string_view() : option.substr(comma + 1);
  }
  const std::lock_guard lock(g_mutex);
  for (auto& [name, fault] : parsed) {
    log_warning("fault point ", name, " is armed: this process fails on purpose");
    g_faults[name] = fault;
  }
  fault_internal::any_armed = !g_faults.empty();
  return {};
}

void disarm_faults() {
  const std::lock_guard lock(g_mutex);
  g_faults.clear();
  fault_internal::any_armed = false;
}

std::vector<std::string> faults_not_reached() {
  const std::lock_guard lock(g_mutex);
  std::vector<std::string> names;
  for (const auto& [name, fault] : g_faults) {
    if (fault.hits == 0) names.push_back(name);
  }
  return names;
}

bool fault_internal::reached(const char* name) {
  std::unique_lock lock(g_mutex);
  const auto found = g_faults.find(std::string_view(name));
  if (found == g_faults.end()) return false;
  Fault& fault = found->second;
  const SteadyTime now = std::chrono::steady_clock::now();
  ++fault.hits;
  if (fault.hold_end) return now < *fault.hold_end;
  if (fault.from_hit != 0 && (fault.and_later ? fault.hits < fault.from_hit : fault.hits != fault.from_hit))
    return false;
  if (!fault.and_later || fault.hits == fault.from_hit) log_warning("fault point ", name, " strikes");
  switch (fault.action) {
    case Action::kKill:
      std::raise(SIGKILL);
      return true;
    case Action::kExit:
      std::_Exit(static_cast<int>(fault.argument));
    case Action::kError:
      return true;
    case Action::kHold:
      fault.hold_end = now + std::chrono::seconds(fault.argument);
      return fault.argument > 0;
    case Action::kDelay: {
      const std::chrono::milliseconds delay(fault.argument);
      lock.unlock();
      std::this_thread::sleep_for(delay);
      return false;
    }
  }
  return false;
}

}  // namespace shoal
