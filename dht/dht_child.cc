#include "dht/dht_child.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <mutex>
#include <thread>

#include "common/fault.h"
#include "common/log.h"
#include "common/log_throttle.h"
#include "common/os/executable.h"
#include "common/os/thread_loop.h"
#include "common/rng.h"
#include "dht/child_protocol.h"
#include "dht/restart_pace.h"
#include "dht/spawned_child.h"

namespace shoal {
namespace {

constexpr Duration kAliveWindow = 5s;  // status lines come every second

}  // namespace

class DhtChild::Supervisor : public std::enable_shared_from_this<Supervisor> {
 public:
  Supervisor(EventLoop& loop, DhtChildOptions options)
      : loop_(loop), options_(std::move(options)), rng_(entropy_seed()), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    SHOAL_CHECK(wake_ >= 0);
  }
  ~Supervisor() { close(wake_); }

  void start() {
    thread_ = std::thread([this] { run(); });
  }
  void stop() {
    listener_ = nullptr;
    stopping_ = true;
    wake();
    thread_.join();
  }

  // ---- loop only ----
  void send(const ChildCommand& command) {
    if (!up_) return;
    {
      const std::lock_guard lock(mutex_);
      if (commands_.size() >= kChildQueueMax) return;
      commands_.push_back(pack_line(command));
    }
    wake();
  }
  bool alive() const { return up_ && loop_.now() - heard_ < kAliveWindow; }

  Listener* listener_ = nullptr;  // loop only
  bool up_ = false;               // loop only
  TimePoint heard_;               // loop only
  std::uint16_t port_ = 0;        // loop only
  std::atomic<int> process_id_{0};
  std::atomic<std::uint64_t> starts_{0}, deaths_{0};

 private:
  void wake() {
    const std::uint64_t one = 1;
    if (write(wake_, &one, sizeof one) < 0) return;  // the counter is full: it will wake anyway
  }

  // ---- the supervisor's thread ----
  void run();
  void sleep(Duration duration);
  void live(SpawnedChild& child);
  bool exchange(SpawnedChild& child, short ready);
  bool read_lines(SpawnedChild& child);
  bool write_lines(SpawnedChild& child);
  void deliver(const std::string& line);
  void post(std::function<void(Supervisor&)> task);
  void note_death(const std::string& cause);
  std::vector<std::string> arguments();

  EventLoop& loop_;
  const DhtChildOptions options_;
  Rng rng_;
  const int wake_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> posted_{0};  // events that the loop has not taken yet
  std::uint16_t last_port_ = 0;         // supervisor's thread

  std::mutex mutex_;
  std::deque<std::string> commands_;  // guarded by mutex_

  LogThrottle said_;  // supervisor's thread
  LineBuffer lines_;
  std::string outgoing_;
  TimePoint last_line_;
};

std::vector<std::string> DhtChild::Supervisor::arguments() {
  // The port of the life before is asked for once: if it is taken meanwhile, the start after that takes any.
  const std::uint16_t port = options_.port != 0 ? options_.port : std::exchange(last_port_, std::uint16_t{0});
  return {options_.program, "--supervised",
          "--bind",         options_.bind,
          "--port",         std::to_string(port),
          "--network",      std::to_string(options_.network),
          "--memory-bytes", std::to_string(options_.memory_bytes)};
}

void DhtChild::Supervisor::run() {
  RestartPace pace(options_.backoff_min, options_.backoff_max);
  while (!stopping_) {
    const TimePoint begin = monotonic_now();
    if (SHOAL_FAULT("dht.spawn")) {
      sleep(options_.backoff_min);
      continue;
    }
    Result<SpawnedChild> child = SpawnedChild::spawn(arguments());
    if (child.ok()) {
      ++starts_;
      process_id_ = child->process_id();
      live(*child);
      process_id_ = 0;
      const std::string cause = child->end(stopping_ ? 2s : 0s);
      if (stopping_) return;
      ++deaths_;
      note_death("the DHT child ended (" + cause + ")");
    } else {
      note_death(child.error().message);
    }
    const Duration pause = pace.after(monotonic_now() - begin);
    if (pace.hunted()) last_port_ = 0;
    // Jitter, so that hosts that fell together do not come back together.
    sleep(std::chrono::duration_cast<Duration>(pause * (0.5 + 0.5 * rng_.uniform())));
  }
}

void DhtChild::Supervisor::sleep(Duration duration) {
  const TimePoint until = monotonic_now() + duration;
  while (!stopping_ && monotonic_now() < until) {
    pollfd watch{wake_, POLLIN, 0};
    poll(&watch, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(until - monotonic_now()).count()));
    std::uint64_t count = 0;
    if (read(wake_, &count, sizeof count) < 0) continue;
  }
}

void DhtChild::Supervisor::live(SpawnedChild& child) {
  lines_ = LineBuffer();
  outgoing_.clear();
  {
    const std::lock_guard lock(mutex_);
    commands_.clear();
  }
  last_line_ = monotonic_now();
  while (!stopping_) {
    const bool room = posted_ < kChildQueueMax;
    const auto wanted = static_cast<short>((room ? POLLIN : 0) | (outgoing_.empty() ? 0 : POLLOUT));
    pollfd watch[2] = {{child.socket(), wanted, 0}, {wake_, POLLIN, 0}};
    poll(watch, 2, room ? 500 : 10);
    std::uint64_t count = 0;
    if ((watch[1].revents & POLLIN) != 0 && read(wake_, &count, sizeof count) < 0) continue;
    if (!exchange(child, watch[0].revents)) return;
    // Checked after reading: when we were stopped ourselves, what it said meanwhile counts.
    if (room && monotonic_now() - last_line_ > options_.silence_max) {
      log_warning("the DHT child has been silent for ", seconds_of(options_.silence_max), " s: it is killed");
      child.kill_now();
      return;
    }
  }
}

