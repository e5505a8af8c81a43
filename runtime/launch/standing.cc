#include "runtime/launch/standing.h"

#include <algorithm>

namespace shoal {
namespace {

MemberRow::Place place_of(const MemberLife& member) {
  if (member.leaving) return MemberRow::Place::kLeaving;
  return member.serving ? MemberRow::Place::kServing : MemberRow::Place::kJoining;
}

std::uint16_t whole_seconds(Duration time) {
  return static_cast<std::uint16_t>(
      std::clamp<std::int64_t>(std::chrono::floor<std::chrono::seconds>(time).count(), 0, UINT16_MAX));
}

}  // namespace

bool Standing::look(Facts facts, TimePoint now, WallTime wall) {
  facts_ = std::move(facts);
  std::erase_if(gone_, [&](const Gone& gone) {
    return now - gone.at > kGoneTold || std::any_of(facts_.members.begin(), facts_.members.end(), [&](const auto& m) {
             return m.session.peer_tag == gone.session.peer_tag;
           });
  });
  Places places;
  for (const MemberLife& member : facts_.members)
    places.emplace_back(member.session.peer_tag, member.stage, place_of(member), member.quiet >= kQuiet);
  for (const Gone& gone : gone_) places.emplace_back(gone.session.peer_tag, gone.stage, MemberRow::Place::kGone, true);
  const auto before = std::tuple(state_, stage_, stranded_);
  decide_state(wall);
  const bool moved = before != std::tuple(state_, stage_, stranded_);
  return std::exchange(places_, places) != places || moved;
}

void Standing::decide_state(WallTime wall) {
  const auto before = std::tuple(state_, stage_, stranded_);
  stage_.reset();
  stranded_ = false;
  const auto find = [&](auto wanted) { return std::find_if(facts_.stages.begin(), facts_.stages.end(), wanted); };
  const auto empty = find([](const Stage& stage) { return stage.serving == 0; });
  const auto cut = find([](const Stage& stage) { return stage.stranded; });
  if (facts_.ended) {
    state_ = RunState::kEnded;
  } else if (facts_.finishing) {
    state_ = RunState::kEnding;
  } else if (empty != facts_.stages.end()) {
    state_ = facts_.begun || empty->secured ? RunState::kParked : RunState::kWaiting;
    stage_ = empty->stage;
  } else if (cut != facts_.stages.end()) {
    state_ = RunState::kParked;
    stage_ = cut->stage;
    stranded_ = true;
  } else {
    state_ = RunState::kTraining;
  }
  if (!since_ || before != std::tuple(state_, stage_, stranded_)) since_ = wall;
}

void Standing::on_progress(std::uint64_t targets, double loss, std::uint64_t step, TimePoint now) {
  loss_ = loss;
  measured_ = step_ > 0;
  step_ = step;
  rate_.note(static_cast<double>(targets), progressed_at_ = now);
}

// A run that stands still comes down to 0.
std::optional<double> Standing::rate(TimePoint now) const {
  if (!measured_) return std::nullopt;
  return now - progressed_at_ < kRateWindow ? rate_.per_second() : 0;
}

void Standing::on_session_over(const Session& session, StageId stage, TimePoint now) {
  std::erase_if(gone_, [&](const Gone& gone) { return gone.session.peer_tag == session.peer_tag; });
  gone_.push_back({session, stage, now});
  if (gone_.size() > kGoneMax) gone_.pop_front();
}

StandingRecord Standing::record(TimePoint now, LaunchFigures figures) const {
  StandingRecord record;
  record.state = state_;
  record.since = since_;
  record.stage = stage_;
  record.stranded = stranded_;
  if (stage_ && !stranded_)
    for (const Stage& stage : facts_.stages)
      if (stage.stage == *stage_)
        for (const Session& session : stage.last_members) record.last.push_back(short_name(session).substr(0, 8));
  figures.step = step_;
  figures.loss = loss_;
  figures.rate = rate(now);
  record.figures = figures;
  for (const MemberLife& member : facts_.members)
    record.peers.push_back({member.session.peer_tag, member.stage, place_of(member), whole_seconds(member.quiet)});
  for (const Gone& gone : gone_)
    record.peers.push_back({gone.session.peer_tag, gone.stage, MemberRow::Place::kGone, whole_seconds(now - gone.at)});
  std::stable_sort(record.peers.begin(), record.peers.end(),
                   [](const MemberRow& a, const MemberRow& b) { return a.stage < b.stage; });
  return record;
}

}  // namespace shoal
