#pragma once
// A wire that can die in the middle of a run, as with its process: from then on nothing comes in and nothing goes out.
// Dies by itself when a given message comes, before anybody hears of it.
//
// Thread: loop only, but die(), which any thread may call.
#include <atomic>
#include <functional>
#include <memory>

#include "transport/envelope.h"
#include "transport/wire.h"

namespace shoal {

class MortalWire final : public Wire, private Wire::Listener {
 public:
  // `strikes` is asked about every control message until the wire is dead.
  MortalWire(std::unique_ptr<Wire> inner, std::function<bool(const Message&)> strikes)
      : inner_(std::move(inner)), strikes_(std::move(strikes)) {}

  void die() { dead_ = true; }

  void set_listener(Wire::Listener* listener) override {
    listener_ = listener;
    inner_->set_listener(this);
  }
  ConnectionId connect(const PeerId& peer, const Address& address) override { return inner_->connect(peer, address); }
  Status send(ConnectionId connection, Lane lane, Bytes message) override {
    return dead_ ? Status() : inner_->send(connection, lane, std::move(message));
  }
  void disconnect(ConnectionId connection) override { inner_->disconnect(connection); }
  Status admit_only(const std::vector<PeerId>& peers) override { return inner_->admit_only(peers); }
  std::uint64_t bytes_sent() const override { return inner_->bytes_sent(); }

 private:
  void on_up(ConnectionId connection, const PeerId& peer, bool dialled) override {
    if (!dead_) listener_->on_up(connection, peer, dialled);
  }
  void on_bytes(ConnectionId connection, Lane lane, Bytes message) override {
    if (!dead_ && strikes_ && lane == Lane::kControl) {
      const auto envelope = parse_envelope(message);
      if (envelope.ok() && strikes_(envelope->message)) die();
    }
    if (!dead_) listener_->on_bytes(connection, lane, std::move(message));
  }
  void on_writable(ConnectionId connection, Lane lane) override {
    if (!dead_) listener_->on_writable(connection, lane);
  }
  void on_down(ConnectionId connection, const Error& cause) override {
    if (!dead_) listener_->on_down(connection, cause);
  }

  std::unique_ptr<Wire> inner_;
  std::function<bool(const Message&)> strikes_;
  Wire::Listener* listener_ = nullptr;
  std::atomic<bool> dead_{false};
};

}  // namespace shoal
