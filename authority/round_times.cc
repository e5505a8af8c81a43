#include "authority/round_times.h"

#include <algorithm>

#include "authority/patience.h"
#include "sync/round_budget.h"

namespace shoal {

std::uint64_t RoundTimes::payload() const {
  return stage_.value < options_.payload_bytes.size() ? options_.payload_bytes[stage_.value] : 0;
}

Duration RoundTimes::of_bytes(std::size_t members) const {
  if (options_.round_budget > Duration(0)) return options_.round_budget;
  return round_budget(payload(), members, slowest_rate_);
}

Duration RoundTimes::of_jobs() const {
  constexpr int kTurns = 3;  // to contribute, to prepare, and one for what was measured on other work
  Duration longest{};
  for (const auto& [session, member] : book_.of(stage_))
    longest = std::max(longest, detector_.believed(*member, member->jobs.longest_any));
  return std::min(kTurns * longest, kTurns * kPatienceMax);
}

Duration RoundTimes::to_contribute(Duration budget) const {
  return options_.round_budget > Duration(0) ? budget : kRoundBudgetFloor + of_jobs();
}

// Twice the time of a stage's whole state at the rate that rounds are planned for while none is known: a joiner's line
// may be slower than any that a round went over.
Duration RoundTimes::to_serve() const {
  constexpr std::size_t kTwo = 2;  // each of so many sends in a round as much as it brings
  const Duration of_state = round_budget((1 + traits_of(options_.rule).shared_arrays) * payload(), kTwo, 0);
  return std::max(to_fetch(), of_state + options_.membership) + detector_.start_patience();
}

void RoundTimes::note_round(std::size_t members, Duration took) {
  const double seconds = seconds_of(took);
  if (stage_.value >= options_.payload_bytes.size() || members < 2 || seconds <= 0) return;
  const double rate = static_cast<double>(round_bytes(payload(), members)) / seconds;
  slowest_rate_ = slowest_rate_ > 0 ? std::min(slowest_rate_, rate) : rate;
}

}  // namespace shoal
