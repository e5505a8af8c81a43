// A peer's windows, rounds and versions.
#include <algorithm>
#include <cmath>

#include "events/audit/peer_story.h"
#include "events/delay.h"

namespace shoal {

void PeerStory::take_stepped(const ReadEvent& e) {
  device_did();
  if (e.entries->empty()) findings_.violation("an inner step without an entry");
  std::uint64_t targets = 0;
  bool known = tells_entries() && !gap_ && !books_.trainer_gap;
  for (const EntryName& entry : *e.entries) {
    if (!tells_entries()) {
      if (entry.session != session_ || books_.winner(entry) == nullptr)
        findings_.absent(books_.trainer_gap && entry.session == session_, "entry ", entry,
                         " is in an inner step, the trainer did not commit it for session ", session_);
      continue;
    }
    const auto found = entry.session == session_ ? open_.find(entry.serial) : open_.end();
    if (found == open_.end()) {
      known = false;
      findings_.absent(gap_ && entry.session == session_, "entry ", entry,
                       " is in an inner step, it is none of session ", session_, " that lives");
      continue;
    }
    Open& open = found->second;
    if (!open.settled) findings_.absent(gap_, "entry ", entry, " is in an inner step and not settled");
    if (open.stepped) findings_.violation("entry ", entry, " is in two inner steps");
    if (!open.stepped) stepped_ += count_tag(open.microbatch);
    open.stepped = true;
    const auto microbatch = books_.microbatches.find(open.microbatch);
    if (microbatch == books_.microbatches.end())
      known = false;
    else
      targets += microbatch->second.targets;
  }
  if (known && targets != *e.targets)
    findings_.violation("an inner step over ", *e.targets, " targets, its entries have ", targets);
  judge_delays(e);
  if (DelayHistogram::of(*e.delays).total() != *e.targets)
    findings_.violation("an inner step over ", *e.targets, " targets, its delays are of ",
                        DelayHistogram::of(*e.delays).total());
  const auto anchor = version_ && stage_ ? books_.secured_tag(*stage_, *version_) : std::nullopt;
  if (known && anchor && *anchor + stepped_ != *e.tag)
    findings_.violation("the parameters do not hold the anchor and what was stepped (the tag differs)");
}

// In a line that says how late its gradients were: a mean is that of its histogram, and neither stands alone.
void PeerStory::judge_delays(const ReadEvent& e) {
  constexpr double kDigits = 1e-9;  // relative: a mean went through decimals
  if (!e.delays || !e.delay_mean || !e.settle_wait_ms)
    return findings_.violation("has some of delays, delay_mean and settle_wait_ms, and not all");
  const DelayHistogram delays = DelayHistogram::of(*e.delays);
  if (delays.total() == 0 || delays.counts().size() != e.delays->size())
    findings_.violation("its delays end in a bin that holds nothing");
  else if (std::abs(delays.mean() - *e.delay_mean) > kDigits * (1 + delays.mean()))
    findings_.violation("its mean delay is not that of its delays");
}

void PeerStory::take_serving(const ReadEvent& e) {
  if (serving_) findings_.violation("session ", session_, " began to serve twice");
  serving_ = true;
  version_ = e.version->value;
  if (e.version->value > 0 && books_.round_of(*stage_, e.version->value) == nullptr)
    findings_.untold("serves stage ", *stage_, " from version ", *e.version, ", which no round made");
}

void PeerStory::take_enter(const ReadEvent& e) {
  if (e.round->value <= last_round_)
    findings_.violation("takes part in round ", *e.round, " behind round ", last_round_);
  if (round_open_)
    findings_.absent(gap_, "takes part in round ", *e.round, ", round ", last_round_,
                     " neither made an anchor nor was abandoned");
  if (version_ && *version_ != e.version->value)
    findings_.absent(gap_, "takes part in a round from version ", *e.version, ", its anchor is at ", *version_);
  last_round_ = e.round->value;
  round_open_ = true;
  const auto stage = books_.stages.find(*stage_);
  const bool known = stage != books_.stages.end() && stage->second.stories.contains(e.round->value);
  if (!known || !stage->second.stories.at(e.round->value).opened)
    return findings_.untold("takes part in round ", *e.round, " of stage ", *stage_, ", which nobody opened");
  const RoundStory& story = stage->second.stories.at(e.round->value);
  if (story.base != e.version->value || story.step != e.step->value)
    findings_.violation("round ", *e.round, " of stage ", *stage_,
                        " was opened from another version or for another step");
}

void PeerStory::take_report(const ReadEvent& e) {
  if (!round_open_ || e.round->value != last_round_)
    findings_.absent(gap_, "reports of round ", *e.round, ", in which it does not take part");
  if (e.secured->size() != 1 || e.secured->front().session != session_ || e.secured->front().serials.empty())
    return findings_.violation("reports entries of others, or none");
  reported_.insert(e.round->value);
  const std::vector<std::uint64_t>& serials = e.secured->front().serials;
  const RoundFact* round = books_.round_by_number(*stage_, e.round->value);
  CountTag sum = 0;
  bool known = true;
  for (const std::uint64_t serial : serials) {
    const auto found = open_.find(serial);
    const EntryFact* fact = tells_entries() ? nullptr : books_.winner({session_, serial});
    if (!tells_entries() && fact == nullptr) {
      known = false;
      findings_.untold("reports entry ", serial, ", which the trainer did not commit");
      continue;
    }
    if (tells_entries() && found == open_.end()) {
      known = false;
      findings_.absent(gap_, "reports entry ", serial, ", which does not live");
      continue;
    }
    if (tells_entries()) {
      if (!found->second.settled) findings_.absent(gap_, "reports entry ", serial, ", which is not settled");
      fact = found->second.fact;
    }
    sum += count_tag(tells_entries() ? found->second.microbatch : fact->microbatch);
    const bool named = fact != nullptr && fact->round != 0 && &books_.rounds[fact->round - 1] == round;
    if (round != nullptr && !named)
      findings_.violation("reports entry ", serial, " for round ", *e.round, ", which does not name it");
  }
  if (known && sum != *e.tag) findings_.violation("the tag of its report is not the sum over its entries");
  if (round != nullptr && round->named(session_) != serials.size())
    findings_.violation("reports ", serials.size(), " entries for round ", *e.round, ", which names ",
                        round->named(session_));
}

void PeerStory::take_round_drop(const ReadEvent& e) {
  take_stage(e);
  if (!round_open_ || e.round->value != last_round_)
    findings_.absent(gap_, "drops round ", *e.round, ", in which it does not take part");
  round_open_ = false;
}

void PeerStory::take_anchor(const ReadEvent& e) {
  if (e.delays || e.delay_mean || e.settle_wait_ms) judge_delays(e);
  StageVerdict& verdict = report_.stages[*stage_];
  ++verdict.anchors;
  verdict.newest_anchor = std::max(verdict.newest_anchor, e.version->value);
  const RoundFact* round = books_.round_of(*stage_, e.version->value);
  if (round == nullptr) {
    findings_.untold("the anchor of stage ", *stage_, " is at version ", *e.version, ", which no round made");
  } else if (round->digest != *e.digest) {
    findings_.violation("the anchor of stage ", *stage_, " at version ", *e.version, " differs from that in ",
                        round->where);
  }
  if (const auto tag = books_.secured_tag(*stage_, e.version->value); tag && *tag != *e.tag) {
    verdict.tag_fits = false;
    findings_.violation("the anchor of stage ", *stage_, " at version ", *e.version,
                        " does not hold what the rounds secured (its tag differs)");
  }
  if (shifted_) {
    if (*shifted_ != e.version->value)
      findings_.violation("its anchor is at version ", *e.version, ", it shifted to ", *shifted_);
  } else {
    if (version_ && *version_ + 1 != e.version->value)
      findings_.absent(gap_, "its anchor goes from version ", *version_, " to ", *e.version);
    if (!round_open_ || (round != nullptr && round->round != last_round_))
      findings_.absent(gap_, "its anchor is at version ", *e.version, " by a round in which it took no part");
  }
  judge_step_to(e.version->value);
  if (!shifted_) round_open_ = false;
  shifted_.reset();
  version_ = e.version->value;
}

// From version_: what the rounds up to `version` name of the session was reported before and is merged by now.
void PeerStory::judge_step_to(std::uint64_t version) {
  if (version_ && version > *version_ && version - *version_ < (std::uint64_t{1} << 20)) {
    std::uint64_t named = 0;
    for (std::uint64_t v = *version_ + 1; v <= version; ++v) {
      const RoundFact* round = books_.round_of(*stage_, v);
      if (round == nullptr) continue;
      const std::uint64_t mine = round->named(session_);
      named += mine;
      if (mine > 0 && !reported_.contains(round->round))
        findings_.absent(gap_, "round ", round->round, " names entries of session ", session_,
                         ", which did not report them");
    }
    if (tells_entries() && named != merged_)
      findings_.absent(gap_ || books_.trainer_gap, "rounds up to version ", version, " name ", named,
                       " entries of session ", session_, ", which marked ", merged_, " as merged");
  }
  merged_ = 0;
  reported_.clear();
}

void PeerStory::take_behind(const ReadEvent& e) {
  if (version_ && e.version->value <= *version_)
    findings_.violation("is behind version ", *e.version, ", its anchor is at ", *version_);
  if (books_.round_of(*stage_, e.version->value) == nullptr)
    findings_.untold("is behind version ", *e.version, ", which no round made");
  behind_ = true;
  round_open_ = false;
}

void PeerStory::take_shifted(const ReadEvent& e) {
  if (!behind_) findings_.absent(gap_, "shifts to version ", *e.version, " and was not behind");
  if (version_ && e.version->value <= *version_)
    findings_.violation("shifts from version ", *version_, " to ", *e.version);
  shifted_ = e.version->value;
  if (!version_ || !books_.secured_tag(*stage_, e.version->value)) return;
  bool named = false;
  for (std::uint64_t v = *version_ + 1; v <= e.version->value; ++v)
    if (const RoundFact* round = books_.round_of(*stage_, v)) named = named || round->has(session_);
  if (e.cause != (named ? "snapshot" : "anchor"))
    findings_.violation("shifts from its ", e.cause, ", the rounds it missed ", named ? "name" : "do not name", " it");
}

void PeerStory::take_end(const ReadEvent& e) {
  // A process may go before it joined again.
  if (ended_ || (over_ && e.event == EventKind::kFenced))
    findings_.violation("session ", session_, " ends a second time");
  over_ = true;
  ended_ = e.event == EventKind::kEnd;
  if (e.event == EventKind::kEnd && e.cause.starts_with("the run is over") && !books_.ended)
    findings_.untold("hears that the run is over, the trainer did not say so");
}

}  // namespace shoal
