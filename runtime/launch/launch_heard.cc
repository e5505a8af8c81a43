// What the launching process hears: of its links, its authority and its trainer.
#include <algorithm>

#include "common/log.h"
#include "runtime/launch/launch.h"
#include "transport/one_taker.h"
#include "transport/signed_list.h"

namespace shoal {

namespace {
constexpr std::size_t kReasonMax = 400;  // below limits::kTextMax

// Every member's link comes from a private address: then private addresses are all that anybody needs.
bool all_are_within(const MemberList& list, const Transport& transport) {
  for (const PeerId& peer : peers_of(list))
    if (const std::string host = transport.other_host(peer); !host.empty() && !is_private_host(host)) return false;
  return true;
}

bool meets_nobody(const StageMembers& stage) {
  return std::ranges::any_of(stage.members, &Member::serving) &&
         std::ranges::none_of(stage.members, [](const Member& one) { return one.whereabouts.dialable(); });
}

// Somebody comes from outside, who cannot dial those that answered at private addresses alone.
void leave_private_network(Authority& authority) {
  const MemberList list = authority.members();
  for (const StageMembers& stage : list.stages)
    for (const Member& member : stage.members)
      if (member.whereabouts.reach == Reach::kDirect && reach_at(member.whereabouts) == Reach::kLocal)
        authority.on_reach(member.session, {member.whereabouts.addresses, Reach::kLocal});
}
}  // namespace

// ---- transport ----

std::optional<Session> Launch::linked_session(const PeerId& peer) const {
  const auto remote = transport_ ? transport_->remote(peer) : std::nullopt;
  return remote ? std::optional(remote->session) : std::nullopt;
}

void Launch::on_link_up(const Remote& remote) {
  authority_->on_link_up(remote);
  trainer_->on_link_up(remote);
  if (env_.directory != nullptr) send(remote.peer, PeersQuery{});
}

void Launch::on_link_down(const Remote& remote, const Error&) {
  authority_->on_link_down(remote);
  trainer_->on_link_down(remote);
  if (FinalStates* states = end_->states()) states->on_link_down(remote.peer);
  if (texts_) texts_->on_link_down(remote.peer);
  payments_.drop(remote.peer);
}

void Launch::on_message(const Remote& remote, Message message, TransferId transfer, std::uint64_t frame_bytes) {
  const InboundFrames frames{remote.peer, transfer};
  const bool awaited = std::visit(
      OneTaker{[&](const ManifestQuery&) { return send(remote.peer, Manifest{manifest_}), false; },
               [&](const PeersQuery&) {
                 if (env_.directory != nullptr) send(remote.peer, Peers{env_.directory->known(kExchangedMax)});
                 return false;
               },
               [&](const Peers& peers) {
                 if (env_.directory != nullptr) env_.directory->offer(peers.records);
                 return false;
               },
               [&](JoinRequest& request) {
                 if (authority_->knows(remote.session)) return authority_->on_message(remote, message), false;
                 const DialOrigin origin{transport_->other_host(remote.peer), false};
                 return dial_back_->check(remote, request.whereabouts, origin, request), false;
               },
               [&](ReachQuery& query) { return on_reach_query(remote, std::move(query), frames, frame_bytes); },
               [&](const AnyOf<Beat, Leave, Goodbye, Knock, RoundReport, MembersQuery> auto&) {
                 return authority_->on_message(remote, message), false;
               },
               [&](const AnyOf<Gradient, Busy, Have, Gone, NeedKeyFrame, Progress> auto&) {
                 return trainer_->on_hop_message(remote, message), false;
               },
               [&](const Waiting& waiting) {
                 trainer_->on_hop_message(remote, message);
                 return trainer_->on_waiting(remote, waiting), false;
               },
               [&](const CommitAck& ack) {
                 trainer_->on_hop_message(remote, message);
                 return trainer_->on_ack(remote, ack), false;
               },
               [&](const StateOffer& offer) {
                 if (FinalStates* states = end_->states()) states->on_offer(remote.peer, offer);
                 return false;
               },
               [&](const StateQuery& query) {
                 if (first_weights_ && authority_->knows(remote.session)) first_weights_->on_query(remote.peer, query);
                 return false;
               },
               [&](const ChunkQuery& query) {
                 if (first_weights_ && authority_->knows(remote.session))
                   first_weights_->on_chunk_query(remote.peer, query);
                 return false;
               },
               [&](const Chunk& chunk) {
                 FinalStates* states = end_->states();
                 return states != nullptr && states->on_chunk(chunk, frames, frame_bytes);
               },
               [&](const Extended& extended) {
                 return texts_ && texts_->on_extended(remote, extended, transfer, frame_bytes);
               },
               // The links' own, and what the launching process says and nobody says to it.
               [](const AnyOf<Hello, Ping, Pong, ByteCredit, DropTransfer, Forward, Take, Release, Renew, Hint, Commit,
                              JoinAnswer, Members, MembersChange, BeatAck, Fenced, End, Step, RoundOpen, RoundPart,
                              RoundCommit, RoundAbandon, Manifest, Extend, ReachAnswer> auto&) { return false; }},
      message);
  if (transfer != 0 && !awaited) transport_->refuse(remote.peer, transfer);
}

// True: its frames are its payment for a dial. A stranger that looks before it joins pays for none, and gives way to
// joiners.
bool Launch::on_reach_query(const Remote& remote, ReachQuery query, const InboundFrames& frames,
                            std::uint64_t frame_bytes) {
  if (payments_.awaits(remote.peer)) return false;  // one at a time
  const std::string host = transport_->other_host(remote.peer);
  const bool known = authority_->knows(remote.session);
  if (!known && dial_back_->has_line())
    return send(remote.peer, ReachAnswer{Reach::kNone, host, "others are being dialled just now"}), false;
  if (known && frames.transfer != 0 && frame_bytes == kDialPaymentBytes) {
    if (const auto out = payments_.await(frames, std::move(query), env_.loop.now()))
      transport_->refuse(out->peer, out->transfer);
    return true;
  }
  dial_back_->check(remote, query.whereabouts, {.host = host, .paid = false});
  return false;
}

void Launch::on_dialled_back(const DialBack::Verdict& verdict) {
  const auto remote = transport_->remote(verdict.from.peer);
  if (!remote || remote->session != verdict.from.session) return;  // its next session asks for itself
  const std::string host = transport_->other_host(remote->peer);
  Whereabouts found = verdict.found;
  const bool counts = verdict.request || authority_->knows(remote->session);
  if (counts && !host.empty() && !is_private_host(host)) leave_private_network(*authority_);
  if (found.reach == Reach::kLocal && is_private_host(host) && all_are_within(authority_->members(), *transport_))
    found.reach = Reach::kDirect;
  if (verdict.request) {
    if (found.reach == Reach::kNone) {
      const std::string why = verdict.why.substr(0, kReasonMax);
      write({.event = EventKind::kUnreachable, .about = remote->session, .cause = why});
      if (const auto times = said_.due(short_name(remote->peer), env_.loop.now()))
        owner_.on_notice("peer " + short_name(remote->peer) + " cannot be dialled (" + why +
                         "): it takes part over links that it dials" + LogThrottle::text_of(*times));
    }
    JoinRequest request = *verdict.request;
    request.whereabouts = std::move(found);
    return authority_->on_message(*remote, request);
  }
  authority_->on_reach(remote->session, found);
  send(remote->peer, ReachAnswer{found.reach, host, verdict.why.substr(0, kReasonMax)});
}

void Launch::on_frames(const Remote& remote, TransferId transfer, Result<std::vector<Bytes>> frames) {
  if (const auto paid = payments_.take({remote.peer, transfer})) {
    if (frames.ok())
      dial_back_->check(remote, paid->whereabouts, {.host = transport_->other_host(remote.peer), .paid = true});
    return;
  }
  if (texts_ && texts_->on_frames(remote.peer, transfer, frames)) return;
  if (FinalStates* states = end_->states()) states->on_frames({remote.peer, transfer}, std::move(frames));
}

// ---- the authority's port ----

void Launch::send(const PeerId& peer, Message message, std::vector<Bytes> frames) {
  if (const auto sent = transport_->send(peer, std::move(message), std::move(frames)); !sent.ok())
    log_debug("not sent: ", sent.error().message);
}

std::vector<std::uint8_t> Launch::sign(ByteView body) {
  const Signature signature = options_.key.sign(body);
  return {signature.begin(), signature.end()};
}

void Launch::fence(const Session& session) { transport_->fence(session); }

void Launch::on_members(const MemberList& list) {
  // Posted: none of these may call back into the authority.
  later([this, list] {
    transport_->favour(peers_of(list));
    owner_.on_members(list);
    trainer_->on_members(list);
    if (texts_) texts_->on_members(list);
    if (FinalStates* states = end_->states()) states->on_members();
    for (const StageMembers& stage : list.stages) {
      if (!meets_nobody(stage)) continue;
      const std::string which = "stage " + std::to_string(stage.stage.value);
      if (const auto times = said_.due(which, env_.loop.now()))
        owner_.on_notice(which + " has no member that can be dialled: " +
                         (list.relays.empty() ? "its members meet neither each other nor those of other stages that "
                                                "cannot be dialled"
                                              : "its hops to others that cannot be dialled go over relays") +
                         LogThrottle::text_of(*times) +
                         ". HINT: open the ports of one of them, or have one join that can be dialled" +
                         (list.relays.empty() ? "; or launch with --relay RATE or --via" : ""));
    }
    if (had_every_stage_ || book().ended()) return;
    const bool all = std::all_of(list.stages.begin(), list.stages.end(), [](const StageMembers& stage) {
      return std::any_of(stage.members.begin(), stage.members.end(),
                         [](const Member& member) { return member.serving; });
    });
    if (!all || list.stages.size() < options_.config.pipeline.stages) return;
    had_every_stage_ = true;
    owner_.on_notice("every stage has a peer: training begins");
    trainer_->start();
  });
}

void Launch::on_round_commit(const RoundCommit& commit) {
  later([this, commit] { trainer_->on_round_commit(commit); });
}

void Launch::on_round_abandoned(const RoundAbandon&) { ++rounds_abandoned_; }

void Launch::on_restored(const RoundCommit& commit, const RecentCommits::TakenBack& taken) {
  owner_.on_notice("stage " + std::to_string(commit.stage.value) + " went back to version " +
                   std::to_string(commit.back_to->value) + ", called " + std::to_string(commit.version.value) +
                   " from now on: nobody held the version before, and " + std::to_string(taken.entries()) +
                   " contributions that its rounds had secured are lost");
  later([this] { end_->on_restored(); });
}

void Launch::on_session_over(const Session& session, StageId stage, const std::string& why) {
  owner_.on_notice("stage " + std::to_string(stage.value) + ": session " + short_name(session) + " is over (" + why +
                   ")");
  if (announcer_) announcer_->standing().on_session_over(session, stage, env_.loop.now());  // else the log is replayed
  later([this, session, why] { trainer_->on_session_over(session, why); });
}

void Launch::on_slow_log(Duration waited) {
  owner_.on_notice("the disk has not confirmed a write of " + options_.folder + "/authority.log for " +
                   std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(waited).count()) +
                   " ms: the run waits for it. HINT: put --dir on a disk that others use less");
}

