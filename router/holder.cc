#include "router/holder.h"

#include <utility>

#include "common/log.h"

namespace shoal {

Holder::Holder(HolderPort& port, Links& links, HolderOptions options, std::unique_ptr<RoutingPolicy> policy)
    : port_(port),
      links_(links),
      options_(std::move(options)),
      policy_(std::move(policy)),
      courier_(*this, *policy_, rates_, options_.self) {}

// ---- what comes in ----

bool Holder::admits(const Remote& from) const {
  return from.peer == options_.authority || roster_.peer_of(from.session) == from.peer;
}

bool Holder::on_message(const Remote& from, const Message& message, TransferId transfer, TimePoint now) {
  const Session& session = from.session;
  courier_.on_heard(session, now);
  if (const auto* m = std::get_if<Gradient>(&message))
    on_gradient(from, *m, transfer, now);
  else if (const auto* m = std::get_if<Busy>(&message))
    courier_.on_busy(session, *m, now);
  else if (const auto* m = std::get_if<Have>(&message))
    courier_.on_have(session, *m, now);
  else if (const auto* m = std::get_if<Gone>(&message))
    courier_.on_gone(session, *m, now);
  else if (const auto* m = std::get_if<NeedKeyFrame>(&message))
    courier_.on_need_key_frame(session, *m, now);
  else if (const auto* m = std::get_if<Progress>(&message))
    courier_.on_progress(session, *m, now);
  else if (const auto* m = std::get_if<Waiting>(&message))
    courier_.on_waiting(session, *m, now);
  else
    return false;
  return true;
}

void Holder::on_gradient(const Remote& from, const Gradient& message, TransferId transfer, TimePoint now) {
  if (!courier_.wants(from.session, message, now)) {
    if (transfer != 0) links_.refuse(from.peer, transfer);
    return;
  }
  if (transfer == 0)
    courier_.on_gradient(from.session, message, {}, now);
  else
    gradients_[{from.peer, transfer}] = message;
}

bool Holder::on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames, TimePoint now) {
  courier_.on_heard(from.session, now);
  const auto it = gradients_.find({from.peer, transfer});
  if (it == gradients_.end()) return false;
  const Gradient message = std::move(it->second);
  gradients_.erase(it);
  if (frames.ok())
    courier_.on_gradient(from.session, message, std::move(*frames), now);
  else
    courier_.on_gone(from.session, Gone{message.lease}, now);
  return true;
}

void Holder::on_link_up(const Remote& remote, TimePoint now) {
  if (remote.peer == options_.authority) authority_session_ = remote.session;
  roster_.note_up(remote.session);
  if (options_.ahead && roster_.stage_of(remote.session) == options_.ahead) courier_.on_reached(now);
  courier_.on_heard(remote.session, now);
}

Session Holder::on_link_down(const Remote& remote, TimePoint now) {
  Session session = remote.session;
  if (session == Session{})
    if (const auto member = roster_.session_of(remote.peer)) session = *member;
  std::erase_if(gradients_, [&](const auto& item) { return item.first.peer == remote.peer; });
  roster_.note_down(session, now);
  courier_.on_link_down(session, now);
  return session;
}

Roster::Change Holder::on_members(const MemberList& list, TimePoint now) {
  Roster::Change change = roster_.update(list);
  const auto learn = [this](const Member& member) {
    if (member.session != options_.self && !member.addresses.empty()) links_.learn(member.peer, member.addresses);
  };
  for (const Member& member : change.added) learn(member);
  if (now >= next_learning_) {  // all of them: a transport with too many peers forgets idle ones
    next_learning_ = now + kLearningPeriod;
    for (const StageMembers& stage : list.stages)
      for (const Member& member : stage.members) learn(member);
  }
  for (const Session& session : change.over) courier_.on_session_over(session, now);
  return change;
}

void Holder::tick(TimePoint now) {
  courier_.tick(now);
  for (const Low& low : port_.lows()) courier_.forget_below(low.trainer, low.low);
  if (now >= next_renewal_) {
    next_renewal_ = now + options_.lease / 6;
    renew();
  }
}

// Nobody but a hop that chooses asks for the rates of links: while none does, nothing is measured.
void Holder::measure_links(const std::vector<Session>& sessions, TimePoint now) {
  if (now < next_measure_) return;
  next_measure_ = now + kMeasurePeriod;
  for (const Session& session : sessions)
    if (const auto peer = roster_.peer_of(session)) {
      const LinkStats link = links_.stats(*peer);
      if (link.up) rates_.set_link(session, link.bytes_per_second, link.rtt);
      rates_.set_heard(session, link.up ? std::optional(link.heard) : std::nullopt);
    }
}

void Holder::renew() {
  const std::vector<Low> lows = port_.lows();
  auto renewals = courier_.renewals();
  if (!lows.empty())
    for (const StageMembers& stage : roster_.list().stages)
      for (const Member& member : stage.members) renewals.try_emplace(member.session);
  for (auto& [session, leases] : renewals) {
    Renew message;
    message.leases = std::move(leases);
    message.lows = lows;
    send(session, std::move(message));
  }
}

void Holder::note_run(std::uint64_t targets, double loss) {
  if (targets <= run_targets_) return;
  run_targets_ = targets;
  run_loss_ = loss;
}

// ---- what goes out ----

std::optional<PeerId> Holder::peer_of(const Session& session) const {
  if (const auto peer = roster_.peer_of(session)) return peer;
  return authority_session_ == session ? options_.authority : std::nullopt;
}

Result<TransferId> Holder::send_to(const Session& to, Message message, std::vector<Bytes> frames) {
  const auto peer = peer_of(to);
  if (!peer) return make_error(ErrorCode::kUnreachable, "session " + short_name(to) + " is no member");
  const auto remote = links_.remote(*peer);
  if (remote && remote->session != to) return make_error(ErrorCode::kStale, "session " + short_name(to) + " is over");
  return links_.send(*peer, std::move(message), std::move(frames));
}

void Holder::send(const Session& to, Message message) {
  if (const auto sent = send_to(to, std::move(message), {}); !sent.ok()) log_debug("not sent: ", sent.error().message);
}

// ---- CourierPort ----

std::vector<Session> Holder::candidates(StageId stage, TimePoint now) {
  auto result = roster_.candidates(stage, now);
  std::erase(result, options_.self);
  if (stage == options_.ahead) measure_links(result, now);
  return result;
}

Result<TransferId> Holder::send_forward(const Session& to, Forward message, bool key) {
  auto frames = port_.frames_of(to, message, key);
  return send_to(to, std::move(message), std::move(frames));
}

void Holder::on_branch(const MicrobatchId& microbatch, const Session& to, const Lease& lease, BranchEnd end) {
  port_.on_branch(microbatch, to, lease, end);
}

void Holder::drop_transfer(const Session& to, TransferId transfer) {
  if (const auto peer = roster_.peer_of(to)) links_.drop(*peer, transfer);
}

void Holder::on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes> frames) {
  port_.on_won(microbatch, gradient, std::move(frames));
}

void Holder::on_parked(const MicrobatchId& microbatch, StageId stage, bool parked) {
  port_.on_parked(microbatch, stage, parked);
}

}  // namespace shoal
