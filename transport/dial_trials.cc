#include "transport/dial_trials.h"

namespace shoal {
DialTrials::~DialTrials() {
  for (const auto& [connection, trial] : trials_) wire_.disconnect(connection);
}

void DialTrials::begin(const PeerId& peer, const Whereabouts& whereabouts, AddressTried tried) {
  SHOAL_CHECK(whereabouts.dialable());
  const auto shared = std::make_shared<const AddressTried>(std::move(tried));
  for (const std::string& address : whereabouts.addresses)
    trials_.emplace(wire_.connect(peer, address), Trial{address, shared});
}

bool DialTrials::on_up(ConnectionId connection) {
  auto trial = trials_.extract(connection);
  if (trial.empty()) return false;
  wire_.disconnect(connection);
  (*trial.mapped().tried)(trial.mapped().address, Status::success());
  return true;
}

bool DialTrials::on_down(ConnectionId connection, const Error& cause) {
  auto trial = trials_.extract(connection);
  if (trial.empty()) return false;
  (*trial.mapped().tried)(trial.mapped().address, cause);
  return true;
}

}  // namespace shoal
