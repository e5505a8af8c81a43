#include "runtime/trainer/dial_back.h"

#include <algorithm>

namespace shoal {

DialBack::DialBack(Transport& transport, EventLoop& loop, std::function<void(const Verdict&)> decided)
    : transport_(transport), loop_(loop), decided_(std::move(decided)) {}

void DialBack::check(const Remote& from, const JoinRequest& request) {
  Trial* trial = trial_of(from.peer);
  if (trial == nullptr || trial->under_way) return;
  if (loop_.now() < trial->next_at) {
    // The repeat of a request that was answered yes, or a new session: nothing is dialled for it.
    if (trial->failures > 0 || trial->addresses != request.addresses) return;
    return loop_.post(lifetime_.guard([this, from, request] { decided_({from, request, Status::success(), 0}); }));
  }
  if (under_way_ >= kAtOnce) return;
  ++under_way_;
  trial->under_way = true;
  trial->addresses = request.addresses;
  transport_.try_addresses(from.peer, request.addresses, lifetime_.guard([this, from, request](const Status& reached) {
    on_outcome(from, request, reached);
  }));
}

// Who is under way keeps its place; of the others the oldest gives way.
DialBack::Trial* DialBack::trial_of(const PeerId& peer) {
  if (const auto found = trials_.find(peer); found != trials_.end()) return &found->second;
  if (trials_.size() >= kRememberedMax) {
    const auto oldest = std::min_element(trials_.begin(), trials_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second.under_way, a.second.next_at) < std::pair(b.second.under_way, b.second.next_at);
    });
    if (oldest->second.under_way || loop_.now() < oldest->second.next_at) return nullptr;
    trials_.erase(oldest);
  }
  return &trials_[peer];
}

void DialBack::on_outcome(const Remote& from, const JoinRequest& request, const Status& reached) {
  --under_way_;
  Trial& trial = trials_.at(from.peer);
  trial.under_way = false;
  trial.failures = reached.ok() ? 0 : trial.failures + 1;
  trial.next_at = loop_.now() + kPause;
  decided_({from, request, reached, trial.failures});
}

}  // namespace shoal
