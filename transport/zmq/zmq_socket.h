#pragma once
// libzmq behind types of our own: sockets, polling, monitor events. The only files that see <zmq.h> are zmq_socket.cc
// and tests.
//
// Thread: a socket belongs to one thread at a time; a context to any.   Errors of libzmq that mean bugs of ours stop
// the program. A socket for which there is no descriptor left is none of them: strangers may hold the rest.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "common/crypto/sign.h"
#include "common/host_port.h"
#include "common/result.h"
#include "common/time.h"
#include "transport/wire.h"

namespace shoal {

class ZmqContext {
 public:
  ZmqContext();
  ~ZmqContext();  // REQUIRES: its sockets are closed
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;
  void* raw() const { return context_; }

 private:
  void* context_;
};

struct ZmqMonitorEvent {
  enum class Kind { kAccepted, kConnected, kDisconnected, kConnectFailed, kKeyRefused, kHandshakeFailed, kOther };
  Kind kind = Kind::kOther;
  int fd = -1;  // of kAccepted, kConnected, kDisconnected
};

struct ZmqReceived {
  std::string route;  // ROUTER: who sent it, by libzmq's name for the connection
  std::string user;   // what the key check said of the sender: its CURVE key in hex
  Bytes payload;
  int fd = -1;
  bool one_part = true;  // false: more parts than our protocol has; dropped
};

enum class ZmqSend { kSent, kFull, kGone };

class ZmqSocket {
 public:
  enum class Kind { kRouter, kDealer, kReply };
  // Descriptors that a socket with a monitor and one connection holds.
  static constexpr std::uint64_t kDescriptors = 4;
  ZmqSocket() = default;
  // ERRORS: kIo (no descriptor is left, or libzmq's own bound is reached).
  static Result<ZmqSocket> make(ZmqContext& context, Kind kind);
  ZmqSocket(ZmqSocket&& other) noexcept;
  ZmqSocket& operator=(ZmqSocket&& other) noexcept;
  ~ZmqSocket();

  // Limits, no linger, no reconnection, CURVE: a listening socket asks the key check about everyone who connects.
  void configure(Lane lane, const KeyPair& key, bool ipv6);
  void expect_peer(const CurveKey& key);  // the one that a DEALER may speak to
  void listen_securely();
  // ERRORS: kBusy (port in use; by an outgoing connection too), kIo (not for this user), kInput (no such address).
  Status bind(const HostPort& address);
  HostPort bound_to() const;
  Status connect(const HostPort& address);
  void bind_inproc(const std::string& name);

  // Empty: nothing there. Both ask libzmq only when zmq_wait or look() saw something, or after another call that may
  // have taken the notice of it: every question costs system calls, and most sockets are quiet.
  std::optional<ZmqReceived> receive();
  ZmqSend send(const std::string& route, const Bytes& payload);  // `route` empty for a DEALER
  void look() { look(work_); }                                   // now, instead of at the next zmq_wait
  // All parts of a message, and the answer to it: for the key check.
  std::optional<std::vector<std::string>> receive_parts();
  void send_parts(const std::vector<std::string>& parts);

  Status start_monitor(ZmqContext& context, const std::string& name);  // ERRORS: as make
  std::optional<ZmqMonitorEvent> monitor_event();

  bool open() const { return work_.handle != nullptr; }
  void* raw() const { return work_.handle; }

 private:
  friend class ZmqWait;
  // A libzmq socket and what is known of it. Its descriptor becomes readable when something happened to the socket, and
  // any call on the socket may take that notice away (zmq_getsockopt(3), ZMQ_FD): then its events must be asked for.
  struct End {
    void* handle = nullptr;
    int fd = -1;
    bool unsure = true, readable = false, writable = false;
  };
  static End end_of(void* handle);
  static void look(End& end);
  static bool receive_into(End& end, void* message);
  void set(int option, int value);
  void set(int option, const void* bytes, std::size_t size);
  void close();

  End work_, monitor_;
  bool routed_ = false;
};

// Waits until one of the sockets, its monitor or `wake_fd` is ready, or the time is over.
struct ZmqWaiting {
  ZmqSocket* socket = nullptr;
  bool for_room = false;  // to send; always waits for messages
};
void zmq_wait(const std::vector<ZmqWaiting>& sockets, int wake_fd, Duration timeout);

// What one message costs on the line beside its payload: ZMTP frame header and CURVE's nonce and tag (RFC 23, 26).
constexpr std::uint64_t zmq_overhead_bytes(std::size_t payload) { return 33 + (payload + 33 > 255 ? 9 : 2); }

}  // namespace shoal