// False when the child is gone.
bool DhtChild::Supervisor::exchange(SpawnedChild& child, short ready) {
  if ((ready & (POLLIN | POLLHUP | POLLERR)) != 0 && posted_ < kChildQueueMax && !read_lines(child)) return false;
  return write_lines(child);
}

bool DhtChild::Supervisor::read_lines(SpawnedChild& child) {
  char bytes[4096];
  const ssize_t size = recv(child.socket(), bytes, sizeof bytes, 0);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  if (size == 0) return false;
  for (const std::string& line : lines_.append({bytes, static_cast<std::size_t>(size)})) deliver(line);
  return true;
}

bool DhtChild::Supervisor::write_lines(SpawnedChild& child) {
  if (outgoing_.empty()) {
    const std::lock_guard lock(mutex_);
    for (const std::string& line : commands_) outgoing_ += line;
    commands_.clear();
  }
  if (outgoing_.empty()) return true;
  const ssize_t size = ::send(child.socket(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  outgoing_.erase(0, static_cast<std::size_t>(size));
  return true;
}

void DhtChild::Supervisor::deliver(const std::string& line) {
  Result<ChildEvent> event = parse_event(line);
  if (!event.ok()) return;
  last_line_ = monotonic_now();
  if (const auto* ready = std::get_if<ReadyEvent>(&*event)) last_port_ = ready->port;
  post([event = std::move(*event)](Supervisor& self) {
    self.heard_ = self.loop_.now();
    if (const auto* ready = std::get_if<ReadyEvent>(&event)) {
      self.up_ = true;
      self.port_ = ready->port;
      if (self.listener_ != nullptr) self.listener_->on_dht_up(ready->port);
    } else if (!self.up_ || self.listener_ == nullptr) {
      return;
    } else if (const auto* value = std::get_if<ValueEvent>(&event)) {
      self.listener_->on_dht_value(value->tag, value->text);
    } else if (const auto* done = std::get_if<DoneEvent>(&event)) {
      self.listener_->on_dht_done(done->tag);
    } else {
      self.listener_->on_dht_status(std::get<DhtStatus>(event));
    }
  });
}

void DhtChild::Supervisor::post(std::function<void(Supervisor&)> task) {
  ++posted_;
  loop_.post([self = shared_from_this(), task = std::move(task)] {
    --self->posted_;
    task(*self);
  });
}

void DhtChild::Supervisor::note_death(const std::string& cause) {
  if (const auto times = said_.due("dht", monotonic_now()))
    log_warning(cause, "; records of live connections and of the cache serve until it is back. It has ended ",
                deaths_.load(), deaths_.load() == 1 ? " time" : " times",
                " so far: a stranger can end it with a datagram, and training goes on without it",
                LogThrottle::text_of(*times));
  post([cause](Supervisor& self) {
    if (!std::exchange(self.up_, false)) return;
    if (self.listener_ != nullptr) self.listener_->on_dht_down(make_error(ErrorCode::kUnreachable, cause));
  });
}

Result<std::unique_ptr<DhtChild>> DhtChild::start(EventLoop& loop, DhtChildOptions options) {
  if (options.network == 0) return make_error(ErrorCode::kInput, "DHT network 0 is the public one: a run has its own");
  if (options.program.empty()) {
    SHOAL_ASSIGN(options.program, beside_own_program("shoal-dht"));
  }
  if (access(options.program.c_str(), X_OK) != 0)
    return make_error(ErrorCode::kMissing, "no program " + options.program + " (it runs the DHT)");
  return std::unique_ptr<DhtChild>(new DhtChild(loop, std::move(options)));
}

DhtChild::DhtChild(EventLoop& loop, DhtChildOptions options)
    : supervisor_(std::make_shared<Supervisor>(loop, std::move(options))) {
  supervisor_->start();
}
DhtChild::~DhtChild() { supervisor_->stop(); }

void DhtChild::set_listener(Listener* listener) { supervisor_->listener_ = listener; }
void DhtChild::put(const std::string& key, std::uint64_t id, std::uint16_t serial, const std::string& text) {
  supervisor_->send(PutCommand{key, id, serial, text});
}
void DhtChild::withdraw(const std::string& key, std::uint64_t id) { supervisor_->send(WithdrawCommand{key, id}); }
void DhtChild::get(std::uint64_t tag, const std::string& key) { supervisor_->send(GetCommand{tag, key}); }
void DhtChild::bootstrap(const std::string& address) { supervisor_->send(BootstrapCommand{address}); }
bool DhtChild::alive() const { return supervisor_->alive(); }
std::uint16_t DhtChild::port() const { return supervisor_->port_; }
int DhtChild::process_id() const { return supervisor_->process_id_; }
ChildCounters DhtChild::counters() const { return {supervisor_->starts_, supervisor_->deaths_}; }

}  // namespace shoal
