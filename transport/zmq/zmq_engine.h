#pragma once
// The wire's own thread: owns every ZeroMQ socket, moves bytes between them and the loop's queues. Private to
// zmq_wire.cc.
//
// Two ROUTERs listen (control, bulk); a connection that we dial is two DEALERs. A dialled connection's way:
//   control dialled -> greeted -> answered with the bulk port -> bulk dialled -> greeted -> answered: up
// Over a relay each lane is called first (pipe_desk.h), then libzmq dials the door of its pipe.
// The listener's: control greeted (claim = proved key) -> waits for the bulk lane with the same secret -> up.
//
// Threads: post(), bytes_sent() and refusals() from any, the rest of the public functions from the one that made it;
// everything else on the wire's thread. Bounds: queues are bounded by the sender's side (zmq_wire.cc), bytes on the way
// to the loop by limits::kUnreadBytesMax a connection.
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

#include "common/os/descriptors.h"
#include "common/time.h"
#include "transport/crowd.h"
#include "transport/limits.h"
#include "transport/refusal_book.h"
#include "transport/zmq/buried_routes.h"
#include "transport/zmq/byte_watchdog.h"
#include "transport/zmq/connection_bounds.h"
#include "transport/zmq/doorway.h"
#include "transport/zmq/key_check.h"
#include "transport/zmq/lane_greeting.h"
#include "transport/zmq/pipe_desk.h"
#include "transport/zmq/zmq_socket.h"

namespace shoal {

// Bytes handed to the loop that it has not seen yet, each message with what holding it costs.
using UnreadGauge = std::shared_ptr<std::atomic<std::uint64_t>>;
constexpr std::uint64_t unread_cost(std::size_t payload) { return payload + limits::kUnreadMessageCost; }

struct EngineEvent {
  enum class Kind { kUp, kBytes, kSent, kDown };
  Kind kind;
  ConnectionId connection;
  Lane lane = Lane::kControl;
  Bytes bytes;                 // kBytes
  UnreadGauge unread;          // kBytes
  PeerId peer;                 // kUp
  bool dialled = false;        // kUp
  std::uint64_t sent = 0;      // kSent: payload bytes that left our queue
  std::optional<Error> cause;  // kDown
  std::string host{};          // kUp: of the other end; empty over a relay
  bool relayed = false;        // kUp
};

struct EngineCommand {
  // kReviewKeys: the key check admits fewer than before. kPipe: the way over a relay stands, or does not.
  enum class Kind { kConnect, kSend, kDisconnect, kReviewKeys, kFavour, kPipe };
  Kind kind;
  ConnectionId connection;
  PeerId peer;      // kConnect
  Address address;  // kConnect
  Lane lane = Lane::kControl;
  Bytes bytes;
  std::vector<PeerId> favoured{};          // kFavour
  std::optional<Result<HostPort>> door{};  // kPipe: where libzmq dials it
};

class ZmqEngine {
 public:
  // `deliver` is called on the wire's thread.
  ZmqEngine(KeyPair key, const RunId& run, std::shared_ptr<KeyCheck> keys,
            std::function<void(std::vector<EngineEvent>)> deliver);
  ~ZmqEngine();
  ZmqEngine(const ZmqEngine&) = delete;
  ZmqEngine& operator=(const ZmqEngine&) = delete;

  // Before start(). The bulk lane takes the next port. Port 0: a pair that is free (lasting_ports.h). ERRORS: as
  // ZmqSocket::bind.
  Status listen(const HostPort& address);
  void start();
  std::optional<HostPort> listening_at() const { return listening_at_; }
  ConnectionId new_connection_id() { return next_connection_++; }
  void post(EngineCommand command);
  // Any thread.
  PipeDesk& pipes() { return pipes_; }
  // Where the desk finds our listeners; nothing: dial only.
  std::optional<PipeDesk::Listeners> listeners_beside() const;
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  RefusalCounts refusals() const { return refusals_.counts(); }

 private:
  struct LaneEnd {
    ZmqSocket dealer;   // dialled
    std::string route;  // accepted
    int fd = -1;
    PipeDesk::PipeId pipe = 0;  // dialled over a relay
    std::deque<Bytes> queue;
    bool answered = false;
    bool blocked = false;  // ROUTER full
  };
  struct Connection {
    ConnectionId id = 0;
    PeerId peer;
    bool dialled = false;
    bool up = false;
    std::string user;  // accepted: the proved key
    std::array<std::uint8_t, 16> secret{};
    DialAddress target;  // dialled
    std::array<LaneEnd, 2> lanes;
    std::vector<std::pair<Lane, Bytes>> early;  // dialled: control messages before the bulk lane's answer
    TimePoint deadline{};
    std::optional<Error> failure;  // what the monitor said before the connection closed
    UnreadGauge unread = std::make_shared<std::atomic<std::uint64_t>>(0);
    bool relayed = false;

