#include "sim/sim_wire.h"

#include <utility>

#include "transport/limits.h"

namespace shoal {

SimWire::SimWire(SimNetwork& network, SimHost& host, const PeerId& self, Address address, std::set<PeerId> admitted)
    : network_(network), host_(host), self_(self), address_(std::move(address)), admitted_(std::move(admitted)) {}

SimWire::~SimWire() {
  state_->listener = nullptr;
  network_.detach(*this);
}

ConnectionId SimWire::connect(const PeerId& peer, const Address& address) {
  const ConnectionId connection = network_.connect(*this, peer, address);
  state_->open.insert(connection);
  return connection;
}

Status SimWire::send(ConnectionId connection, Lane lane, Bytes message) {
  const std::size_t limit = lane == Lane::kControl ? limits::kControlBytesMax : limits::kChunkBytesMax + 1024;
  if (message.size() > limit) {
    return make_error(ErrorCode::kTooLarge,
                      "message of " + std::to_string(message.size()) + " bytes, limit " + std::to_string(limit));
  }
  const std::size_t bytes = message.size();
  SHOAL_TRY(network_.send(*this, connection, lane, std::move(message)));
  bytes_sent_ += bytes;
  return Status::success();
}

void SimWire::disconnect(ConnectionId connection) {
  state_->open.erase(connection);
  network_.disconnect(*this, connection);
}

Status SimWire::admit_only(const std::vector<PeerId>& peers) {
  SHOAL_CHECK(!peers.empty());
  admitted_ = {peers.begin(), peers.end()};
  network_.expel_strangers(*this);
  return Status::success();
}

void SimWire::notify(ConnectionId connection, std::function<void(Wire::Listener&)> call) {
  host_.loop().post([state = state_, connection, call = std::move(call)] {
    if (state->listener && state->open.contains(connection)) call(*state->listener);
  });
}

void SimWire::notify_down(ConnectionId connection, const Error& cause) {
  host_.loop().post([state = state_, connection, cause] {
    if (state->open.erase(connection) > 0 && state->listener) state->listener->on_down(connection, cause);
  });
}

}  // namespace shoal