void Launch::on_log_failure(const Error& error) { end_->on_log_failure(error); }

// ---- the trainer's owner ----

void Launch::on_step(const Step& step) { authority_->on_step(step); }

void Launch::on_train_line(const TrainLine& line) {
  TrainLine whole = line;
  whole.faults = authority_->tally().faults;
  whole.disk_age = checkpoints_.late();
  owner_.on_train_line(whole);
  if (texts_ && options_.config.validates_after(line.step)) texts_->on_validation(line.step);
  BeatAck status;
  status.run_targets = line.tokens;
  status.run_loss = line.loss;
  status.run_step = line.step;
  authority_->set_status(status);
  announcer_->standing().on_progress(line.tokens, line.loss, line.step, env_.loop.now());
}

void Launch::on_parked(StageId stage, bool parked) {
  if (trainer_->parked() != (parked ? 1u : 0u))
    return;  // said once, when the first one waits and when none does any more
  const std::string name = "stage " + std::to_string(stage.value);
  owner_.on_notice(parked ? "parked: no live peer of " + name
                          : "no microbatch waits for a peer of " + name + " any more");
}

void Launch::on_lost(const CommitBook::Listing& listing) { losses_.add(listing); }

void Launch::on_misconduct(const Session& session, const std::string& what) {
  later([this, session, what] { authority_->on_misconduct(session, what); });
}

void Launch::on_validated(std::uint64_t samples, std::uint64_t of) {
  owner_.on_headway({.what = "validating", .done = samples, .total = of});
}

}  // namespace shoal
