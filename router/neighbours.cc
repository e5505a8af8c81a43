#include "router/neighbours.h"

#include <algorithm>
#include <utility>

#include "common/log.h"

namespace shoal {

// ---- who they are ----

Roster::Change Neighbours::on_members(const MemberList& list, TimePoint now) {
  Roster::Change change = roster_.update(list);
  const bool only_dialled = reverse_.only_dials();
  reverse_.on_members(roster_.list());
  for (const Member& member : change.added) learn(member.session);
  // All of them: a transport with too many peers forgets idle ones.
  if (now >= next_learning_ || only_dialled != reverse_.only_dials()) {
    next_learning_ = now + kLearningPeriod;
    for (const StageMembers& stage : list.stages)
      for (const Member& member : stage.members) learn(member.session);
  }
  return change;
}

void Neighbours::learn(const Session& session) {
  const Whereabouts* const on_list = roster_.whereabouts_of(session);
  if (on_list == nullptr || session == self_) return;
  Whereabouts whereabouts = *on_list;
  if (!reverse_.by_relay(session)) whereabouts.homes.clear();
  links_.learn(*roster_.peer_of(session), std::move(whereabouts));
}

bool Neighbours::admits(const Remote& from) const {
  return from.peer == authority_ || roster_.peer_of(from.session) == from.peer;
}

std::optional<PeerId> Neighbours::peer_of(const Session& session) const {
  if (const auto peer = roster_.peer_of(session)) return peer;
  return authority_session_ == session ? authority_ : std::nullopt;
}

// ---- their links ----

void Neighbours::on_link_up(const Remote& remote) {
  if (remote.peer == authority_) authority_session_ = remote.session;
  health_.came_up(remote.session);
  if (reverse_.forget(remote.session)) learn(remote.session);
}

void Neighbours::on_knock(const Session& from) {
  const auto peer = roster_.peer_of(from);
  if (!peer) return;
  if (!links_.reaches(*peer)) {
    reverse_.knocked_by(from);
    learn(from);
  }
  links_.dial(*peer);
}

Session Neighbours::on_link_down(const Remote& remote, TimePoint now) {
  Session session = remote.session;
  // A dial that failed has lost what waited for it, whoever it went to.
  if (session == Session{} && remote.peer == authority_) session = authority_session_.value_or(session);
  if (session == Session{})
    if (const auto member = roster_.session_of(remote.peer)) {
      session = *member;
      if (reverse_.callable())
        reverse_.knock(session);  // it dials, or calls us
      else if (reverse_.forget(session))
        learn(session);
    }
  if (roster_.stage_of(session)) health_.went_down(session, now);
  return session;
}

Result<TransferId> Neighbours::send_to(const Session& to, Message message, std::vector<Bytes> frames) {
  const auto peer = peer_of(to);
  if (!peer) return make_error(ErrorCode::kUnreachable, "session " + short_name(to) + " is no member");
  const auto remote = links_.remote(*peer);
  if (remote && remote->session != to) return make_error(ErrorCode::kStale, "session " + short_name(to) + " is over");
  reach(*peer);
  return links_.send(*peer, std::move(message), std::move(frames));
}

void Neighbours::send(const Session& to, Message message) {
  if (const auto sent = send_to(to, std::move(message), {}); !sent.ok()) log_debug("not sent: ", sent.error().message);
}

bool Neighbours::reach(const PeerId& peer) {
  if (links_.reaches(peer)) return true;
  const auto session = roster_.session_of(peer);
  if (!session) return false;
  reverse_.knock(*session);
  if (!reverse_.by_relay(*session)) return false;
  learn(*session);
  return links_.reaches(peer);
}

std::uint64_t Neighbours::ahead_of(const Session& to, TransferId transfer) const {
  const auto peer = roster_.peer_of(to);
  return peer ? links_.ahead_of(*peer, transfer) : 0;
}

bool Neighbours::leaves(const Session& to, TransferId transfer, std::uint64_t& ahead) const {
  if (transfer == 0 || ahead == 0) return false;
  const std::uint64_t before = std::exchange(ahead, ahead_of(to, transfer));
  return ahead < before;
}

void Neighbours::drop(const Session& to, TransferId transfer) {
  if (const auto peer = roster_.peer_of(to)) links_.drop(*peer, transfer);
}

// ---- how they are ----

std::vector<Session> Neighbours::candidates(StageId stage, TimePoint now) {
  std::vector<Session> result, reached, unopened;
  bool room = false;
  for (const Session& session : roster_.serving(stage)) {
    if (const auto peer = roster_.peer_of(session); !peer || !reach(*peer)) continue;
    reached.push_back(session);
    const auto why = health_.why_not(session, now);
    if (why == WhyNot::kDown || why == WhyNot::kUnfit) continue;
    const bool relayed = links_.needs_relay(*roster_.peer_of(session));
    rates_.set_relayed(session, relayed);
    const bool opened = !relayed || links_.remote(*roster_.peer_of(session));
    (opened ? result : unopened).push_back(session);
    room |= opened && !health_.without_room(session, now);
  }
  // Where fewer than half can be met without a relay, these cannot take their share of what all holders send: of u that
  // nobody dials at both stages, 2u - 1 of the hops have two such ends.
  const bool few = result.size() < unopened.size();
  if (unopened.empty() || (room && !few)) {
    full_since_.erase(stage);
  } else if (result.empty()) {
    result.push_back(first_of(unopened));  // what is sent there opens its link
  } else if (TimePoint& since = full_since_.try_emplace(stage, now).first->second; now - since >= kFullTime) {
    links_.dial(*roster_.peer_of(first_of(unopened)));
    since = now;
  }
  if (result.empty()) result = std::move(reached);
  measure_links(result, now);
  return result;
}

Session Neighbours::first_of(const std::vector<Session>& unopened) const {
  return *std::ranges::min_element(unopened, {}, [this](const Session& session) {
    return mix64(std::hash<Session>{}(self_), std::hash<Session>{}(session));
  });
}

void Neighbours::measure_links(const std::vector<Session>& sessions, TimePoint now) {
  if (now < next_measure_) return;
  next_measure_ = now + kMeasurePeriod;
  for (const Session& session : sessions)
    if (const auto peer = roster_.peer_of(session)) {
      const LinkStats link = links_.stats(*peer);
      if (link.up) rates_.set_link(session, link.bytes_per_second, link.rtt);
      health_.set_link_heard(session, link.up ? std::optional(link.heard) : std::nullopt, now,
                             rates_.in_flight(session) > 0);
    }
}

double Neighbours::line_rate(const Session& session) const {
  const auto peer = roster_.peer_of(session);
  const LinkStats link = peer ? links_.stats(*peer) : LinkStats{};
  return link.up ? link.bytes_per_second : 0;
}

double Neighbours::slowest_line(StageId stage) const {
  double slowest = 0;
  for (const Session& session : roster_.serving(stage)) {
    const double rate = line_rate(session);
    if (rate > 0) slowest = slowest > 0 ? std::min(slowest, rate) : rate;
  }
  return slowest;
}

double Neighbours::line_seconds(const Session& session, std::uint64_t bytes) const {
  const double rate = line_rate(session);
  return rate > 0 ? static_cast<double>(bytes) / rate : 0;
}

void Neighbours::unfit(const Session& session, TimePoint until) {
  if (roster_.stage_of(session)) health_.unfit(session, until);
}

bool Neighbours::is_last(const Session& session, TimePoint now) const {
  const auto stage = roster_.stage_of(session);
  if (!stage) return false;
  const std::vector<Session>& serving = roster_.serving(*stage);
  return std::none_of(serving.begin(), serving.end(), [&](const Session& other) {
    const auto why = health_.why_not(other, now);
    const auto peer = roster_.peer_of(other);
    return other != session && why != WhyNot::kDown && why != WhyNot::kUnfit && peer && links_.reaches(*peer);
  });
}

void Neighbours::forget(const Session& session) {
  rates_.forget(session);
  health_.forget(session);
}

}  // namespace shoal
