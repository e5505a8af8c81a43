#include "events/books/run_view.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/hex.h"

namespace shoal {
namespace {

constexpr double kDelayFollows = 0.2;  // share of the newest step in the delay that is shown

}  // namespace

// A resumed process repeats what it found in its logs.
bool RunView::is_new(const EventRecord& r) const {
  if (r.event == EventKind::kSessionOver) return !r.about || !peers_.is_over(*r.about);
  return tally_.is_new(r);
}

void RunView::take(const SeenEvent& told) {
  if (lines_ == 0 && told.run) facts_.key = hex_of(*told.run).substr(0, 16);
  const bool commits = told.record.event == EventKind::kCommit;
  if (told.record.stage && told.record.stage->value >= kStagesMax) return;
  if (commits && (!told.record.microbatch || !told.record.entries || told.record.entries->size() > kStagesMax)) return;
  SeenEvent event = told;
  event.time = std::clamp(told.time, 0.0, kTimeMax);
  ++lines_;
  if (begun_ == 0) begun_ = second_ = event.time;
  advance(event.time);
  const EventRecord& r = event.record;
  if (event.of_trainer) {
    if (!is_new(r)) return;
    if (commits) take_commit(r, event.time);
    if (commits) end_hop(event.session, *r.microbatch, 0, event.time);
    take_round(r, event.time);
    const std::uint64_t faults = story_.faults();
    tally_.take(event);
    peers_.take(event);
    const SeenPeer* const about = r.about ? peers_.find(*r.about) : nullptr;
    story_.take(event, about == nullptr ? 0 : about->worked);
    if (story_.faults() > faults) history_.on_fault(event.time);
    take_figures(r, event.time);
  } else {
    peers_.take(event);
    if (r.event == EventKind::kStepped || r.event == EventKind::kAnchor) take_delays(r);
  }
  if (r.event == EventKind::kBytes) take_bytes(event);
  take_hop(event);
}

void RunView::take_figures(const EventRecord& r, double time) {
  switch (r.event) {
    case EventKind::kStart:
      ended_ = false;
      return;
    case EventKind::kEnd:
      ended_ = true;
      end_cause_ = r.cause;
      return;
    case EventKind::kIssue:
      if (r.microbatch && under_way_.size() < kUnderWayMax) under_way_.emplace(r.microbatch->serial, time);
      return;
    case EventKind::kTrain:
      if (!r.loss || !r.step) return;
      loss_.step = r.step->value;
      loss_.newest = *r.loss;
      if (!loss_.first) loss_.first = *r.loss;
      if (r.targets) {
        history_.on_loss(time, *r.loss, *r.targets > told_targets_ ? *r.targets - told_targets_ : 1);
        told_targets_ = std::max(told_targets_, *r.targets);
      }
      return;
    case EventKind::kEstimate:
    case EventKind::kValidation:
      if (!r.loss) return;
      loss_.validation = *r.loss;
      loss_.validated_at_end = r.event == EventKind::kValidation;
      history_.on_validation(time, *r.loss);
      return;
    default:
      return;
  }
}

void RunView::take_word(const MemberWord& word, double time) {
  advance(time);
  const bool heard_before = std::exchange(word_, word).heard;
  if (word.heard && !heard_before) rate_ = RecentRate(kRateWindow);  // what was done meanwhile has none
  if (word.run_targets > told_targets_) {
    const std::uint64_t added = heard_before && told_targets_ > 0 ? word.run_targets - told_targets_ : 0;
    history_.on_targets(now_, added);
    second_targets_ += static_cast<double>(added);
    if (std::isfinite(word.run_loss) && word.run_loss > 0)
      take_figures({.event = EventKind::kTrain,
                    .step = StepId(word.run_step),
                    .loss = word.run_loss,
                    .targets = word.run_targets},
                   now_);
    told_targets_ = word.run_targets;
  }
  if (word.session != Session{}) peers_.set_work(word.session, word.figures.accepted, word.figures.accepted_targets);
}

void RunView::take_commit(const EventRecord& commit, double time) {
  const std::uint64_t targets = commit.targets.value_or(0);
  history_.on_targets(time, targets);
  second_targets_ += static_cast<double>(targets);
  const auto issued = under_way_.find(commit.microbatch->serial);
  if (issued == under_way_.end()) return;
  path_spans_.add(std::max(0.0, time - issued->second));
  under_way_.erase(issued);
}

void RunView::take_round(const EventRecord& r, double time) {
  if (!r.stage) return;
  const std::uint16_t stage = r.stage->value;
  if (r.event == EventKind::kRoundOpen) {
    open_rounds_[stage] = {r.round ? r.round->value : 0, r.members.value_or(0), time};
  } else if (r.event == EventKind::kRoundAbandon) {
    open_rounds_.erase(stage);
  } else if (r.event == EventKind::kRoundCommit && r.version) {
    history_.on_round(time);
    const auto open = open_rounds_.find(stage);
    if (open == open_rounds_.end()) return;
    round_spans_.add(std::max(0.0, time - open->second.since));
    open_rounds_.erase(open);
  }
}

void RunView::take_bytes(const SeenEvent& event) {
  const EventRecord& r = event.record;
  const std::uint64_t sent = r.sent.value_or(0), received = r.received.value_or(0);
  bytes_.sent += sent;
  bytes_.received += received;
  bytes_.fp32 += r.fp32.value_or(0);
  bytes_.payload += r.payload.value_or(0);
  bytes_.deltas += r.bases.deltas.value_or(0);
  bytes_.keys += r.bases.keys.value_or(0);
  bytes_.rounds += r.rounds.sent.value_or(0);
  bytes_.round_us += r.rounds.device_us.value_or(0);
  bytes_.up.add(static_cast<double>(sent), event.time);
  bytes_.down.add(static_cast<double>(received), event.time);
  bytes_.of_peers = bytes_.of_peers || !event.of_trainer;
}

void RunView::take_hop(const SeenEvent& event) {
  const EventRecord& r = event.record;
  if (!r.microbatch) return;
  if (r.event == EventKind::kForwardSent) {
    hops_[{r.microbatch->serial, event.session}] = event.time;
    if (hops_.size() > kUnderWayMax) hops_.erase(hops_.begin());
  } else if ((r.event == EventKind::kCounted || r.event == EventKind::kLate) && r.stage) {
    end_hop(event.session, *r.microbatch, static_cast<std::uint16_t>(r.stage->value + 1), event.time);
  }
}

void RunView::end_hop(const Session& holder, const MicrobatchId& microbatch, std::uint16_t stage, double time) {
  const auto hop = hops_.find({microbatch.serial, holder});
  if (hop == hops_.end()) return;
  hop_spans_[stage].add(std::max(0.0, time - hop->second));
  hops_.erase(hop);
}

void RunView::take_delays(const EventRecord& step) {
  if (step.delays)
    for (std::size_t delay = 0; delay < std::min<std::size_t>(step.delays->size(), DelayHistogram::kBins); ++delay)
      if ((*step.delays)[delay] > 0) delays_.add(static_cast<double>(delay), (*step.delays)[delay]);
  if (!step.delay_mean || !std::isfinite(*step.delay_mean)) return;
  seen_delay_ = seen_delay_ ? *seen_delay_ + kDelayFollows * (*step.delay_mean - *seen_delay_) : *step.delay_mean;
}

void RunView::end_second() {
  story_.on_second(second_, second_targets_);
  second_targets_ = 0;
}

void RunView::advance(double time) {
  time = std::clamp(time, 0.0, kTimeMax);
  now_ = std::max(now_, time);
  if (begun_ == 0 || now_ - second_ < 1) return;
  end_second();
  second_ += 1;
  // A pause that is longer than the story remembers has its last seconds alone.
  second_ = std::max(second_, std::floor(now_) - static_cast<double>(FaultStory::kBinsKept));
  while (now_ - second_ >= 1) {
    end_second();
    second_ += 1;
  }
  const std::uint64_t done = facts_.of_peer() ? told_targets_ : tally_.committed_targets();
  if (!facts_.of_peer() || (word_.heard && done > 0))
    rate_.note(static_cast<double>(done), TimePoint(from_seconds(now_)));
  peers_.tick(now_);
}

std::uint16_t RunView::stages() const {
  std::uint16_t stages = facts_.stages;
  for (const auto& [stage, counts] : tally_.stages()) stages = std::max<std::uint16_t>(stages, stage + 1);
  for (const auto& [session, row] : peers_.rows()) stages = std::max<std::uint16_t>(stages, row.stage + 1);
  return stages;
}

std::uint64_t RunView::targets() const { return std::max(told_targets_, tally_.committed_targets()); }

std::optional<double> RunView::left_s() const {
  if (ended_ || !knows_rate() || facts_.end_targets == 0 || targets() >= facts_.end_targets) return std::nullopt;
  const auto left = rate_.time_for(static_cast<double>(facts_.end_targets - targets()));
  return left ? std::optional(seconds_of(*left)) : std::nullopt;
}

std::optional<double> RunView::delay() const { return told_delay_ ? told_delay_ : seen_delay_; }

}  // namespace shoal
