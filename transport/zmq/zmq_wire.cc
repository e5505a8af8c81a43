#include "transport/zmq/zmq_wire.h"

#include <iterator>
#include <map>
#include <thread>

#include "common/bulk_bytes.h"
#include "common/log.h"
#include "common/os/thread_loop.h"
#include "transport/zmq/zmq_engine.h"
#include "transport/zmq/zmq_trial.h"

namespace shoal {
namespace {

// Not given to sockets yet. A lane always takes one message when nothing waits.
constexpr std::uint64_t kLaneBytesMax[2] = {limits::kQueuedControlBytesMax, limits::kQueuedBulkBytesMax};

constexpr std::size_t kPortionBytes = kBulkBytesMax / 4;  // each is copied, summed, and answered with as much

Result<std::vector<CurveKey>> curve_keys_of(const std::vector<PeerId>& peers) {
  std::vector<CurveKey> keys;
  for (const PeerId& peer : peers) {
    const auto key = curve_public_of(peer);
    if (!key.ok())
      return make_error(ErrorCode::kInput,
                        "[admission] keys: " + hex_of(peer) + " is no key. HINT: `shoal key` prints one");
    keys.push_back(*key);
  }
  return keys;
}

Result<HostPort> listening_place(const std::string& listen) {
  auto parsed = parse_host_port(listen, PortZero::kAllowed);
  if (parsed.ok()) return parsed;
  return make_error(ErrorCode::kInput,
                    parsed.error().message + ". HINT: such as 0.0.0.0:4700 or [::]:4700; port 0 takes any free one");
}

// Names are not asked for: they are left out, with a line.
std::vector<HostPort> relay_places(const std::vector<Address>& relays) {
  std::vector<HostPort> places;
  for (const Address& relay : relays) {
    auto place = parse_host_port(relay);
    if (place.ok() && place->is_literal())
      places.push_back(*std::move(place));
    else
      log_warning("relay ", relay, " is left out: it is no IP address with a port");
  }
  return places;
}

class ZmqWireOnLoop final : public ZmqWire {
 public:
  ZmqWireOnLoop(EventLoop& loop, const ZmqWireOptions& options, std::shared_ptr<KeyCheck> keys)
      : state_(std::make_shared<State>()),
        self_(options.key.id()),
        keys_(keys),
        engine_(options.key, options.run, std::move(keys), [&loop, state = state_](std::vector<EngineEvent> events) {
          hand_over(loop, state, std::move(events));
        }) {}
  ~ZmqWireOnLoop() override { state_->listener = nullptr; }

  ZmqEngine& engine() { return engine_; }

  void set_listener(Wire::Listener* listener) override { state_->listener = listener; }
  Address listening_address() const override {
    return engine_.listening_at() ? engine_.listening_at()->text() : Address();
  }
  void admit(const PeerId& peer) override {
    if (const auto key = curve_public_of(peer); key.ok()) keys_->admit(*key);
  }

  Status admit_only(const std::vector<PeerId>& peers) override {
    SHOAL_ASSIGN(const std::vector<CurveKey> keys, curve_keys_of(peers));
    keys_->admit_only(keys);
    engine_.post({EngineCommand::Kind::kReviewKeys, 0, {}, {}, Lane::kControl, {}});
    return engine_.listening_at() ? try_as_stranger(*engine_.listening_at(), self_, *keys_) : Status();
  }

  ConnectionId connect(const PeerId& peer, const Address& address) override {
    const ConnectionId id = engine_.new_connection_id();
    state_->connections.emplace(id, Connection{});
    engine_.post({EngineCommand::Kind::kConnect, id, peer, address, Lane::kControl, {}});
    return id;
  }

  Status send(ConnectionId id, Lane lane, Bytes message) override {
    const std::size_t limit = lane == Lane::kControl ? limits::kControlBytesMax : limits::kChunkBytesMax + 64;
    if (message.size() > limit) {
      return make_error(ErrorCode::kTooLarge,
                        "message of " + std::to_string(message.size()) + " bytes, limit " + std::to_string(limit));
    }
    const auto found = state_->connections.find(id);
    if (found == state_->connections.end() || !found->second.up)
      return make_error(ErrorCode::kUnreachable, "no such connection");
    LaneState& state = found->second.lanes[static_cast<std::size_t>(lane)];
    if (state.queued > 0 && state.queued + message.size() > kLaneBytesMax[static_cast<std::size_t>(lane)]) {
      state.busy = true;
      return make_error(ErrorCode::kBusy, "the lane is full");
    }
    state.queued += message.size();
    engine_.post({EngineCommand::Kind::kSend, id, {}, {}, lane, std::move(message)});
    return Status::success();
  }

  void disconnect(ConnectionId id) override {
    if (state_->connections.erase(id) > 0)
      engine_.post({EngineCommand::Kind::kDisconnect, id, {}, {}, Lane::kControl, {}});
  }

  void favour(const std::vector<PeerId>& peers) override {
    engine_.post({EngineCommand::Kind::kFavour, 0, {}, {}, Lane::kControl, {}, peers});
  }

  std::string other_host(ConnectionId id) const override {
    const auto found = state_->connections.find(id);
    return found == state_->connections.end() ? std::string() : found->second.host;
  }

  void be_called_at(const std::vector<Address>& relays) override {
    if (const auto listeners = engine_.listeners_beside())
      engine_.pipes().be_called_at(relay_places(relays), *listeners);
    else if (!relays.empty())
      log_warning("a wire that does not listen is called at no relay");
  }

