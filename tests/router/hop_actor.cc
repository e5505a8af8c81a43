// What every session of the harness has: the product's courier, on links of the world.
#include "common/bytes.h"
#include "hop_world.h"

namespace shoal::hop {

class Actor::Policy final : public RoutingPolicy {
 public:
  Policy(World& world, const Session& self) : world_(world), self_(self), plain_(make_rendezvous_policy()) {}
  std::optional<Session> pick(SampleId sample, std::span<const Candidate> candidates) override {
    if (world_.choose)
      if (const auto chosen = world_.choose(self_, sample, candidates)) return chosen;
    return plain_->pick(sample, candidates);
  }

 private:
  World& world_;
  Session self_;
  std::unique_ptr<RoutingPolicy> plain_;
};

PeerId peer_of(const Session& session) {
  PeerId peer;
  for (std::size_t i = 0; i < sizeof(session.peer_tag); ++i)
    peer.bytes[i] = static_cast<std::uint8_t>(session.peer_tag >> (8 * i));
  return peer;
}

Actor::Actor(World& world, Session self, std::optional<StageId> ahead, std::optional<PeerId> authority)
    : world_(world),
      self_(self),
      neighbours_(*this, self, authority),
      courier_(*this, neighbours_, {ahead, world.options().lease}, std::make_unique<Policy>(world, self)) {}

Actor::~Actor() = default;

bool Actor::hears(const Session& from) {
  const Remote speaker = remote_of(from);
  if (!neighbours_.admits(speaker)) return false;
  heard_[speaker.peer] = world_.now();
  // An older life of the trainer may still speak; its successor's link is the one that stands.
  if (const auto now = world_.session_of(speaker.peer); now == from) courier_.on_link_up(speaker, world_.now());
  return true;
}

// ---- HopOwner ----

std::vector<Bytes> Actor::frames_of(const Session&, const Forward&, bool) { return std::vector<Bytes>(1); }

void Actor::on_branch(const MicrobatchId&, const Session&, const Lease& lease, BranchEnd end) {
  const bool fits = end == BranchEnd::kSent ? frames_out_.insert(lease).second : frames_out_.erase(lease) == 1;
  if (!fits) world_.violate("a branch that ended twice, or without having been sent");
}

void Actor::on_parked(const MicrobatchId&, StageId, bool) {}

void Actor::write(const EventRecord& event) {
  world_.note(self_, name_of(event.event), *event.microbatch, event.cause);
}

// ---- Links ----

void Actor::learn(const PeerId&, Whereabouts) {}  // members of the world have no addresses

Result<TransferId> Actor::send(const PeerId& peer, Message message, std::vector<Bytes> frames) {
  const auto session = world_.session_of(peer);
  if (!session) return make_error(ErrorCode::kUnreachable, "nobody has this key");
  if (const auto* commit = std::get_if<Commit>(&message))
    for (const CommitItem& item : commit->items) world_.note(self_, "commit_sent", item.microbatch, "");
  return world_.send(self_, *session, std::move(message), !frames.empty());
}

void Actor::drop(const PeerId&, TransferId transfer) { world_.drop(transfer); }
void Actor::refuse(const PeerId&, TransferId transfer) { world_.refuse(transfer); }

std::optional<Remote> Actor::remote(const PeerId& peer) const {
  const auto session = world_.session_of(peer);
  if (!session) return std::nullopt;
  return remote_of(*session);
}

LinkStats Actor::stats(const PeerId& peer) const {
  LinkStats link;
  link.up = world_.session_of(peer).has_value();
  if (const auto at = heard_.find(peer); at != heard_.end()) link.heard = at->second;
  return link;
}

}  // namespace shoal::hop
