#include "tests/transport/raw_curve.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "common/os/thread_loop.h"

namespace shoal {
namespace {

using Nonce = std::array<std::uint8_t, crypto_box_NONCEBYTES>;

Nonce short_nonce(const char* prefix16, std::uint64_t number) {
  Nonce nonce{};
  std::memcpy(nonce.data(), prefix16, 16);
  for (std::size_t i = 0; i < 8; ++i) nonce[16 + i] = static_cast<std::uint8_t>(number >> (56 - 8 * i));
  return nonce;
}

Nonce long_nonce(const char* prefix8, const std::uint8_t* rest16) {
  Nonce nonce{};
  std::memcpy(nonce.data(), prefix8, 8);
  std::memcpy(nonce.data() + 8, rest16, 16);
  return nonce;
}

template <class Range>
void append(std::vector<std::uint8_t>& to, const Range& bytes) {
  to.insert(to.end(), std::begin(bytes), std::end(bytes));
}
void append(std::vector<std::uint8_t>& to, const char* text) { to.insert(to.end(), text, text + std::strlen(text)); }

std::vector<std::uint8_t> box(const std::vector<std::uint8_t>& plain, const Nonce& nonce, const std::uint8_t* to,
                              const std::uint8_t* from) {
  std::vector<std::uint8_t> sealed(plain.size() + crypto_box_MACBYTES);
  SHOAL_CHECK_EQ(crypto_box_easy(sealed.data(), plain.data(), plain.size(), nonce.data(), to, from), 0);
  return sealed;
}

}  // namespace

RawCurve::RawCurve(const HostPort& address) {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(address.port);
  inet_pton(AF_INET, address.host.c_str(), &to.sin_addr);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    ::close(fd_);
    fd_ = -1;
    return;
  }
  const timeval patience{5, 0};
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}
RawCurve::~RawCurve() {
  if (fd_ >= 0) ::close(fd_);
}

bool RawCurve::send_bytes(const std::vector<std::uint8_t>& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t now = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += static_cast<std::size_t>(now);
  }
  return true;
}

bool RawCurve::receive_exactly(std::uint8_t* to, std::size_t size) {
  for (std::size_t got = 0; got < size;) {
    const ssize_t now = ::recv(fd_, to + got, size - got, 0);
    if (now <= 0) return false;
    got += static_cast<std::size_t>(now);
  }
  return true;
}

bool RawCurve::greet(const char* mechanism) {
  std::vector<std::uint8_t> greeting(64);
  greeting[0] = 0xff;
  greeting[9] = 0x7f;
  greeting[10] = 3;
  std::memcpy(greeting.data() + 12, mechanism, std::strlen(mechanism));
  return send_bytes(greeting);
}

bool RawCurve::send_command(const std::vector<std::uint8_t>& body) {
  std::vector<std::uint8_t> frame;
  if (body.size() <= 255) {
    frame = {0x04, static_cast<std::uint8_t>(body.size())};
  } else {
    frame = {
        0x06, 0, 0, 0, 0, 0, 0, static_cast<std::uint8_t>(body.size() >> 8), static_cast<std::uint8_t>(body.size())};
  }
  append(frame, body);
  return send_bytes(frame);
}

bool RawCurve::receive_command(std::vector<std::uint8_t>& body) {
  std::uint8_t head[2];
  if (!receive_exactly(head, 2) || head[0] != 0x04) return false;
  body.resize(head[1]);
  return receive_exactly(body.data(), body.size());
}

