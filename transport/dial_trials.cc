#include "transport/dial_trials.h"

#include <algorithm>

#include "transport/limits.h"

namespace shoal {
std::vector<std::string> usable_addresses(std::vector<std::string> addresses) {
  std::erase_if(addresses, [](const std::string& address) {
    return address.empty() || address.size() > limits::kAddressBytesMax;
  });
  if (addresses.size() > limits::kAddressesMax) addresses.resize(limits::kAddressesMax);
  return addresses;
}

DialTrials::~DialTrials() {
  for (const auto& [connection, trial] : trials_) wire_.disconnect(connection);
}

void DialTrials::begin(const PeerId& peer, const std::vector<std::string>& addresses,
                       std::function<void(Status)> done) {
  SHOAL_CHECK(!addresses.empty());
  auto trial = std::make_shared<Trial>();
  trial->done = std::move(done);
  for (const std::string& address : addresses) {
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
