#include "runtime/peer/absence.h"

#include <algorithm>
#include <array>

#include "common/check.h"
#include "common/phase_set.h"

namespace shoal {

namespace {

const PhaseRow<AbsencePhase>& row_of(AbsencePhase phase) {
  using enum AbsencePhase;
  // clang-format off
  static constexpr std::array<PhaseRow<AbsencePhase>, 6> kRows = {{  // in the order of AbsencePhase
      {"here",    {kLeaving, kMoving, kPausing, kEnding}},
      {"leaving", {}},
      {"moving",  {kHere, kLeaving, kPausing, kEnding}},
      {"pausing", {kLeaving, kEnding}},
      {"ending",  {kPaused}},
      {"paused",  {kHere}},
  }};
  // clang-format on
  return kRows.at(static_cast<std::size_t>(phase));
}

}  // namespace

std::string_view name_of(AbsencePhase phase) { return row_of(phase).name; }

bool may_follow(AbsencePhase from, AbsencePhase to) { return row_of(from).next.has(to); }

void Absence::go(AbsencePhase to) { move_phase(phase_, to, row_of); }

// ---- wishes ----
void Absence::leave(TimePoint now) {
  go(AbsencePhase::kLeaving);
  pause_.reset();
  since_ = now;
  until_ = now + kTime;
}

void Absence::move(TimePoint now, StageId to) {
  SHOAL_CHECK(may_move(to));
  go(AbsencePhase::kMoving);
  to_ = to;
  until_ = now + kTime;
}

bool Absence::begin_pause(TimePoint now, const std::string& why, bool counts) {
  resumes_ = false;
  if (pause_) {
    pause_->why = why;
    return false;
  }
  go(counts ? AbsencePhase::kPausing : AbsencePhase::kEnding);
  pause_ = PeerPause{.why = why, .in_order = !counts};
  since_ = now;
  until_ = now + kPauseTime;
  told_last_ = false;
  return true;
}

bool Absence::resume() {
  resumes_ = pause_ && !is(AbsencePhase::kPaused);
  if (!pause_ || resumes_) return false;
  go(AbsencePhase::kHere);
  pause_.reset();
  return true;
}

// ---- the session on its way out ----
Absence::Step Absence::next(TimePoint now, const Facts& facts) {
  SHOAL_CHECK(goes());
  if (is(AbsencePhase::kPausing)) {
    pause_->last_holder = facts.last_holder;
    const bool tell = facts.last_holder && !std::exchange(told_last_, true);
    const bool ask = !facts.asked && (facts.quiet || now >= until_ - kPauseRoundTime);
    return {.tell_last = tell, .ask = ask, .give_up = now >= until_};
  }
  if (facts.last_holder) {
    until_ = now + kTime;  // once another holds the state, what no round secured gets its round
    const bool waited = hurried_ || facts.away || now >= since_ + kHolderTime;
    return {.tell_last = !std::exchange(told_last_, true),
            .give_up = is(AbsencePhase::kLeaving) && facts.on_disk && waited};
  }
  told_last_ = false;
  if (is(AbsencePhase::kMoving) && facts.held_up) until_ = std::max(until_, now + kRoundTime);
  return {.ask = !facts.asked && (facts.quiet || now >= until_ - kRoundTime), .give_up = now >= until_};
}

std::string Absence::text() const {
  SHOAL_CHECK(goes());
  return is(AbsencePhase::kMoving) ? "moving to stage " + std::to_string(to_->value) : std::string(name_of(phase_));
}

std::string Absence::let_go() {
  SHOAL_CHECK(goes());
  if (is(AbsencePhase::kLeaving)) return "left";
  if (is(AbsencePhase::kMoving)) {
    next_ = to_;
    return "it moves";
  }
  pause_->in_order = true;
  return "paused: " + pause_->why;
}

std::string Absence::give_up() {
  SHOAL_CHECK(goes());
  if (is(AbsencePhase::kPausing)) return "paused before a round secured what is here: " + pause_->why;
  if (is(AbsencePhase::kMoving)) next_ = to_;
  if (told_last_)
    return "left as the last holder of its stage's state, which is on the disk; what no round secured is lost";
  return "left after waiting " + std::to_string(static_cast<int>(seconds_of(kTime))) +
         " s; what no round secured is lost";
}

void Absence::session_over(std::uint64_t settled) {
  if (is(AbsencePhase::kPausing)) {
    if (!pause_->in_order) pause_->lost = settled;
    go(AbsencePhase::kEnding);
  } else if (is(AbsencePhase::kMoving)) {
    go(AbsencePhase::kHere);
  }
  told_last_ = false;
  to_.reset();
  cause_.reset();  // of this session: the next one finds out for itself
}

// ---- a pause without a session ----
bool Absence::session_down() {
  go(AbsencePhase::kPaused);
  return resumes_;
}

bool Absence::freed(TimePoint since, TimePoint now) {
  if (!is(AbsencePhase::kPaused) || since != since_) return false;
  pause_->took = std::max(Duration(1), now - since_);
  return true;
}

// ---- where the next session serves ----
void Absence::joined(StageId stage, std::optional<StageId> before) {
  came_from_ = next_ == stage ? before : std::nullopt;
  next_.reset();
}

}  // namespace shoal