bool RawCurve::exchange_keys(const KeyPair& key, const CurveKey& listener) {
  std::uint8_t their_greeting[64];
  if (!greet("CURVE") || !receive_exactly(their_greeting, 64)) return false;
  crypto_box_keypair(session_public_.data(), session_secret_.data());
  std::vector<std::uint8_t> hello;
  append(hello, "\x05HELLO");
  hello.insert(hello.end(), {1, 0});
  hello.resize(hello.size() + 72);
  append(hello, session_public_);
  const Nonce hello_nonce = short_nonce("CurveZMQHELLO---", nonce_++);
  hello.insert(hello.end(), hello_nonce.begin() + 16, hello_nonce.end());
  append(hello, box(std::vector<std::uint8_t>(64), hello_nonce, listener.data(), session_secret_.data()));
  std::vector<std::uint8_t> welcome;
  if (!send_command(hello) || !receive_command(welcome) || welcome.size() != 168) return false;
  std::vector<std::uint8_t> opened(128);
  const Nonce welcome_nonce = long_nonce("WELCOME-", welcome.data() + 8);
  if (crypto_box_open_easy(opened.data(), welcome.data() + 24, 144, welcome_nonce.data(), listener.data(),
                           session_secret_.data()) != 0)
    return false;
  std::copy_n(opened.begin(), 32, their_session_.begin());

  const CurveKey own_public = key.curve_public(), own_secret = key.curve_secret();
  std::array<std::uint8_t, 16> vouch_rest;
  randombytes_buf(vouch_rest.data(), vouch_rest.size());
  std::vector<std::uint8_t> vouch_plain;
  append(vouch_plain, session_public_);
  append(vouch_plain, listener);
  std::vector<std::uint8_t> initiate_plain;
  append(initiate_plain, own_public);
  append(initiate_plain, vouch_rest);
  append(initiate_plain,
         box(vouch_plain, long_nonce("VOUCH---", vouch_rest.data()), their_session_.data(), own_secret.data()));
  append(initiate_plain, "\x0bSocket-Type");
  initiate_plain.insert(initiate_plain.end(), {0, 0, 0, 6});
  append(initiate_plain, "DEALER");
  append(initiate_plain, "\x08Identity");
  initiate_plain.insert(initiate_plain.end(), {0, 0, 0, 0});
  std::vector<std::uint8_t> initiate;
  append(initiate, "\x08INITIATE");
  initiate.insert(initiate.end(), opened.begin() + 32, opened.end());
  const Nonce initiate_nonce = short_nonce("CurveZMQINITIATE", nonce_++);
  initiate.insert(initiate.end(), initiate_nonce.begin() + 16, initiate_nonce.end());
  append(initiate, box(initiate_plain, initiate_nonce, their_session_.data(), session_secret_.data()));
  std::vector<std::uint8_t> ready;
  return send_command(initiate) && receive_command(ready) && ready.size() > 6 &&
         std::memcmp(ready.data(), "\x05READY", 6) == 0;
}

bool RawCurve::send_part(ByteView payload, bool more) {
  std::vector<std::uint8_t> plain = {static_cast<std::uint8_t>(more ? 1 : 0)};
  append(plain, payload);
  const Nonce nonce = short_nonce("CurveZMQMESSAGEC", nonce_++);
  std::vector<std::uint8_t> body;
  append(body, "\x07MESSAGE");
  body.insert(body.end(), nonce.begin() + 16, nonce.end());
  append(body, box(plain, nonce, their_session_.data(), session_secret_.data()));
  std::vector<std::uint8_t> frame = {0x02};
  for (int shift = 56; shift >= 0; shift -= 8)
    frame.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(body.size()) >> shift));
  append(frame, body);
  return send_bytes(frame);
}

std::vector<std::uint8_t> RawCurve::receive_message() {
  std::uint8_t head[2];
  if (!receive_exactly(head, 2) || (head[0] & 0x02) != 0 || head[1] < 33)
    return {};  // short frames are all that tests wait for
  std::vector<std::uint8_t> body(head[1]);
  if (!receive_exactly(body.data(), body.size())) return {};
  Nonce nonce{};
  std::memcpy(nonce.data(), "CurveZMQMESSAGES", 16);
  std::memcpy(nonce.data() + 16, body.data() + 8, 8);
  std::vector<std::uint8_t> plain(body.size() - 32);
  if (crypto_box_open_easy(plain.data(), body.data() + 16, body.size() - 16, nonce.data(), their_session_.data(),
                           session_secret_.data()) != 0)
    return {};
  plain.erase(plain.begin());
  return plain;
}

bool RawCurve::closed_within(Duration time) {
  std::uint8_t sink[4096];
  for (const TimePoint end = monotonic_now() + time; monotonic_now() < end;) {
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, 20) <= 0) continue;
    if (::recv(fd_, sink, sizeof sink, MSG_DONTWAIT) <= 0) return true;
  }
  return false;
}

}  // namespace shoal
