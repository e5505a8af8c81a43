#include "runtime/launch/standby.h"

#include <utility>

#include "runtime/launch/launch_port.h"

namespace shoal {

Standby::Standby(EventLoop& loop, Storage& storage, std::string folder, std::string holder, Owner& owner)
    : loop_(loop), storage_(storage), folder_(std::move(folder)), holder_(std::move(holder)), owner_(owner) {}

Standby::~Standby() { loop_.cancel(timer_); }

void Standby::start() {
  loop_.post(lifetime_.guard([this] { look(); }));
}

void Standby::look() {
  auto lock = RunLock::take(storage_, folder_, holder_);
  if (lock.ok()) return owner_.on_turn(*std::move(lock));
  if (lock.code() != ErrorCode::kBusy) return owner_.on_failed(lock.error());
  timer_ = loop_.after(kLook, lifetime_.guard([this] { look(); }));
  watch_logs(lock.error().message);
}

// A log that was compacted is smaller than before, so any other size is a sign of life.
void Standby::watch_logs(const std::string& why) {
  if (const std::uint64_t bytes = log_bytes(); !waits_ || bytes != bytes_) {
    bytes_ = bytes;
    grew_ = loop_.now();
    warned_ = false;
  }
  if (!std::exchange(waits_, true)) owner_.on_waiting(why);
  if (warned_ || loop_.now() - grew_ < kStill) return;
  warned_ = true;
  owner_.on_warning(
      why + ", and neither log has grown for " + std::to_string(kStill / 1s) +
      " s: the run lacks peers, or that process is stopped or hangs. It keeps the run until it ends; this "
      "process waits on. HINT: what it says last tells which; if it hangs, end it (kill -9)");
}

std::uint64_t Standby::log_bytes() const {
  std::uint64_t bytes = 0;
  for (const std::string& path : {trainer_log_path(folder_), authority_log_path(folder_)}) {
    const auto size = storage_.read_at(path, 0, {});
    bytes += size.ok() ? *size : 0;
  }
  return bytes;
}

}  // namespace shoal
