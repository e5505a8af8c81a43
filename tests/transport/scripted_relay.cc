#include "tests/transport/scripted_relay.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "common/check.h"

namespace shoal {
namespace {

bool read_whole(int fd, std::uint8_t* to, std::size_t size) {
  return ::recv(fd, to, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}
std::vector<std::uint8_t> read_word(int fd, std::size_t size) {
  std::vector<std::uint8_t> word(size);
  if (!read_whole(fd, word.data(), size)) word.clear();
  return word;
}
bool write_whole(int fd, ByteView bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t sent = ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += static_cast<std::size_t>(sent);
  }
  return true;
}
// The close that follows is a reset.
void will_reset(int fd) {
  const linger now = {1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace

ScriptedRelay::ScriptedRelay() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  SHOAL_CHECK_EQ(::bind(listener_.get(), raw, size), 0);
  SHOAL_CHECK_EQ(::listen(listener_.get(), 128), 0);
  SHOAL_CHECK_EQ(::getsockname(listener_.get(), raw, &size), 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

ScriptedRelay::~ScriptedRelay() {
  stopping_ = true;
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void ScriptedRelay::misbehave(RelayFault fault, std::vector<std::uint8_t> words) {
  const std::lock_guard lock(mutex_);
  fault_ = fault;
  words_ = std::move(words);
}

void ScriptedRelay::reset_all() {
  const std::lock_guard lock(mutex_);
  for (const int fd : open_) {
    will_reset(fd);
    ::shutdown(fd, SHUT_RD);  // its thread wakes up and closes it
  }
}

bool ScriptedRelay::has(const PeerId& home) const {
  const std::lock_guard lock(mutex_);
  return homes_.contains(home);
}
std::size_t ScriptedRelay::registrations() const {
  const std::lock_guard lock(mutex_);
  return registrations_;
}
std::size_t ScriptedRelay::answers() const {
  const std::lock_guard lock(mutex_);
  return answers_;
}

void ScriptedRelay::accept_all() {
  while (!stopping_) {
    const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const std::lock_guard lock(mutex_);
    open_.push_back(fd);
    threads_.emplace_back([this, fd] { serve(fd); });
  }
}

void ScriptedRelay::serve(int fd) {
  RelayFault fault;
  {
    const std::lock_guard lock(mutex_);
    fault = fault_;
  }
  std::vector<std::uint8_t> head(kRelayPreambleBytes);
  const bool begun = fault != RelayFault::kResetAtOnce &&
                     ::recv(fd, head.data(), head.size(), MSG_PEEK | MSG_WAITALL) == static_cast<ssize_t>(head.size());
  if (fault == RelayFault::kResetAtOnce) will_reset(fd);
  const auto preamble = parse_relay_preamble(head);
  if (begun && preamble.ok()) {
    if (preamble->kind == RelayKind::kCall) serve_call(fd, fault);
    if (preamble->kind == RelayKind::kRegister) serve_home(fd, fault);
    if (preamble->kind == RelayKind::kAnswer) {
      const auto pass = parse_relay_answer(read_word(fd, kRelayAnswerBytes));
      std::unique_lock lock(mutex_);
      ++answers_;
      const auto waiting = pass.ok() ? waiting_.find(*pass) : waiting_.end();
      if (waiting != waiting_.end()) {
        waiting->second = {fd, true};
        changed_.notify_all();
        return;  // the call's thread has it from now on
      }
    }
  }
  close_at_end(fd);
}

void ScriptedRelay::close_at_end(int fd) {
  const std::lock_guard lock(mutex_);
  std::erase(open_, fd);
  ::close(fd);
}

void ScriptedRelay::serve_home(int fd, RelayFault fault) {
  const auto home = parse_relay_home(read_word(fd, kRelayHomeBytes));
  RelayNonce nonce;
  fill_randomly(nonce);
  if (!home.ok() || !write_whole(fd, nonce)) return;
  Signature signature;
  if (!read_whole(fd, signature.data(), signature.size())) return;
  if (!verify(home->key, home_text(*home, nonce), signature)) forged_ = true;
  std::vector<std::uint8_t> words;
  {
    const std::lock_guard lock(mutex_);
    words = words_;
  }
  if (fault == RelayFault::kSayToHome) (void)write_whole(fd, words);
  if (fault == RelayFault::kSayToHome || !write_whole(fd, pack_relay_verdict(RelayVerdict::kJoined))) return;
  {
    const std::lock_guard lock(mutex_);
    homes_[home->key] = fd;
    ++registrations_;
  }
  while (fault == RelayFault::kFloodHome && !stopping_) {
    RelayIncoming incoming;
    fill_randomly(incoming.call_name);
    if (!write_whole(fd, pack_relay_incoming(incoming))) break;
  }
  std::uint8_t ping[kRelayPingBytes];
  while (read_whole(fd, ping, sizeof ping)) {
  }
  const std::lock_guard lock(mutex_);
  if (homes_[home->key] == fd) homes_.erase(home->key);
}

void ScriptedRelay::serve_call(int fd, RelayFault fault) {
  const auto call = parse_relay_call(read_word(fd, kRelayCallBytes));
  if (!call.ok()) return;
  if (!verify(call->caller, call_text(*call), call->signature)) forged_ = true;
  if (fault == RelayFault::kResetCall) return will_reset(fd);
  RelayIncoming incoming{{}, call->lane, call->caller};
  fill_randomly(incoming.call_name);
  int home = -1;
  {
    const std::lock_guard lock(mutex_);
    if (fault == RelayFault::kSayToCall) {
      (void)write_whole(fd, words_);
      return;
    }
    if (homes_.contains(call->callee)) home = homes_[call->callee];
    waiting_[incoming.call_name] = {};
  }
  if (home < 0 || !write_whole(home, pack_relay_incoming(incoming))) {
    (void)write_whole(fd, pack_relay_verdict(RelayVerdict::kNotRegistered));
    return;
  }
  int answer = -1;
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 5s, [&] { return stopping_ || waiting_[incoming.call_name].came; });
    answer = waiting_[incoming.call_name].answer;
    waiting_.erase(incoming.call_name);
  }
  if (answer < 0) {
    (void)write_whole(fd, pack_relay_verdict(RelayVerdict::kNoAnswer));
    return;
  }
  (void)write_whole(answer, pack_relay_verdict(RelayVerdict::kJoined));
  (void)write_whole(fd, pack_relay_verdict(RelayVerdict::kJoined));
  if (fault == RelayFault::kResetBehindVerdict) {
    will_reset(fd);
    will_reset(answer);
  } else {
    std::thread back([&] { carry(answer, fd, fault == RelayFault::kStallJoined ? fault : RelayFault::kNone); });
    carry(fd, answer, fault);
    back.join();
  }
  close_at_end(answer);
}

void ScriptedRelay::carry(int from, int to, RelayFault fault) {
  std::array<std::uint8_t, 65536> bytes;
  for (std::size_t carried = 0;;) {
    const ssize_t got = ::recv(from, bytes.data(), bytes.size(), 0);
    if (got <= 0) break;
    carried += static_cast<std::size_t>(got);
    if (fault == RelayFault::kStallJoined) continue;
    if (fault == RelayFault::kGarbleJoined) bytes[static_cast<std::size_t>(got) / 2] ^= 1;
    if (fault == RelayFault::kResetJoined && carried > 300) {
      for (const int fd : {from, to}) will_reset(fd);
      ::shutdown(from, SHUT_RD);
      ::shutdown(to, SHUT_RD);
      return;
    }
    if (!write_whole(to, {bytes.data(), static_cast<std::size_t>(got)})) break;
  }
  ::shutdown(to, SHUT_WR);
  ::shutdown(from, SHUT_RD);
}

}  // namespace shoal