    std::string where() const;  // dialled: for errors
    Duration dial_time() const { return relayed ? limits::kRelayedDialTime : limits::kDialTime; }
  };
  using LaneSecret = std::array<std::uint8_t, 16>;

  Status listen_at(const HostPort& address, int attempt);
  void run();
  void wait();
  void run_commands();
  void answer_key_checks();
  void read_listeners(std::size_t messages_max);
  void read_tail();
  void read_listener(Lane lane, std::size_t messages_max);
  void read_dialled();
  void read_monitors();
  void read_listener_monitor(Lane lane, bool read_first);
  std::optional<ConnectionId> release_descriptor(Lane lane, int fd);
  void check_deadlines();
  void flush();

  // which connections are kept
  void meet(const Connection& connection);  // accepted; one that nobody favoured may push out another
  void favour(const std::vector<PeerId>& peers);
  Status room_for_dial() const;  // ERRORS: kUnreachable

  // zmq_engine_lanes.cc
  void dial(const EngineCommand& command);
  void dial_lane(Connection& connection, Lane lane, const HostPort& address);
  void call_lane(Connection& connection, Lane lane);  // over a relay
  void on_pipe(Connection& connection, Lane lane, const Result<HostPort>& door);
  void on_dialled_message(Connection& connection, Lane lane, ZmqReceived received);
  void on_dialled_event(Connection& connection, Lane lane, const ZmqMonitorEvent& event);
  void on_answer(Connection& connection, Lane lane, ByteView bytes);
  void on_routed_message(Lane lane, ZmqReceived received);
  void on_greeting(Lane lane, const ZmqReceived& received);
  void accept_control(const LaneGreeting& greeting, const ZmqReceived& received);
  void accept_bulk(const LaneGreeting& greeting, const ZmqReceived& received);
  void refuse_lane(Lane lane, const ZmqReceived& received, Refusal cause, const std::string& reason);
  void review_keys();
  void deliver_bytes(Connection& connection, Lane lane, Bytes bytes);
  void come_up(Connection& connection);
  bool flush_lane(Connection& connection, Lane lane);                            // false: the other end is gone
  void refuse(const Connection& connection, Refusal cause, const Error& error);  // counts, and loses it
  void lose(ConnectionId id, const Error& cause);
  void remove(ConnectionId id);

  Connection* find(ConnectionId id);
  ZmqSocket& listener(Lane lane) { return listeners_[static_cast<std::size_t>(lane)]; }

  const KeyPair key_;
  const std::shared_ptr<KeyCheck> keys_;
  const std::function<void(std::vector<EngineEvent>)> deliver_;
  std::atomic<ConnectionId> next_connection_{1};
  std::atomic<std::uint64_t> bytes_sent_{0};
  RefusalBook refusals_;
  std::optional<HostPort> listening_at_;
  const Descriptor wake_;

  std::mutex mutex_;
  std::vector<EngineCommand> commands_;  // guarded by mutex_
  std::atomic<bool> stopping_{false};

  // The wire's thread only. The context outlives the sockets.
  ZmqContext context_;
  ZmqSocket key_checks_;
  std::array<ZmqSocket, 2> listeners_;
  std::uint16_t bulk_port_ = 0;
  std::map<ConnectionId, std::unique_ptr<Connection>> connections_;
  std::array<std::unordered_map<std::string, ConnectionId>, 2> by_route_;
  std::array<std::map<int, ConnectionId>, 2> by_fd_;
  std::map<std::pair<PeerId, LaneSecret>, ConnectionId> half_open_;
  BuriedRoutes buried_{limits::kBuriedRoutesMax};
  const ConnectionBounds bounds_ = connection_bounds(descriptors_max());
  Doorway doorway_{bounds_, refusals_, [this](const std::string& remote) { return pipes_.relay_behind(remote); }};
  ByteWatchdog dialled_watchdog_;
  Crowd strangers_{bounds_.strangers, bounds_.strangers_per_address};  // connections
  std::set<PeerId> favoured_;
  TimePoint watched_at_{};
  TimePoint now_{};
  bool any_blocked_ = false;
  std::uint64_t monitors_ = 0;
  std::vector<EngineEvent> events_;
  std::thread thread_;
  PipeDesk pipes_;  // ends first: it posts commands
};

}  // namespace shoal
