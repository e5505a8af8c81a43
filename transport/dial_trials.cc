#include "transport/dial_trials.h"

namespace shoal {
DialTrials::~DialTrials() {
  for (const auto& [connection, trial] : trials_) wire_.disconnect(connection);
}

void DialTrials::begin(const PeerId& peer, const Whereabouts& whereabouts, std::function<void(Status)> done) {
  SHOAL_CHECK(whereabouts.dialable());
  auto trial = std::make_shared<Trial>();
  trial->done = std::move(done);
  for (const std::string& address : whereabouts.addresses) {
    const ConnectionId connection = wire_.connect(peer, address);
    trial->open.push_back(connection);
    trials_.emplace(connection, trial);
  }
}

bool DialTrials::on_up(ConnectionId connection) {
  const auto found = trials_.find(connection);
  if (found == trials_.end()) return false;
  const std::shared_ptr<Trial> trial = found->second;
  for (const ConnectionId one : trial->open) {
    trials_.erase(one);
    wire_.disconnect(one);
  }
  trial->done(Status::success());
  return true;
}

bool DialTrials::on_down(ConnectionId connection, const Error& cause) {
  const auto found = trials_.find(connection);
  if (found == trials_.end()) return false;
  const std::shared_ptr<Trial> trial = found->second;
  trials_.erase(found);
  std::erase(trial->open, connection);
  trial->causes += (trial->causes.empty() ? "" : "; ") + cause.message;
  if (trial->open.empty()) trial->done(make_error(ErrorCode::kUnreachable, trial->causes));
  return true;
}

}  // namespace shoal
