#include "transport/zmq/relayed_pipe.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/log.h"
#include "common/os/tcp_place.h"

namespace shoal {
namespace {

constexpr int kAcceptedPerTurn = 64;

// A connection to the relay that began with this, and waits for the verdict.
Result<RelayTalk> ask_relay(const HostPort& relay, ByteView word) {
  SHOAL_ASSIGN(RelayTalk talk, RelayTalk::begin(relay));
  talk.say(word);
  talk.await(kRelayVerdictBytes);
  return talk;
}

ErrorCode code_of(RelayVerdict verdict) {
  if (verdict == RelayVerdict::kTooMany || verdict == RelayVerdict::kRate) return ErrorCode::kBusy;
  return verdict == RelayVerdict::kNoAnswer ? ErrorCode::kTimeout : ErrorCode::kUnreachable;
}

// True: joined. ERRORS: kUnreachable, kBusy, kTimeout.
Result<bool> joined(Result<RelayTalk>& talk) {
  if (!talk.ok()) return talk.error();
  SHOAL_TRY(talk->turn());
  if (!talk->whole()) return false;
  const auto verdict = parse_relay_verdict(talk->heard());
  if (!verdict.ok()) return make_error(ErrorCode::kUnreachable, "no verdict, but " + verdict.error().message);
  if (*verdict == RelayVerdict::kJoined) return true;
  return make_error(code_of(*verdict), std::string(name_of(*verdict)));
}

}  // namespace

void PipeOrigins::put(const HostPort& own, const HostPort& relay) {
  const std::lock_guard lock(mutex_);
  relays_[own.text()] = relay.text();
}

void PipeOrigins::drop(const HostPort& own) {
  const std::lock_guard lock(mutex_);
  relays_.erase(own.text());
}

std::string PipeOrigins::relay_behind(const std::string& remote) const {
  const std::lock_guard lock(mutex_);
  const auto found = relays_.find(remote);
  return found == relays_.end() ? std::string() : found->second;
}

// ---- the end that calls

CallingPipe::CallingPipe(const HostPort& relay, const RelayCall& call, TimePoint now, Told told)
    : what_("relay " + relay.text() + " for peer " + short_name(call.callee) + ": "),
      told_(std::move(told)),
      talk_(ask_relay(relay, pack_relay_call(call))),
      give_up_at_(now + limits::kRelayedDialTime) {}

bool CallingPipe::turn(TimePoint now) {
  if (pipe_) return pipe_->turn(now);
  if (!door_) {
    const Status called = call();
    const bool late = called.ok() && !door_ && now >= give_up_at_;
    if (!called.ok()) told_(make_error(called.code(), what_ + called.error().message));
    if (late) told_(make_error(ErrorCode::kTimeout, what_ + "no verdict"));
    return called.ok() && !late;
  }
  let_in();
  return pipe_ ? pipe_->turn(now) : now < give_up_at_;
}

Status CallingPipe::call() {
  SHOAL_ASSIGN(const bool is_joined, joined(talk_));
  if (!is_joined) return Status::success();
  auto door = listen_at({"127.0.0.1", 0});
  const auto place = door.ok() ? own_place(*door) : std::nullopt;
  if (!place) return make_error(ErrorCode::kUnreachable, door.ok() ? "no port on loopback" : door.error().message);
  door_ = *std::move(door);
  told_(*place);
  return Status::success();
}

void CallingPipe::let_in() {
  if (expected_ == 0) return;
  for (int i = 0; i < kAcceptedPerTurn; ++i) {
    Descriptor came(::accept4(door_->get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (came.get() < 0) return;
    const auto from = remote_place(came);
    if (!from || from->host != "127.0.0.1" || from->port != expected_) continue;  // another process is no part of it
    const int yes = 1;
    ::setsockopt(came.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    pipe_.emplace(std::move(came), talk_->take_socket());
    return door_.reset();
  }
}

SocketWaits CallingPipe::waits() const {
  if (pipe_) return pipe_->waits();
  if (!door_) return {talk_.ok() ? talk_->waits() : SocketWait{}, SocketWait{}};
  return {SocketWait{door_->get(), expected_ == 0 ? 0u : static_cast<std::uint32_t>(EPOLLIN)}, SocketWait{}};
}

TimePoint CallingPipe::due() const { return pipe_ ? pipe_->due() : give_up_at_; }

// ---- the end that is called

CalledPipe::CalledPipe(const HostPort& relay, const RelayToken& pass, const HostPort& listener, TimePoint now,
                       PipeOrigins& origins)
    : relay_(relay),
      listener_(listener),
      origins_(origins),
      talk_(ask_relay(relay, pack_relay_answer(pass))),
      give_up_at_(now + limits::kRelayedDialTime) {}

CalledPipe::~CalledPipe() {
  pipe_.reset();
  if (own_) origins_.drop(*own_);
}

bool CalledPipe::turn(TimePoint now) {
  if (!pipe_) {
    if (const Status answered = answer(); !answered.ok()) {
      log_debug("a call at relay ", relay_.text(), " came to nothing: ", answered.error().message);
      return false;
    }
  }
  return pipe_ ? pipe_->turn(now) : now < give_up_at_;
}

Status CalledPipe::answer() {
  SHOAL_ASSIGN(const bool is_joined, joined(talk_));
  if (!is_joined) return Status::success();
  SHOAL_ASSIGN(Descriptor near, make_socket_at(listener_.host));
  own_ = own_place(near);
  if (!own_) return make_error(ErrorCode::kUnreachable, "no port on " + listener_.host);
  origins_.put(*own_, relay_);
  SHOAL_TRY(dial_from(near, listener_));
  pipe_.emplace(std::move(near), talk_->take_socket());
  return Status::success();
}

SocketWaits CalledPipe::waits() const {
  if (pipe_) return pipe_->waits();
  return {talk_.ok() ? talk_->waits() : SocketWait{}, SocketWait{}};
}

TimePoint CalledPipe::due() const { return pipe_ ? pipe_->due() : give_up_at_; }

}  // namespace shoal
