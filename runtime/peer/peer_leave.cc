// How a peer goes, and what it and the directory tell each other.
#include "runtime/peer/peer.h"
#include "runtime/plan/stage_memory.h"

namespace shoal {

void Peer::leave() {
  if (state_.is(PeerPhase::kOver)) return;
  if (state_.is(PeerPhase::kRestarting)) return finish("left; the session was over already", std::nullopt);
  if (leaving_.wanted() || !life_ || !life_->stage_peer) return finish("left at once", std::nullopt);
  leaving_.begin(env_.loop.now());
  life_->stage_peer->leave();
  life_->membership->beat_now();
  announce();
  owner_.on_notice("leaving: no new microbatches, " + life_->stage_peer->waiting_for() +
                   " to settle (again to go at once)");
  check_leaving();
}

void Peer::check_leaving() {
  Membership& membership = *life_->membership;
  if (authority_is_linked()) state_.because(leaving_reason());
  const Leaving::Step step =
      leaving_.next(env_.loop.now(), {.last_holder = membership.last_holder() && held_state().has_value(),
                                      .quiet = life_->stage_peer->quiet(),
                                      .asked = state_.is(PeerPhase::kLeaving)});
  if (step.tell_last)
    owner_.on_notice("this is the last holder of stage " + std::to_string(spec_->stage.value) +
                     "'s state: it goes with us; again to leave all the same");
  if (step.ask) {
    state_.move(PeerPhase::kLeaving, state_.reason());
    membership.leave(status().settled_targets > 0);
  }
  if (!step.give_up) return;
  finish("left after waiting " + std::to_string(static_cast<int>(seconds_of(Leaving::kTime))) +
             " s; what no round secured is lost",
         std::nullopt);
}

// What is waited for.
std::string Peer::leaving_reason() const {
  if (life_->membership->last_holder()) return "leaving: waiting for another peer to take the stage's state";
  if (!state_.is(PeerPhase::kLeaving)) return "leaving: waiting for " + life_->stage_peer->waiting_for();
  const std::uint64_t settled = status().settled_targets;
  if (settled == 0) return "leaving: waiting for the authority's goodbye";
  return "leaving: waiting for a round that secures " + std::to_string(settled) + " targets";
}

// ---- the directory ----
Announcing::Facts Peer::facts() const {
  const StagePeerStatus now = status();
  const Traffic traffic = traffic_.total(session_traffic());
  return {.session = life_->session,
          .stage = spec_->stage,
          .version = now.version,
          .rate = now.rate,
          .queue_seconds = now.queue_ms / 1000.0,
          .serving =
              life_->stage_peer && life_->stage_peer->serving() && !leaving_.wanted() && !state_.is(PeerPhase::kOver),
          .device = options_.device,
          .memory_bytes = stage_bytes(*spec_) + now.live * entry_bytes(*spec_, config_->data.sequences),
          .rtt = life_->transport->stats(authority()).rtt,
          .sent = traffic.sent,
          .received = traffic.received};
}

void Peer::announce() {
  if (spec_) announcing_.announce(facts());
}

void Peer::exchange_peers() {
  if (announcing_.take_exchange()) send_to_authority(PeersQuery{});
}

}  // namespace shoal
