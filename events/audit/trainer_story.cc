#include "events/audit/trainer_story.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "events/lost_causes.h"

namespace shoal {
namespace {

constexpr std::string_view kOverCause = "session over";  // of a path that came in behind its session's end
constexpr std::string_view kGoneCause = "gone";          // a peer's answer to COMMIT

std::uint64_t mix_of(const std::vector<EntryName>& path) {
  std::uint64_t mix = path.size();
  for (const EntryName& entry : path) mix = mix64(mix, std::hash<EntryName>{}(entry));
  return mix;
}

}  // namespace

void TrainerStory::begin_life() {
  line_loss_ = 0;
  line_targets_ = last_step_ = 0;
}

void TrainerStory::take(const ReadEvent& e) {
  switch (e.event) {
    case EventKind::kIssue:
      return take_issue(e);
    case EventKind::kCommit:
      return take_commit(e);
    case EventKind::kMerged:
      return take_merged(e);
    case EventKind::kLost:
      return take_lost(e);
    case EventKind::kTrain:
      return take_train(e);
    case EventKind::kContradiction:
      return findings_.violation("the trainer itself says that entry ", *e.entry_name,
                                 " was lost and a round names it");
    case EventKind::kValidation:
      return take_validation(e);
    default:
      return;
  }
}

void TrainerStory::take_issue(const ReadEvent& e) {
  MicrobatchFact& fact = books_.microbatches[*e.microbatch];
  if (fact.commit_life != 0) findings_.violation("microbatch ", *e.microbatch, " was issued behind its commit");
  if (fact.issue_life == books_.life.number) findings_.violation("microbatch ", *e.microbatch, " was issued twice");
  const std::uint64_t issue = mix64(mix64(e.sample->value, *e.epoch), e.step->value) | 1;
  if (fact.issue != 0 && fact.issue != issue)
    findings_.violation("microbatch ", *e.microbatch, " was issued again as another sample, epoch or step");
  fact.issue = issue;
  fact.issue_life = books_.life.number;
  fact.step = e.step->value;
  std::uint64_t& next = books_.trainers[e.microbatch->trainer].next;
  if (e.microbatch->serial > next)
    findings_.untold("microbatch ", *e.microbatch, " was issued, serial ", next, " in front of it never was");
  next = std::max(next, e.microbatch->serial + 1);
}

void TrainerStory::take_commit(const ReadEvent& e) {
  MicrobatchFact& fact = books_.microbatches[*e.microbatch];
  const std::uint64_t path = mix_of(*e.entries), told = mix64(std::bit_cast<std::uint64_t>(*e.loss), *e.targets);
  const std::uint16_t before = std::exchange(fact.commit_life, books_.life.number);
  if (before != 0) {
    if (before == books_.life.number) findings_.violation("microbatch ", *e.microbatch, " was committed twice");
    if (fact.path != path)
      findings_.violation("microbatch ", *e.microbatch, " was committed along two paths");
    else if (fact.told != told)
      findings_.violation("microbatch ", *e.microbatch, " was committed again with another loss or targets");
    return;
  }
  if (fact.issue_life == 0) findings_.untold("microbatch ", *e.microbatch, " was committed and not issued before");
  fact.path = path;
  fact.told = told;
  fact.targets = *e.targets;
  fact.stages = static_cast<std::uint16_t>(std::min<std::size_t>(e.entries->size(), 0xffff));
  targets_ += *e.targets;
  line_targets_ += *e.targets;
  line_loss_ += *e.loss * static_cast<double>(*e.targets);
  take_path(e);
}

void TrainerStory::take_path(const ReadEvent& e) {
  if (stages_ == 0) stages_ = e.entries->size();
  if (e.entries->size() != stages_ || stages_ == 0)
    findings_.violation("the path of ", *e.microbatch, " has ", e.entries->size(), " stages, others have ", stages_);
  for (std::size_t i = 0; i < e.entries->size(); ++i) {
    const auto stage = static_cast<std::uint16_t>(i);
    EntryFact& fact = books_.entries[(*e.entries)[i]];
    if (fact.committed) {
      findings_.violation("entry ", (*e.entries)[i], " won for two microbatches or stages");
      continue;
    }
    if (fact.times > 0) findings_.untold("entry ", (*e.entries)[i], " was secured before it was committed");
    if (fact.lost && (fact.microbatch != *e.microbatch || fact.stage != stage))
      findings_.violation("entry ", (*e.entries)[i], " is lost as that of another microbatch or stage");
    fact.committed = true;
    fact.microbatch = *e.microbatch;
    fact.stage = stage;
    SessionFact& session = books_.sessions[(*e.entries)[i].session];
    session.named = true;
    if (session.stage && *session.stage != stage)
      findings_.violation("entry ", (*e.entries)[i], " won at stage ", stage, ", its session serves stage ",
                          *session.stage);
    books_.stages[stage].committed += count_tag(*e.microbatch);
  }
}

void TrainerStory::take_merged(const ReadEvent& e) {
  EntryFact& fact = books_.entries[*e.entry_name];
  if (fact.times == 0)
    findings_.untold("entry ", *e.entry_name, " was marked merged, no committed round names it before");
  if (fact.committed && (fact.microbatch != *e.microbatch || fact.stage != e.stage->value))
    findings_.violation("entry ", *e.entry_name, " was marked merged for another microbatch or stage");
  if (!fact.committed) findings_.untold("entry ", *e.entry_name, " was marked merged, it was not committed");
  if (fact.merged_life == books_.life.number) findings_.violation("entry ", *e.entry_name, " was marked merged twice");
  fact.merged_life = books_.life.number;
}

// A trainer that came back may say it again; the cause may be told in other words then, the entry may not differ.
void TrainerStory::take_lost(const ReadEvent& e) {
  EntryFact& fact = books_.entries[*e.entry_name];
  const auto stage = e.stage->value;
  if (fact.lost_life == books_.life.number) findings_.violation("entry ", *e.entry_name, " was lost twice");
  if ((fact.committed || fact.lost) && (fact.microbatch != *e.microbatch || fact.stage != stage))
    findings_.violation("entry ", *e.entry_name, " is lost as that of another microbatch or stage");
  fact.lost_life = books_.life.number;
  if (fact.lost) return;
  fact.lost = true;
  fact.lost_as_gone = e.cause == kGoneCause;
  fact.lost_as_late = e.cause == kLostLate;
  if (!fact.committed) {
    fact.microbatch = *e.microbatch;
    fact.stage = stage;
  }
  books_.stages[stage].lost += count_tag(*e.microbatch);
  const bool by_end = is_lost_by_end(e.cause);
  end_cause_seen_ = end_cause_seen_ || by_end;
  if (by_end || fact.lost_as_gone || fact.lost_as_late) return;
  const SessionFact& session = books_.sessions[e.entry_name->session];
  if (!session.over || (e.cause != kOverCause && e.cause != session.over_cause))
    findings_.untold("entry ", *e.entry_name, " is lost (", e.cause, "), its session was not over by that");
}

void TrainerStory::take_train(const ReadEvent& e) {
  const bool known = !books_.trainer_gap;  // what the sums are over
  if (known && *e.targets != targets_) findings_.violation("says ", *e.targets, " targets, committed were ", targets_);
  if (known && last_step_ != 0 && e.step->value != last_step_ + 1)
    findings_.violation("train line ", *e.step, " follows ", last_step_);
  // A life that goes on from its log says commits again that are in no train line of it.
  const double mean = line_loss_ / static_cast<double>(line_targets_);
  if (known && !books_.life.resumed && line_targets_ > 0 && std::isfinite(mean) &&
      !(std::abs(*e.loss - mean) <= 1e-9 * (1 + std::abs(mean))))
    findings_.violation("says loss ", *e.loss, ", that of the commits since the line before is ", mean);
  if (!books_.life.resumed && last_step_ == 0 && e.step->value != 1)
    findings_.violation("the first train line is ", *e.step);
  last_step_ = e.step->value;
  line_loss_ = 0;
  line_targets_ = 0;
}

// Behind the last rounds: what was evaluated is what the run made.
void TrainerStory::take_validation(const ReadEvent& e) {
  if (std::exchange(validation_life_, books_.life.number) == books_.life.number)
    findings_.violation("validated twice in one life");
  if (stages_ != 0 && e.versions->size() != stages_)
    findings_.violation("validated anchors of ", e.versions->size(), " stages, the run has ", stages_);
  for (std::size_t i = 0; i < e.versions->size(); ++i) {
    const auto stage = books_.stages.find(static_cast<std::uint16_t>(i));
    const std::uint64_t newest = stage == books_.stages.end() ? 0 : stage->second.newest();
    if ((*e.versions)[i].value != newest)
      findings_.untold("validated version ", (*e.versions)[i], " of stage ", i, ", its last round made ", newest);
  }
}

void TrainerStory::finish() {
  if (end_cause_seen_ && !books_.ended)
    findings_.untold("entries are lost because the run ended, and nothing says that it did");
  for (auto& [name, fact] : books_.entries) {
    if (!fact.lost || fact.committed) continue;
    const auto microbatch = books_.microbatches.find(fact.microbatch);
    const bool known = microbatch != books_.microbatches.end() && microbatch->second.commit_life != 0;
    if (known)
      findings_.violation("entry ", name, " of microbatch ", fact.microbatch, " is lost, another was committed");
    else
      findings_.untold("entry ", name, " of microbatch ", fact.microbatch, " is lost, it was never committed");
  }
  if (!books_.ended || !books_.trainer_tells_merged) return;
  for (const auto& [name, fact] : books_.entries)
    if (fact.committed && fact.times > 0 && !fact.taken_back && !fact.lost && fact.merged_life == 0)
      findings_.untold("entry ", name, " was secured and never marked merged");
}

}  // namespace shoal
