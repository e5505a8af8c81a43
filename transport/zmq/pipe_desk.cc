#include "transport/zmq/pipe_desk.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "common/log.h"
#include "common/os/thread_loop.h"

namespace shoal {
namespace {
constexpr Duration kLook = 250ms;  // how late an errand's time may be noticed
constexpr std::size_t kEventsPerTurn = 64;
}  // namespace

PipeDesk::PipeDesk(KeyPair key, const RunId& run, std::size_t called_max)
    : key_(std::move(key)),
      run_(run),
      called_max_(called_max),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  SHOAL_CHECK(wake_.get() >= 0 && epoll_.get() >= 0);
  epoll_event event{EPOLLIN, {.u64 = 0}};
  SHOAL_CHECK_EQ(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event), 0);
}

PipeDesk::~PipeDesk() {
  if (!thread_.joinable()) return;
  post([this] { stopping_ = true; });
  thread_.join();
}

PipeDesk::PipeId PipeDesk::call(const PeerId& peer, Lane lane, const HostPort& relay, CallingPipe::Told told) {
  const PipeId id = next_id_++;
  post([this, id, peer, lane, relay, told = std::move(told)]() mutable {
    if (run_ == RunId{})
      return told(make_error(ErrorCode::kUnreachable, "this process is of no run, and calls nobody"));
    RelayCall call{lane, run_, peer, key_.id(), {}, {}};
    fill_randomly(call.call_name);
    call.signature = key_.sign(call_text(call));
    start(id, std::make_unique<CallingPipe>(relay, call, now_, std::move(told)));
  });
  return id;
}

void PipeDesk::expect(PipeId pipe, std::uint16_t own_port) {
  post([this, pipe, own_port] {
    if (Errand* errand = find(pipe)) static_cast<CallingPipe*>(errand)->expect(own_port);
    turn(pipe);
  });
}

void PipeDesk::give_up(PipeId pipe) {
  post([this, pipe] { end(pipe); });
}

void PipeDesk::be_called_at(const std::vector<HostPort>& relays, const Listeners& listeners) {
  post([this, relays, listeners] {
    listeners_ = listeners;
    keep_posts(RelayKind::kRegister, run_ == RunId{} ? std::vector<HostPort>() : relays);
  });
}

void PipeDesk::tell_run(const std::vector<HostPort>& relays, const Bytes& list) {
  SHOAL_CHECK(as_peer(run_) == key_.id());
  post([this, relays, list] {
    keep_posts(RelayKind::kRun, relays);
    for (const auto& [of, id] : posts_) {
      Errand* post = find(id);
      if (of.first != RelayKind::kRun || !post) continue;
      static_cast<RelayPost*>(post)->tell(list);
      turn(id);
    }
  });
}

void PipeDesk::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(task));
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

// ---- the desk's thread

void PipeDesk::run() {
  pthread_setname_np(pthread_self(), "pipes");
  std::array<epoll_event, kEventsPerTurn> events;
  TimePoint looked_at = monotonic_now();
  while (!stopping_) {
    const int timeout_ms = running_.empty() ? -1 : static_cast<int>(kLook / 1ms);
    const int ready = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout_ms);
    now_ = monotonic_now();
    for (int i = 0; i < ready; ++i) {
      const PipeId id = events[static_cast<std::size_t>(i)].data.u64;
      if (id == 0) {
        run_posted();
      } else {
        turn(id);
      }
    }
    if (now_ - looked_at < kLook) continue;
    looked_at = now_;
    std::vector<PipeId> due;
    for (const auto& [id, running] : running_)
      if (running.errand->due() <= now_) due.push_back(id);
    for (const PipeId id : due) turn(id);
  }
  running_.clear();
}

void PipeDesk::run_posted() {
  std::uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof count);
  std::vector<std::function<void()>> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(posted_);
  }
  for (const auto& task : tasks) task();
}

void PipeDesk::start(PipeId id, std::unique_ptr<Errand> errand) {
  running_.emplace(id, Running{std::move(errand)});
  turn(id);
}

void PipeDesk::turn(PipeId id) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;  // it ended in this very turn
  if (!found->second.errand->turn(now_)) return end(id);
  wait_for(id, found->second);
}

// A socket that nothing is wanted of is taken out: its end would be told again and again.
void PipeDesk::wait_for(PipeId id, Running& running) {
  const SocketWaits before = std::exchange(running.waits, running.errand->waits());
  for (const SocketWait& old : before) {
    if (old.events != 0 && std::ranges::find(running.waits, old) == running.waits.end())
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, old.fd, nullptr);
  }
  for (const SocketWait& wanted : running.waits) {
    if (wanted.events == 0 || std::ranges::find(before, wanted) != before.end()) continue;
    epoll_event event{wanted.events, {.u64 = id}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wanted.fd, &event) == 0) continue;
    log_warning("a way over a relay is given up: the system watches no more sockets for this user");
    const auto is_it = [id](const auto& post) { return post.second == id; };
    if (std::ranges::none_of(posts_, is_it)) end(id);  // a registration begins anew where it hears nothing
    return;
  }
}

void PipeDesk::end(PipeId id) {
  running_.erase(id);
  called_.erase(id);
}

Errand* PipeDesk::find(PipeId id) {
  const auto found = running_.find(id);
  return found == running_.end() ? nullptr : found->second.errand.get();
}

void PipeDesk::take_call(const HostPort& relay, const RelayIncoming& incoming) {
  TokenBucket& pace = paces_.try_emplace(relay.text(), limits::kCallsPerSecond, limits::kCallsBurst).first->second;
  if (called_.size() >= called_max_ || !pace.take(now_))
    return log_debug("a call at ", relay.text(), " is one too many");
  const PipeId id = next_id_++;
  called_.insert(id);
  start(id, std::make_unique<CalledPipe>(relay, incoming.call_name, listeners_[static_cast<std::size_t>(incoming.lane)],
                                         now_, origins_));
}

void PipeDesk::keep_posts(RelayKind kind, const std::vector<HostPort>& relays) {
  std::erase_if(posts_, [&](const auto& entry) {
    const auto same = [&](const HostPort& relay) { return relay.text() == entry.first.second; };
    const bool leaves = entry.first.first == kind && std::ranges::none_of(relays, same);
    if (leaves) end(entry.second);
    return leaves;
  });
  const RelayHome home{kind, run_, key_.id()};
  for (const HostPort& relay : relays) {
    PipeId& post = posts_[{kind, relay.text()}];
    if (find(post)) continue;
    post = next_id_++;
    start(post, std::make_unique<RelayPost>(relay, home, key_,
                                            [this, relay](const RelayIncoming& call) { take_call(relay, call); }));
  }
}

}  // namespace shoal
