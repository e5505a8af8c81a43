#pragma once
// Directories over real shoal-dht processes on loopback, on a loop that runs in the test's thread.
#include <signal.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/fault.h"
#include "common/log.h"
#include "common/os/thread_loop.h"
#include "dht/dht_child.h"
#include "dht/dht_directory.h"

namespace shoal {

class RealDirectoryRig {
 public:
  // Every rig has a DHT of its own; the first child is there to be bootstrapped from and announces nothing.
  RealDirectoryRig() : network_(static_cast<std::uint32_t>(entropy_seed() | 1)) {
    set_log_sink([](LogLevel, std::string_view) {});
    make(RunId{});
    if (!run_until([this] { return directories_.front()->port() != 0; }, 30s)) std::abort();
  }
  ~RealDirectoryRig() {
    directories_.clear();
    disarm_faults();
    set_log_sink({});
  }

  EventLoop& loop() { return loop_; }
  std::uint32_t network() const { return network_; }
  std::uint16_t seed_port() const { return directories_.front()->port(); }
  static DhtChildOptions child_options(std::uint32_t network) {
    DhtChildOptions options;
    options.program = std::string(SHOAL_BINARY_DIR) + "/bin/shoal-dht";
    options.bind = "127.0.0.1";
    options.network = network;
    options.backoff_min = 50ms;
    options.backoff_max = 200ms;
    return options;
  }

  DhtDirectory& make(const RunId& run, Storage* storage = nullptr, const std::string& cache_path = {}) {
    auto child = DhtChild::start(loop_, child_options(network_));
    SHOAL_CHECK(child.ok());
    children_.push_back(child->get());
    DhtDirectoryOptions options;
    options.run = run;
    options.seed = directories_.size() + 1;
    options.cache_path = cache_path;
    options.refresh = 2s;
    if (!directories_.empty()) options.bootstrap = {"127.0.0.1:" + std::to_string(seed_port())};
    directories_.push_back(std::make_unique<DhtDirectory>(loop_, std::move(*child), storage, std::move(options)));
    return *directories_.back();
  }
  DhtChild& child_of(const DhtDirectory& directory) {
    for (std::size_t i = 0; i < directories_.size(); ++i)
      if (directories_[i].get() == &directory) return *children_[i];
    std::abort();
  }

  bool run_until(const std::function<bool()>& condition, Duration limit) {
    const TimePoint until = loop_.now() + limit;
    bool held = false;
    std::function<void()> check = [&] {
      held = condition();
      if (held || loop_.now() >= until) return loop_.stop();
      timer_ = loop_.after(5ms, check);
    };
    loop_.post(check);
    loop_.run();
    loop_.cancel(timer_);
    return held;
  }

  void set_outage(bool outage) {
    if (!outage) return disarm_faults();
    SHOAL_CHECK(arm_faults("dht.spawn=error").ok());
    for (DhtChild* child : children_)
      if (child->process_id() != 0) ::kill(child->process_id(), SIGKILL);
  }

 private:
  std::uint32_t network_;
  ThreadLoop loop_;
  TimerId timer_ = 0;
  std::vector<std::unique_ptr<DhtDirectory>> directories_;
  std::vector<DhtChild*> children_;  // owned by their directories
};

}  // namespace shoal
