#include "events/books/fault_story.h"

#include <algorithm>

#include "events/lost_causes.h"
#include "events/session_end.h"

namespace shoal {
namespace {

constexpr std::size_t kSecondsForRate = 30, kSecondsMin = 5;
constexpr double kSilentMax = 60;  // seconds before its end is told, from which a session is thought to be felt

std::string restored_words(const EventRecord& r) {
  std::uint64_t taken = 0;
  if (r.secured)
    for (const Secured& member : *r.secured) taken += member.serials.size();
  return "from version " + std::to_string(r.version ? r.version->value - 1 : 0) + " to " +
         std::to_string(r.back_to ? r.back_to->value : 0) + "; " + std::to_string(taken) +
         " contributions are taken back: " + r.cause;
}

}  // namespace

Tale& FaultStory::tell(Tale tale) {
  if (tale.kind == Tale::Kind::kFault) ++faults_;
  tale.words.resize(std::min(tale.words.size(), kWordBytesMax));
  tales_.push_back(std::move(tale));
  if (tales_.size() > kToldMax) {
    tales_.pop_front();
    ++forgotten_;
  }
  return tales_.back();
}

void FaultStory::take(const SeenEvent& event, double worked) {
  const EventRecord& r = event.record;
  const auto stage = r.stage ? std::optional(r.stage->value) : std::nullopt;
  const auto fault = [&](std::string what, std::string words) {
    tell({.at = event.time,
          .what = std::move(what),
          .stage = stage,
          .session = r.about.value_or(Session{}),
          .words = std::move(words)});
  };
  if (r.event == EventKind::kSessionOver) return tell_over(r, event.time, worked);
  if (r.event == EventKind::kLost) return name_lost(r);
  if (r.event == EventKind::kMember) return tell_member(r, event.time);
  if (r.event == EventKind::kUnreachable) return fault("unreachable", r.cause);
  if (r.event == EventKind::kRestored) return fault("went back", restored_words(r));
  if (r.event == EventKind::kContradiction) return fault("contradiction", r.cause);
  if (r.event == EventKind::kRoundAbandon)
    fault("round", "round " + std::to_string(r.round ? r.round->value : 0) + " was abandoned: " + r.cause);
}

void FaultStory::tell_over(const EventRecord& over, double time, double worked) {
  if (!over.about || !over.stage) return;
  const bool fault = is_fault(over.cause);
  Tale& tale = tell({.kind = fault ? Tale::Kind::kFault : Tale::Kind::kChange,
                     .at = time,
                     .what = fault ? "lost" : "left",
                     .stage = over.stage->value,
                     .session = *over.about,
                     .words = over.cause});
  tale.felt_from = worked > 0 ? std::clamp(worked, time - kSilentMax, time) : time;
  tale.before = fault ? rate_before(tale.felt_from) : 0;
  tale.felt = tale.before > 0;
}

void FaultStory::name_lost(const EventRecord& lost) {
  if (!lost.entry_name || !lost.microbatch || is_lost_by_end(lost.cause)) return;
  for (auto tale = tales_.rbegin(); tale != tales_.rend(); ++tale) {
    if (tale->session != lost.entry_name->session || (tale->what != "lost" && tale->what != "left")) continue;
    ++tale->lost;
    if (tale->named.size() < kNamedMax) tale->named.push_back(lost.microbatch->serial);
    return;
  }
}

void FaultStory::tell_member(const EventRecord& member, double time) {
  if (!member.about || !member.stage) return;
  std::string what;
  if (member.state == "joined") what = "joined";
  if (member.state == "asked to move") what = "moves";
  if (member.state == "ahead" || member.state == "newer list") what = "word";
  if (what.empty()) return;
  tell({.kind = Tale::Kind::kChange,
        .at = time,
        .what = std::move(what),
        .stage = member.stage->value,
        .session = *member.about,
        .words = member.cause});
}

// The median second of those before, as far as no fault was felt in them.
double FaultStory::rate_before(double time) const {
  double felt_from = time;
  for (const Tale& tale : tales_)
    if (tale.felt) felt_from = std::min(felt_from, tale.felt_from);
  std::vector<double> rates;
  for (auto second = seconds_.rbegin(); second != seconds_.rend() && rates.size() < kSecondsForRate; ++second)
    if (second->begin + 1 <= felt_from) rates.push_back(second->targets);
  if (rates.size() < kSecondsMin) return 0;
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return *middle;
}

void FaultStory::judge(Tale& tale) const {
  int in_a_row = 0;
  for (const Second& second : seconds_) {
    if (second.begin < tale.felt_from) continue;
    in_a_row = second.targets >= kBack * tale.before ? in_a_row + 1 : 0;
    if (in_a_row < kBackBins) continue;
    tale.felt = false;
    tale.felt_s = std::max(0.0, second.begin + 1 - kBackBins - tale.felt_from);
    return;
  }
  if (seconds_.size() == kBinsKept && seconds_.front().begin > tale.felt_from)
    tale.felt = false;  // nobody can tell any more
}

void FaultStory::on_second(double begin, double targets) {
  seconds_.push_back({begin, targets});
  if (seconds_.size() > kBinsKept) seconds_.pop_front();
  for (Tale& tale : tales_)
    if (tale.felt) judge(tale);
}

}  // namespace shoal
