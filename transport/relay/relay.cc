#include "transport/relay/relay.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <numeric>
#include <thread>

#include "common/os/tcp_place.h"
#include "common/os/thread_loop.h"
#include "transport/relay/relay_desk.h"

namespace shoal {
namespace {

constexpr int kEventsAtOnce = 256, kArrivalsAtOnce = 64;
constexpr std::uint64_t kListener = ~0ull, kWake = ~1ull;  // beside the numbers of connections

}  // namespace

std::uint64_t RelayStats::refused() const { return std::accumulate(verdicts.begin() + 1, verdicts.end(), 0ull); }

class Relay::Thread {
 public:
  static Result<std::unique_ptr<Thread>> start(Descriptor listener, const RelayOptions& options) {
    Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC)), wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const auto add = [&](const Descriptor& what, std::uint64_t as) {
      epoll_event event{.events = EPOLLIN, .data = {.u64 = as}};
      return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, what.get(), &event) == 0;
    };
    if (epoll.get() < 0 || wake.get() < 0 || !add(listener, kListener) || !add(wake, kWake))
      return error_of_errno("wait on", "a relay's sockets", errno);
    return std::unique_ptr<Thread>(new Thread(std::move(epoll), std::move(wake), std::move(listener), options));
  }

  ~Thread() {
    stopping_ = true;
    wake_up();
    thread_.join();
  }

  void follow(const RunId& run, const PeerId& open, std::vector<PeerId> members) {
    {
      const std::lock_guard lock(mutex_);
      followed_.push_back({run, open, std::move(members)});
    }
    wake_up();
  }

  RelayStats stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  struct Followed {
    RunId run;
    PeerId open;
    std::vector<PeerId> members;
  };

  Thread(Descriptor epoll, Descriptor wake, Descriptor listener, const RelayOptions& options)
      : epoll_(std::move(epoll)),
        wake_(std::move(wake)),
        listener_(std::move(listener)),
        desk_(options, epoll_.get()),
        thread_([this] { run(); }) {}

  void wake_up() {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  }

  void run() {
    pthread_setname_np(pthread_self(), "relay");
    TimePoint sweep_at = monotonic_now();
    std::optional<TimePoint> carry_at;
    std::array<epoll_event, kEventsAtOnce> events;
    while (!stopping_) {
      const TimePoint until = carry_at ? std::min(*carry_at, sweep_at) : sweep_at;
      const Duration wait = std::max(Duration{}, until - monotonic_now());
      const int count =
          ::epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, static_cast<int>((wait + 1ms - Duration(1)) / 1ms));
      const TimePoint now = monotonic_now();
      for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        if (event.data.u64 == kListener)
          accept_all(now);
        else if (event.data.u64 == kWake)
          hear_owner(now);
        else
          desk_.on_event(event.data.u64, event.events, now);
      }
      carry_at = desk_.carry(now);
      if (now < sweep_at) continue;
      desk_.sweep(now);
      listen(true);
      sweep_at = now + RelayDesk::kSweep;
      const std::lock_guard lock(mutex_);
      stats_ = desk_.stats();
    }
  }

  void accept_all(TimePoint now) {
    for (int i = 0; i < kArrivalsAtOnce; ++i) {
      Descriptor came(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      // Out of descriptors or memory: whoever waits would wake us without end.
      if (came.get() < 0 && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) return listen(false);
      if (came.get() < 0) return;
      if (const auto remote = remote_place(came)) desk_.take(std::move(came), party_of(*remote), now);
    }
  }

  void listen(bool on) {
    if (listening_ == on) return;
    epoll_event event{.events = on ? std::uint32_t{EPOLLIN} : 0u, .data = {.u64 = kListener}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event);
    listening_ = on;
  }

  void hear_owner(TimePoint now) {
    std::uint64_t count = 0;
    (void)!::read(wake_.get(), &count, sizeof count);
    std::vector<Followed> followed;
    {
      const std::lock_guard lock(mutex_);
      followed.swap(followed_);
    }
    for (const Followed& one : followed) desk_.follow(one.run, one.open, one.members, now);
  }

  const Descriptor epoll_, wake_, listener_;
  RelayDesk desk_;
  bool listening_ = true;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::vector<Followed> followed_;  // guarded by mutex_
  RelayStats stats_;                // guarded by mutex_
  std::thread thread_;              // last: it uses all of them
};

Result<std::unique_ptr<Relay>> Relay::start(const HostPort& listen, const RelayOptions& options) {
  SHOAL_ASSIGN(Descriptor listener, listen_at(listen));
  const auto place = own_place(listener);
  if (!place) return error_of_errno("listen on", listen.text(), errno);
  SHOAL_ASSIGN(std::unique_ptr<Thread> thread, Thread::start(std::move(listener), options));
  return std::unique_ptr<Relay>(new Relay(*place, std::move(thread)));
}

Relay::Relay(HostPort listening_at, std::unique_ptr<Thread> thread)
    : listening_at_(std::move(listening_at)), thread_(std::move(thread)) {}
Relay::~Relay() = default;

void Relay::follow(const RunId& run, const PeerId& open, std::vector<PeerId> members) {
  thread_->follow(run, open, std::move(members));
}
RelayStats Relay::stats() const { return thread_->stats(); }

}  // namespace shoal
