#pragma once
// A ZMTP 3 peer with CURVE on a bare TCP socket (RFC 23, RFC 26), for sending what libzmq would never send: a message
// whose parts do not end. Blocking, for tests. Thread: one.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "common/crypto/sign.h"
#include "transport/zmq/zmq_socket.h"

namespace shoal {

class RawCurve {
 public:
  explicit RawCurve(const HostPort& address);  // connects TCP; ok() tells
  ~RawCurve();
  RawCurve(const RawCurve&) = delete;
  RawCurve& operator=(const RawCurve&) = delete;

  bool ok() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  bool greet(const char* mechanism);  // the ZMTP greeting only
  // The whole key exchange as `key`. False: the other end broke it off.
  bool exchange_keys(const KeyPair& key, const CurveKey& listener);
  // One part of a message. False: the connection is gone.
  bool send_part(ByteView payload, bool more);
  // The next message of one part; empty when the connection is gone.
  std::vector<std::uint8_t> receive_message();
  bool send_bytes(const std::vector<std::uint8_t>& bytes);
  // True when the other end closed within the time.
  bool closed_within(Duration time);

 private:
  bool receive_exactly(std::uint8_t* to, std::size_t size);
  bool receive_command(std::vector<std::uint8_t>& body);
  bool send_command(const std::vector<std::uint8_t>& body);

  int fd_ = -1;
  std::array<std::uint8_t, 32> session_public_{}, session_secret_{}, their_session_{};
  std::uint64_t nonce_ = 1;
};

}  // namespace shoal
