#include "common/os/thread_waits.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

namespace shoal {

namespace {

constexpr const char* kThreads = "/proc/self/task";
constexpr std::size_t kNameMax = 15;  // TASK_COMM_LEN without its end

// None: the thread has another name or is gone, or the kernel does not count.
std::optional<Duration> wait_of(const std::filesystem::path& thread, const std::string& name) {
  std::string its_name;
  if (!std::getline(std::ifstream(thread / "comm"), its_name) || its_name != name.substr(0, kNameMax))
    return std::nullopt;
  std::int64_t ran = 0, waited = 0;  // ns
  if (!(std::ifstream(thread / "schedstat") >> ran >> waited)) return std::nullopt;
  return std::chrono::nanoseconds(waited);
}

}  // namespace

Duration ThreadWaits::longest(TimePoint now) {
  if (!looked_ || now >= next_look_) {
    look();
    next_look_ = now + kEvery;
  }
  return longest_;
}

void ThreadWaits::look() {
  std::map<std::string, Duration> now;
  Duration longest{};
  std::error_code gone;
  std::filesystem::directory_iterator threads(kThreads, gone);
  for (const std::filesystem::directory_iterator end; !gone && threads != end; threads.increment(gone)) {
    const auto waited = wait_of(threads->path(), name_);
    if (!waited) continue;
    const std::string number = threads->path().filename();
    const auto before = waited_.find(number);
    longest = std::max(longest, *waited - (before == waited_.end() ? Duration::zero() : before->second));
    now.emplace(number, *waited);
  }
  waited_ = std::move(now);
  if (std::exchange(looked_, true)) longest_ += longest;
}

}  // namespace shoal
