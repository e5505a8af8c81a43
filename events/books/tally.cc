#include "events/books/tally.h"

#include <algorithm>

namespace shoal {

bool Tally::is_new(const EventRecord& r) const {
  switch (r.event) {
    case EventKind::kCommit:
      return !r.microbatch || !committed_.contains(r.microbatch->serial);
    case EventKind::kLost: {
      const auto decided = r.entry_name ? decided_.find(r.entry_name->session) : decided_.end();
      return decided == decided_.end() || !decided->second.lost.contains(r.entry_name->serial);
    }
    case EventKind::kRoundCommit:
    case EventKind::kRestored:
      return !r.stage || !r.version || r.version->value > of_stage(r.stage->value).version;
    default:
      return true;
  }
}

Tally::Stage Tally::of_stage(std::uint16_t stage) const {
  const auto found = stages_.find(stage);
  return found == stages_.end() ? Stage{} : found->second;
}

void Tally::take(const SeenEvent& event) {
  const EventRecord& r = event.record;
  switch (r.event) {
    case EventKind::kIssue:
      if (r.microbatch) issued_.insert(r.microbatch->serial);
      return;
    case EventKind::kCommit:
      if (r.microbatch && committed_.insert(r.microbatch->serial)) targets_ += r.targets.value_or(0);
      return;
    case EventKind::kRoundCommit:
      return take_secured(r);
    case EventKind::kRestored:
      return take_restored(r);
    case EventKind::kLost:
      return take_lost(r);
    case EventKind::kContradiction:
      ++twice_;
      return;
    case EventKind::kSessionOver:
      if (r.about) take_over(*r.about);
      return;
    default:
      return;
  }
}

void Tally::take_secured(const EventRecord& round) {
  if (!round.stage || !round.version || !round.secured) return;
  Stage& stage = stages_[round.stage->value];
  stage.version = round.version->value;
  ++stage.rounds;
  for (const Secured& member : *round.secured) {
    Decided& decided = decided_[member.session];
    for (const std::uint64_t serial : member.serials) {
      if (!decided.secured.insert(serial) || decided.lost.contains(serial))
        ++twice_;
      else
        ++stage.secured;
    }
  }
}

void Tally::take_restored(const EventRecord& restore) {
  if (!restore.stage || !restore.version || !restore.secured) return;
  Stage& stage = stages_[restore.stage->value];
  stage.version = restore.version->value;
  ++stage.restores;
  std::uint64_t taken = 0;
  for (const Secured& member : *restore.secured) taken += member.serials.size();
  stage.taken_back += taken;
  stage.secured -= std::min(stage.secured, taken);
}

void Tally::take_lost(const EventRecord& lost) {
  if (!lost.stage || !lost.entry_name) return;
  Decided& decided = decided_[lost.entry_name->session];
  decided.lost.insert(lost.entry_name->serial);
  ++stages_[lost.stage->value].lost;
  if (decided.secured.contains(lost.entry_name->serial)) ++twice_;
}

// Its losses are told soon behind its end, and no round names it any more.
void Tally::take_over(const Session& session) {
  if (!decided_.contains(session)) return;
  over_.push_back(session);
  if (over_.size() <= kOverKept) return;
  decided_.erase(over_.front());
  over_.pop_front();
}

std::uint64_t Tally::undecided(std::uint16_t stage) const {
  const Stage counts = of_stage(stage);
  const std::uint64_t decided = counts.secured + counts.taken_back + counts.lost;
  return committed() - std::min(committed(), decided);
}

}  // namespace shoal