  void publish_list(const std::vector<Address>& relays, const Members& list) override {
    engine_.pipes().tell_run(relay_places(relays), pack_relay_list(list));
  }

  bool relayed(ConnectionId id) const override {
    const auto found = state_->connections.find(id);
    return found != state_->connections.end() && found->second.relayed;
  }

  std::uint64_t bytes_sent() const override { return engine_.bytes_sent(); }
  RefusalCounts refusals() const override { return engine_.refusals(); }

 private:
  struct State;
  // On the wire's thread. In portions, since a peer's chunks are copied and summed where they are taken.
  static void hand_over(EventLoop& loop, const std::shared_ptr<State>& state, std::vector<EngineEvent> events) {
    for (auto first = events.begin(); first != events.end();) {
      auto last = first;
      for (std::size_t bytes = 0; last != events.end() && bytes < kPortionBytes; ++last) bytes += last->bytes.size();
      std::vector<EngineEvent> portion(std::make_move_iterator(first), std::make_move_iterator(last));
      loop.post([&loop, state, portion = std::move(portion)]() mutable {
        loop.name_callback("wire");
        for (EngineEvent& event : portion) state->take(std::move(event));
      });
      first = last;
    }
  }

  struct LaneState {
    std::uint64_t queued = 0;
    bool busy = false;
  };
  struct Connection {
    bool up = false;
    std::array<LaneState, 2> lanes;
    std::string host{};
    bool relayed = false;
  };
  // Loop only. Shared with events under way, which may outlive the wire.
  struct State {
    Wire::Listener* listener = nullptr;
    std::map<ConnectionId, Connection> connections;

    void take(EngineEvent event);
    void on_sent(const EngineEvent& event);
  };

  std::shared_ptr<State> state_;
  const PeerId self_;
  std::shared_ptr<KeyCheck> keys_;
  ZmqEngine engine_;
};

void ZmqWireOnLoop::State::take(EngineEvent event) {
  if (event.unread) event.unread->fetch_sub(unread_cost(event.bytes.size()));
  if (!listener) return;
  if (event.kind == EngineEvent::Kind::kUp && !event.dialled) connections.emplace(event.connection, Connection{});
  const auto found = connections.find(event.connection);
  if (found == connections.end()) return;  // we hung up
  switch (event.kind) {
    case EngineEvent::Kind::kUp:
      found->second.up = true;
      found->second.host = std::move(event.host);
      found->second.relayed = event.relayed;
      return listener->on_up(event.connection, event.peer, event.dialled);
    case EngineEvent::Kind::kBytes:
      return listener->on_bytes(event.connection, event.lane, std::move(event.bytes));
    case EngineEvent::Kind::kSent:
      return on_sent(event);
    case EngineEvent::Kind::kDown:
      connections.erase(found);
      return listener->on_down(event.connection, *event.cause);
  }
}

void ZmqWireOnLoop::State::on_sent(const EngineEvent& event) {
  LaneState& lane = connections.at(event.connection).lanes[static_cast<std::size_t>(event.lane)];
  lane.queued -= std::min(event.sent, lane.queued);
  if (!lane.busy || lane.queued > kLaneBytesMax[static_cast<std::size_t>(event.lane)] / 2) return;
  lane.busy = false;
  listener->on_writable(event.connection, event.lane);
}

constexpr Duration kAskPortAgain = 250ms;

// ERRORS: make_zmq_wire's, without the remedy for kBusy.
Result<std::unique_ptr<ZmqWire>> make_wire(EventLoop& loop, const ZmqWireOptions& options) {
  auto keys = std::make_shared<KeyCheck>(options.admission == Admission::kOpen);
  SHOAL_ASSIGN(const std::vector<CurveKey> admitted, curve_keys_of(options.admitted));
  for (const CurveKey& one : admitted) keys->admit(one);
  auto wire = std::make_unique<ZmqWireOnLoop>(loop, options, keys);
  std::optional<HostPort> address;
  if (!options.listen.empty()) {
    SHOAL_ASSIGN(address, listening_place(options.listen));
    SHOAL_TRY(wire->engine().listen(*address));
  }
  if (!options.favoured.empty()) wire->favour(options.favoured);  // heard before any connection is
  wire->engine().start();
  if (address) SHOAL_TRY(try_as_stranger(*wire->engine().listening_at(), options.key.id(), *keys));
  return std::unique_ptr<ZmqWire>(std::move(wire));
}

}  // namespace

Result<std::unique_ptr<ZmqWire>> make_zmq_wire(EventLoop& loop, ZmqWireOptions options) {
  auto wire = make_wire(loop, options);
  if (wire.ok() || wire.code() != ErrorCode::kBusy) return wire;
  return make_error(ErrorCode::kBusy, wire.error().message +
                                          ". HINT: choose another with --listen HOST:PORT (PORT and PORT + 1 must be "
                                          "free), or port 0 for any");
}

Result<std::unique_ptr<ZmqWire>> make_zmq_wire_when_free(EventLoop& loop, const ZmqWireOptions& options, Duration limit,
                                                         const std::function<Status(const Error&)>& in_use) {
  auto wire = make_wire(loop, options);
  const auto busy = [&] { return !wire.ok() && wire.code() == ErrorCode::kBusy; };
  if (!busy()) return wire;
  SHOAL_TRY(in_use(wire.error()));
  for (const TimePoint end = monotonic_now() + limit; busy() && monotonic_now() < end;) {
    std::this_thread::sleep_for(kAskPortAgain);
    wire = make_wire(loop, options);
  }
  return wire;
}

}  // namespace shoal
