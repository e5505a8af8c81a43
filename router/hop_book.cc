#include "router/hop_book.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace shoal {

Hop::Child* Hop::child_of(const Lease& lease) {
  for (Child& child : children)
    if (child.lease == lease) return &child;
  return nullptr;
}

Hop::Child* Hop::child_of(const Session& session) {
  for (Child& child : children)
    if (child.session == session) return &child;
  return nullptr;
}

// ---- hops ----
Hop& HopBook::open(HopSpec spec, TimePoint now) {
  const MicrobatchId id = spec.microbatch;
  SHOAL_CHECK(!hops_.contains(id));
  active_.insert(id);
  Hop& hop = hops_[id];
  hop.spec = std::move(spec);
  hop.answered = now;
  return hop;
}

const Hop* HopBook::find(const MicrobatchId& microbatch) const {
  const auto it = hops_.find(microbatch);
  return it == hops_.end() ? nullptr : &it->second;
}

Hop* HopBook::find(const MicrobatchId& microbatch) { return const_cast<Hop*>(std::as_const(*this).find(microbatch)); }

Hop* HopBook::find(const Lease& lease, const Session& from) {
  const auto it = by_lease_.find(lease);
  if (it == by_lease_.end()) return nullptr;
  Hop* const hop = find(it->second);
  SHOAL_CHECK(hop != nullptr);
  const Hop::Child* child = hop->child_of(lease);
  return child != nullptr && child->session == from ? hop : nullptr;
}

void HopBook::commit(const MicrobatchId& microbatch) {
  Hop* const hop = find(microbatch);
  if (hop == nullptr || hop->committed) return;
  hop->committed = true;
  active_.erase(microbatch);
  if (hop->won)
    if (Hop::Child* winner = hop->child_of(*hop->won)) {
      end_branch(microbatch, *winner, BranchEnd::kSettled);
      give_back(*winner);
    }
  if (hop->won && !hop->below.empty()) {
    Commit message;
    message.items.push_back({microbatch, hop->below});
    neighbours_.send(hop->won_session, std::move(message));
  }
}

void HopBook::drop(const MicrobatchId& microbatch, Drop how) {
  Hop* const hop = find(microbatch);
  if (hop == nullptr) return;
  set_parked(*hop, false);
  while (!hop->children.empty()) drop_child(*hop, hop->children.back().lease, how);
  active_.erase(microbatch);
  hops_.erase(microbatch);
}

void HopBook::forget_below(const Low& low) {
  const MicrobatchId end{low.trainer, low.low};
  std::vector<MicrobatchId> old;
  for (auto it = hops_.lower_bound({low.trainer, 0}); it != hops_.end() && it->first < end; ++it)
    if (it->second.committed) old.push_back(it->first);
  for (const MicrobatchId& id : old) drop(id, Drop::kUnsaid);
}

void HopBook::set_parked(Hop& hop, bool parked) {
  if (hop.parked == parked) return;
  hop.parked = parked;
  parked ? ++parked_ : --parked_;
  owner_.on_parked(hop.spec.microbatch, hop.spec.to, parked);
}

// ---- claims ----
Hop::Child& HopBook::claim(Hop& hop, const Session& peer, bool take, TimePoint now) {
  Hop::Child& child = hop.children.emplace_back();
  child.lease = {neighbours_.self(), next_lease_++};
  child.session = peer;
  child.since = child.asked = now;
  child.take = take;
  hop.tried.try_emplace(peer);
  by_lease_.emplace(child.lease, hop.spec.microbatch);
  return child;
}

void HopBook::frames_sent(const MicrobatchId& microbatch, Hop::Child& child, TransferId transfer) {
  child.transfer = transfer;
  child.ahead = neighbours_.ahead_of(child.session, transfer);
  if (!std::exchange(child.frames_out, true))
    owner_.on_branch(microbatch, child.session, child.lease, BranchEnd::kSent);
}

void HopBook::end_branch(const MicrobatchId& microbatch, Hop::Child& child, BranchEnd end) {
  if (std::exchange(child.frames_out, false)) owner_.on_branch(microbatch, child.session, child.lease, end);
}

void HopBook::give_back(Hop::Child& child) {
  if (std::exchange(child.holds, false)) neighbours_.health().ended(child.session);
}

void HopBook::drop_child(Hop& hop, const Lease& lease, Drop how) {
  const auto it = std::ranges::find(hop.children, lease, &Hop::Child::lease);
  if (it == hop.children.end()) return;
  end_branch(hop.spec.microbatch, *it, BranchEnd::kAborted);
  give_back(*it);
  const Hop::Child child = *it;
  hop.children.erase(it);  // `lease` may have been a part of it
  by_lease_.erase(child.lease);
  if (!(hop.won && *hop.won == child.lease)) neighbours_.rates().ended(child.session);
  if (how == Drop::kUnsaid) return;
  if (child.transfer != 0) neighbours_.drop(child.session, child.transfer);
  release(child.session, child.lease);
}

void HopBook::make_room(Hop& hop, std::size_t limit) {
  while (hop.children.size() >= limit) drop_child(hop, hop.children.front().lease, Drop::kReleased);
}

// ---- look ----
bool HopBook::waiting(const MicrobatchId& microbatch) const {
  const Hop* const hop = find(microbatch);
  return hop != nullptr && !hop->won;
}

bool HopBook::stranded(const MicrobatchId& microbatch) const {
  const Hop* const hop = find(microbatch);
  return hop != nullptr && !hop->won && hop->stranded;
}

std::map<Session, std::vector<Renewal>> HopBook::renewals() const {
  std::map<Session, std::vector<Renewal>> result;
  for (const MicrobatchId& id : active_) {
    const Hop& hop = hops_.at(id);
    for (const Hop::Child& child : hop.children) result[child.session].push_back({child.lease, !hop.won.has_value()});
  }
  return result;
}

std::optional<Session> HopBook::won_by(const MicrobatchId& microbatch) const {
  const Hop* const hop = find(microbatch);
  return hop != nullptr && hop->won ? std::optional(hop->won_session) : std::nullopt;
}

}  // namespace shoal
