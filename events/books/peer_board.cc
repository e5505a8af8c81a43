#include "events/books/peer_board.h"

#include <cmath>

#include "common/peer_name.h"
#include "events/session_end.h"

namespace shoal {
namespace {

constexpr double kStill = 1e-3;  // a second: an edge below it is forgotten

TimePoint point_of(double time) { return TimePoint(from_seconds(time)); }

std::optional<SeenState> state_named(std::string_view state) {
  for (const SeenState one : {SeenState::kServing, SeenState::kNotServing, SeenState::kLeaving})
    if (name_of(one) == state) return one;
  if (state == "joined") return SeenState::kJoining;
  return std::nullopt;
}

}  // namespace

std::string_view name_of(SeenState state) {
  switch (state) {
    case SeenState::kJoining:
      return "joining";
    case SeenState::kServing:
      return "serving";
    case SeenState::kNotServing:
      return "not serving";
    case SeenState::kLeaving:
      return "leaving";
    case SeenState::kLeft:
      return "left";
    case SeenState::kLost:
      break;
  }
  return "lost";
}

void Flow::add(double amount, double time) {
  rate_ = per_second(time) + amount / kRemembers;
  at_ = std::max(at_, time);
}

double Flow::per_second(double time) const { return rate_ * std::exp(-std::max(0.0, time - at_) / kRemembers); }

void DoneWork::add(const DoneWork& more) {
  microbatches += more.microbatches;
  targets += more.targets;
  lost += more.lost;
  sent += more.sent;
  received += more.received;
}

void PeerBoard::take(const SeenEvent& event) {
  const EventRecord& r = event.record;
  if (!event.of_trainer) {
    if (r.event == EventKind::kBytes) take_bytes(event);
    return;
  }
  switch (r.event) {
    case EventKind::kMember:
      return take_member(r, event.time);
    case EventKind::kSessionOver:
      return take_over(r, event.time);
    case EventKind::kCommit:
      return take_path(r, event.time);
    case EventKind::kLost:
      if (r.entry_name) add(r.entry_name->session, {.lost = 1});
      return;
    default:
      return;
  }
}

SeenPeer* PeerBoard::find(const Session& session) {
  const auto found = rows_.find(session);
  return found == rows_.end() ? nullptr : &found->second;
}

PeerWork PeerBoard::find_work(const Session& session) const {
  const auto found = work_.find(session.peer_tag);
  return found == work_.end() ? PeerWork{} : found->second;
}

SeenPeer& PeerBoard::row_of(const Session& session, std::uint16_t stage, double time) {
  const auto [place, made] = rows_.try_emplace(session);
  SeenPeer& row = place->second;
  if (made) {
    row.session = session;
    row.since = time;
    ++work_of(session).sessions;
  }
  row.stage = stage;
  return row;
}

PeerWork& PeerBoard::work_of(const Session& session) {
  const auto found = work_.find(session.peer_tag);
  if (found != work_.end()) return found->second;
  return work_.size() < kPeersMax ? work_[session.peer_tag] : others_;
}

SeenPeer* PeerBoard::add(const Session& session, const DoneWork& more) {
  work_of(session).add(more);
  SeenPeer* const row = find(session);
  if (row != nullptr) row->add(more);
  return row;
}

void PeerBoard::take_member(const EventRecord& member, double time) {
  if (!member.about || !member.stage || is_over(*member.about)) return;
  const auto state = state_named(member.state);
  if (!state) {  // it is asked to move, or is ahead, or its reach was found
    SeenPeer* const row = find(*member.about);
    if (row != nullptr && member.state == "reach") row->reach = member.cause.substr(0, kReasonBytesMax);
    if (row != nullptr && member.state == "asked to move") {
      row->asked_to_move = true;
      row->reason = member.cause.substr(0, kReasonBytesMax);
    }
    return;
  }
  SeenPeer& row = row_of(*member.about, member.stage->value, time);
  if (const auto work = work_.find(member.about->peer_tag); work != work_.end() && *state == SeenState::kJoining)
    work->second.name = member.peer_name.substr(0, kPeerNameBytesMax);
  row.state = *state;
  row.reason = member.cause.substr(0, kReasonBytesMax);
}

void PeerBoard::take_over(const EventRecord& over, double time) {
  if (!over.about || !over.stage) return;
  if (over_.size() < kOverMax) over_.insert(*over.about);
  SeenPeer* const row = find(*over.about);
  if (row == nullptr) return;  // one of an earlier life of the launching process
  row->state = is_fault(over.cause) ? SeenState::kLost : SeenState::kLeft;
  row->reason = over.cause.substr(0, kReasonBytesMax);
  row->over = time;
  row->quiet.reset();
}

void PeerBoard::take_path(const EventRecord& commit, double time) {
  if (!commit.entries) return;
  const std::uint64_t targets = commit.targets.value_or(0);
  Session holder{};
  for (std::size_t i = 0; i < commit.entries->size(); ++i) {
    const Session& session = (*commit.entries)[i].session;
    edges_[{holder, session}].add(static_cast<double>(targets), time);
    holder = session;
    if (find(session) == nullptr && !is_over(session))  // it joined an earlier life of the launching process
      row_of(session, static_cast<std::uint16_t>(i), time).state = SeenState::kServing;
    if (SeenPeer* const row = add(session, {.microbatches = 1, .targets = targets})) row->worked = time;
  }
}

void PeerBoard::take_bytes(const SeenEvent& event) {
  const std::uint64_t sent = event.record.sent.value_or(0), received = event.record.received.value_or(0);
  SeenPeer* const row = add(event.session, {.sent = sent, .received = received});
  if (row == nullptr) return;
  row->up.add(static_cast<double>(sent), event.time);
  row->down.add(static_cast<double>(received), event.time);
}

void PeerBoard::set_quiet(const Session& session, double seconds) {
  if (SeenPeer* const row = find(session); row != nullptr && row->lives()) row->quiet = seconds;
}

void PeerBoard::set_work(const Session& session, std::uint64_t microbatches, std::uint64_t targets) {
  SeenPeer* const row = find(session);
  if (row == nullptr || microbatches < row->microbatches || targets < row->targets) return;
  add(session, {.microbatches = microbatches - row->microbatches, .targets = targets - row->targets});
}

void PeerBoard::tick(double time) {
  for (auto& [session, row] : rows_) row.rate.note(static_cast<double>(row.targets), point_of(time));
  std::erase_if(rows_, [time](const auto& row) { return row.second.over > 0 && time - row.second.over > kFades; });
  std::erase_if(edges_, [time](const auto& edge) { return edge.second.per_second(time) < kStill; });
}

}  // namespace shoal
