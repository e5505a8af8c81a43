#include "runtime/peer/authority_link.h"

#include <utility>

namespace shoal {

namespace {
std::string whole_seconds(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}
}  // namespace

void AuthorityLink::resume(TimePoint now) {
  started_ = now;
  if (away_since_) away_since_ = now;
}

bool AuthorityLink::take_dial(TimePoint now) {
  if (now < next_dial_) return false;
  next_dial_ = now + kDialPeriod;
  return true;
}

bool AuthorityLink::take_look_up(TimePoint now) {
  if (looking_up_ || now < next_look_up_ || now - started_ < kLookUpPeriod) return false;
  looking_up_ = true;
  next_look_up_ = now + kLookUpPeriod;
  return true;
}

bool AuthorityLink::up() {
  ever_up_ = true;
  refusals_ = 0;
  const bool was_away = std::exchange(away_since_, std::nullopt).has_value();
  return was_away && absence_told_;
}

void AuthorityLink::down(TimePoint now) {
  if (!ever_up_ || away_since_) return;
  away_since_ = now;
  absence_told_ = false;
}

bool AuthorityLink::refused_for_good(ErrorCode cause) {
  // Once it was there, another program may have its port for a while: the state is kept as long as was said. Only the
  // run's own process goes as far as our key, and a key that is not in its list has no use for the state.
  const bool refused = cause == ErrorCode::kNotAdmitted || (cause == ErrorCode::kRefused && !ever_up_);
  refusals_ = refused ? refusals_ + 1 : 0;
  return refusals_ >= kRefusalsMax || cause == ErrorCode::kVersion || cause == ErrorCode::kForeign;
}

Status AuthorityLink::check(TimePoint now, const std::string& reason) const {
  if (!ever_up_ && now - started_ > patience_.first)
    return make_error(ErrorCode::kUnreachable,
                      "no answer from the authority for " + whole_seconds(patience_.first) + ": " + reason +
                          ". HINT: is `shoal launch` running, and can this machine reach the ticket's addresses? "
                          "--patience SECONDS waits longer");
  if (away_since_ && now - *away_since_ > patience_.absence)
    return make_error(ErrorCode::kUnreachable,
                      "the run's first process was away for " + whole_seconds(patience_.absence) + ": giving up (" +
                          reason +
                          "). HINT: `shoal launch --resume` brings the run back, then join again; --wait SECONDS keeps "
                          "the state longer");
  return Status::success();
}

std::optional<std::string> AuthorityLink::absence_line(TimePoint now, const std::string& reason) {
  if (!away_since_ || absence_told_ || now - *away_since_ < kAbsenceTold) return std::nullopt;
  absence_told_ = true;
  return "the run's first process is away: the state is kept here, waiting up to " + whole_seconds(patience_.absence) +
         " for it (" + reason + ")";
}

}  // namespace shoal
