#include "cli/turn.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <optional>

#include "authority/authority_log.h"
#include "common/lifetime.h"
#include "common/log.h"
#include "common/os/posix_file.h"
#include "common/os/stop_signals.h"
#include "events/line_parts.h"
#include "router/commit_book.h"
#include "runtime/config/home.h"
#include "runtime/launch/launch_port.h"
#include "runtime/launch/standby.h"

namespace shoal {
namespace {

std::string this_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"this machine"};
  return "process " + std::to_string(::getpid()) + " on " + host.data();
}

// The head alone: what follows may be half written just now.
Status check_head(const std::string& path, const LogFormat& format) {
  std::array<std::uint8_t, kLogHeadBytes> head{};
  const auto size = read_file_at(path, 0, head);
  if (!size.ok()) return size.code() == ErrorCode::kMissing ? Status() : size.error();
  if (*size < head.size()) return {};
  const auto read = read_record_log(head, format, [](ByteView) { return Status(); });
  return read.ok() ? Status() : make_error(read.code(), path + ": " + read.error().message);
}

std::string age_of_logs(const std::string& folder) {
  std::optional<std::filesystem::file_time_type> newest;
  for (const std::string& path : {trainer_log_path(folder), authority_log_path(folder)}) {
    std::error_code failure;
    const auto written = std::filesystem::last_write_time(path, failure);
    if (!failure && (!newest || written > *newest)) newest = written;
  }
  if (!newest) return "";
  return ", which wrote its logs " +
         span_text(std::chrono::duration_cast<Duration>(std::filesystem::file_time_type::clock::now() - *newest)) +
         " ago";
}

class Wait final : private Standby::Owner {
 public:
  Wait(ThreadLoop& loop, Storage& storage, const std::string& folder)
      : loop_(loop), folder_(folder), standby_(loop, storage, folder, this_process(), *this) {}

  Result<RunLock> run() {
    SHOAL_TRY(listen_and_wait());
    if (failure_) return *failure_;
    if (stop_wanted()) return make_error(ErrorCode::kInterrupted, "stopped while it waited for " + folder_);
    SHOAL_CHECK(lock_.has_value());
    if (waited_) log_info("no process has ", folder_, " any more: going on with its run");
    return *std::move(lock_);
  }

 private:
  // A signal that comes as the loop stops leaves its task behind, and the run's loop meets it: by then it does nothing.
  Status listen_and_wait() {
    const std::function<void()> stop = lifetime_.guard([this] { loop_.stop(); });
    SHOAL_ASSIGN(const auto signals, StopSignals::listen(loop_, stop, stop));
    standby_.start();
    loop_.run();
    return {};
  }

  void on_waiting(const std::string& why) override {
    waited_ = true;
    log_info("standing by: ", why, age_of_logs(folder_),
             ". When that process is over this one goes on with the run, as --resume does; Ctrl-C ends the wait");
  }
  void on_warning(const std::string& line) override { log_warning(line); }
  void on_turn(RunLock lock) override {
    lock_ = std::move(lock);
    loop_.stop();
  }
  void on_failed(const Error& error) override {
    failure_ = error;
    loop_.stop();
  }

  ThreadLoop& loop_;
  const std::string folder_;
  bool waited_ = false;
  std::optional<RunLock> lock_;
  std::optional<Error> failure_;
  Standby standby_;
  Lifetime lifetime_;
};

}  // namespace

Status check_standby(const std::string& folder, const std::string& events) {
  SHOAL_TRY(load_run_key(folder, true));
  SHOAL_TRY(check_head(trainer_log_path(folder), kTrainerLog));
  SHOAL_TRY(check_head(authority_log_path(folder), kAuthorityLog));
  for (const std::string& path : {folder, trainer_log_path(folder), authority_log_path(folder)})
    if (::access(path.c_str(), W_OK) != 0 && errno != ENOENT) return error_of_errno("write", path, errno);
  return events.empty() ? Status() : check_output_file(events);
}

Result<RunLock> take_turn(Storage& storage, const std::string& folder) {
  auto lock = RunLock::take(storage, folder, this_process());
  if (lock.ok() || lock.code() != ErrorCode::kBusy) return lock;
  return make_error(ErrorCode::kBusy, "another process goes on with this run: " + lock.error().message);
}

Result<RunLock> wait_for_turn(ThreadLoop& loop, Storage& storage, const std::string& folder) {
  return Wait(loop, storage, folder).run();
}

}  // namespace shoal
