#include "events/audit.h"

#include <set>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

namespace shoal {
namespace {

using Pair = std::pair<MicrobatchId, std::uint16_t>;  // (microbatch, stage)

// An entry as its peer wrote about it.
struct EntryStory {
  MicrobatchId microbatch;
  std::uint16_t stage = 0;
  bool known = false, counted = false, settled = false, undone = false;
};

struct RoundStory {
  std::uint64_t version = 0;
  std::vector<Secured> secured;
  std::string where;
};

class Auditor {
 public:
  explicit Auditor(const EventFiles& files) : files_(files) {}

  AuditReport run() {
    report_.files = files_.files;
    report_.lines = files_.lines;
    report_.torn = files_.torn;
    report_.missing = files_.missing;
    for (const std::string& where : files_.damaged) violation(where, "cannot be read");
    if (files_.runs.size() > 1) violation("", "the files are of ", files_.runs.size(), " different runs");
    for (const AuditEvent& event : files_.events) take(event);
    if (!has_trainer_) violation("", "no line of a trainer: there is nothing to judge by");
    join_rounds();
    judge_entries();
    judge_pairs();
    judge_tags();
    count_rest();
    return std::move(report_);
  }

 private:
  template <class... Parts>
  void violation(const std::string& where, const Parts&... parts) {
    ++report_.violation_count;
    if (report_.violations.size() >= kViolationsShownMax) return;
    std::ostringstream text;
    if (!where.empty()) text << where << ": ";
    (text << ... << parts);
    report_.violations.push_back(text.str());
  }

  // ---- reading, one event at a time ----
  void take(const AuditEvent& e) {
    has_trainer_ = has_trainer_ || e.role == "trainer";
    if (e.event == "start") {
      sessions_.insert(e.session);
      if (e.role == "peer") with_own_log_.insert(e.session);
    } else if (e.event == "issue" && e.microbatch) {
      issued_.insert(*e.microbatch);
    } else if (e.event == "commit" && e.microbatch) {
      take_commit(e);
    } else if (e.event == "lost" && e.microbatch && e.stage) {
      take_lost(e);
    } else if (e.event == "merged" && e.entry_name) {
      merged_.emplace(*e.entry_name, e.where);
    } else if (e.event == "commit_gone" && e.entry_name) {
      gone_.emplace(*e.entry_name, e.where);
    } else if (e.event == "round_commit" && e.role != "peer" && e.stage && e.round && e.version) {
      take_round(e);
    } else if (e.event == "anchor" && e.stage && e.version && e.tag) {
      anchors_.push_back(&e);
    } else if (e.event == "session_over" && e.about) {
      over_.insert(*e.about);
    } else if (e.event == "end" && e.role == "trainer") {
      report_.ended = true;
    } else if (e.entry_name && e.role == "peer") {
      take_entry(e);
    }
  }

  void take_commit(const AuditEvent& e) {
    const auto [known, is_new] = commits_.try_emplace(*e.microbatch, e.entries);
    if (!is_new && known->second != e.entries)
      violation(e.where, "microbatch ", *e.microbatch, " was committed along two paths");
    if (!is_new) return;
    if (stages_ == 0) stages_ = e.entries.size();
    if (e.entries.size() != stages_ || stages_ == 0) {
      violation(e.where, "the path of ", *e.microbatch, " has ", e.entries.size(), " stages, others have ", stages_);
    }
    for (std::size_t stage = 0; stage < e.entries.size(); ++stage) {
      const Pair pair{*e.microbatch, static_cast<std::uint16_t>(stage)};
      const auto [winner, fresh] = winners_.try_emplace(e.entries[stage], pair);
      if (!fresh && winner->second != pair)
        violation(e.where, "entry ", e.entries[stage], " won for two microbatches or stages");
    }
  }

  // A trainer that came back may say it again; the cause may be told in other words then, the entry may not differ.
  void take_lost(const AuditEvent& e) {
    const auto [known, is_new] = lost_.try_emplace({*e.microbatch, e.stage->value}, e);
    if (!is_new && known->second.entry_name != e.entry_name)
      violation(e.where, "lists another entry of ", *e.microbatch, " at stage ", *e.stage, " than ",
                known->second.where);
  }

  void take_round(const AuditEvent& e) {
    const auto [known, is_new] =
        rounds_.try_emplace({e.stage->value, e.round->value}, RoundStory{e.version->value, e.secured, e.where});
    if (is_new) return;
    const bool same = known->second.version == e.version->value && as_set(known->second.secured) == as_set(e.secured);
    if (!same)
      violation(e.where, "round ", *e.round, " of stage ", *e.stage, " was committed twice with different content");
  }

  static std::set<EntryName> as_set(const std::vector<Secured>& secured) {
    std::set<EntryName> entries;
    for (const Secured& member : secured) {
      for (std::uint64_t serial : member.serials) entries.insert({member.session, serial});
    }
    return entries;
  }

  void take_entry(const AuditEvent& e) {
    if (e.event != "entry" && e.event != "counted" && e.event != "settled" && e.event != "undone") return;
    EntryStory& entry = entries_[*e.entry_name];
    if (e.event == "entry" && e.microbatch && e.stage) {
      if (entry.known) violation(e.where, "entry ", *e.entry_name, " was made twice");
      entry.known = true;
      entry.microbatch = *e.microbatch;
      entry.stage = e.stage->value;
      ++entries_per_pair_[{*e.microbatch, e.stage->value}];
    } else if (e.event == "counted") {
      if (entry.counted) violation(e.where, "entry ", *e.entry_name, " was counted a second time");
      if (entry.undone) violation(e.where, "entry ", *e.entry_name, " was counted after it was undone");
      entry.counted = true;
    } else if (e.event == "settled") {
      if (!entry.counted) violation(e.where, "entry ", *e.entry_name, " was settled without being counted");
      if (entry.undone) violation(e.where, "entry ", *e.entry_name, " was settled after it was undone");
      entry.settled = true;
    } else if (e.event == "undone") {
      if (entry.undone) violation(e.where, "entry ", *e.entry_name, " was undone twice");
      if (entry.settled) violation(e.where, "entry ", *e.entry_name, " was undone after it was settled");
      if (entry.counted) ++report_.undone;
      entry.undone = true;
    }
  }

  // ---- judging ----
  void join_rounds() {
    std::map<std::pair<std::uint16_t, std::uint64_t>, std::uint64_t> round_of_version;
    for (const auto& [id, round] : rounds_) {
      const auto [stage, number] = id;
      const auto [taken, is_new] = round_of_version.try_emplace({stage, round.version}, number);
      if (!is_new)
        violation(round.where, "version ", round.version, " of stage ", stage, " was made by rounds ", taken->second,
                  " and ", number);
      StageVerdict& verdict = report_.stages[stage];
      ++verdict.rounds;
      verdict.version = std::max(verdict.version, round.version);
      for (const Secured& member : round.secured) {
        for (std::uint64_t serial : member.serials) secure({member.session, serial}, stage, round);
      }
    }
    report_.rounds = rounds_.size();
  }

  void secure(const EntryName& entry_name, std::uint16_t stage, const RoundStory& round) {
    Pair pair;
    const auto winner = winners_.find(entry_name);
    if (winner != winners_.end()) {
      pair = winner->second;
    } else {
      const auto entry = entries_.find(entry_name);
      if (entry == entries_.end() || !entry->second.known) {
        violation(round.where, "secures entry ", entry_name, ", of which nobody wrote");
        return;
      }
      pair = {entry->second.microbatch, entry->second.stage};
      violation(round.where, "secures entry ", entry_name, " of microbatch ", pair.first,
                ", which the trainer did not commit for stage ", stage);
    }
    if (pair.second != stage)
      violation(round.where, "secures entry ", entry_name, " of stage ", pair.second, " for stage ", stage);
    ++times_secured_[pair];
    secured_entries_.insert(entry_name);
    tag_at_[stage][round.version] += count_tag(pair.first);
  }

  void judge_entries() {
    for (const auto& [entry_name, pair] : winners_) {
      const auto found = entries_.find(entry_name);
      if (found == entries_.end() || !found->second.known) {
        if (with_own_log_.contains(entry_name.session))
          violation("", "entry ", entry_name, " was committed, its peer never wrote of it");
        continue;
      }
      const EntryStory& entry = found->second;
      if (entry.microbatch != pair.first || entry.stage != pair.second) {
        violation("", "entry ", entry_name, " is of microbatch ", entry.microbatch, " at its peer and of ", pair.first,
                  " in the trainer's log");
      }
    }
    for (const EntryName& entry_name : secured_entries_) {
      const auto found = entries_.find(entry_name);
      if (found == entries_.end()) continue;
      if (!found->second.counted) violation("", "entry ", entry_name, " was secured, its peer never counted it");
      if (found->second.undone) violation("", "entry ", entry_name, " was secured although its peer had undone it");
    }
    for (const auto& [entry_name, where] : gone_) {
      if (secured_entries_.contains(entry_name))
        violation(where, "entry ", entry_name, " was answered gone, yet a round secured it");
    }
    for (const auto& [entry_name, where] : merged_) {
      if (!secured_entries_.contains(entry_name))
        violation(where, "entry ", entry_name, " was marked merged, no committed round names it");
    }
  }

  void judge_pairs() {
    for (const auto& [microbatch, entries] : commits_) {
      if (!issued_.contains(microbatch)) violation("", "microbatch ", microbatch, " was committed and never issued");
      for (std::size_t stage = 0; stage < entries.size(); ++stage)
        judge_pair({microbatch, static_cast<std::uint16_t>(stage)}, entries[stage]);
    }
    for (const auto& [pair, event] : lost_) {
      const auto commit = commits_.find(pair.first);
      if (commit == commits_.end())
        violation(event.where, "lists microbatch ", pair.first, ", which was never committed");
    }
    // Secured although never committed: counted once is already once too often.
    for (const auto& [pair, times] : times_secured_) {
      if (commits_.contains(pair.first)) continue;
      ++report_.counted_twice;
      ++report_.stages[pair.second].counted_twice;
    }
  }

  void judge_pair(const Pair& pair, const EntryName& winner) {
    StageVerdict& stage = report_.stages[pair.second];
    ++stage.commits;
    const auto secured = times_secured_.find(pair);
    const std::uint64_t times = secured == times_secured_.end() ? 0 : secured->second;
    const auto lost = lost_.find(pair);
    const bool is_lost = lost != lost_.end();
    stage.secured += times > 0;
    stage.lost += is_lost;
    report_.secured += times > 0;
    report_.lost += is_lost;
    if (is_lost && lost->second.entry_name && *lost->second.entry_name != winner) {
      violation(lost->second.where, "lists entry ", *lost->second.entry_name, ", committed was ", winner);
    }
    if (times > 1 || (times > 0 && is_lost)) {
      ++stage.counted_twice;
      ++report_.counted_twice;
      violation("", "microbatch ", pair.first, " at stage ", pair.second, " was ",
                times > 1 ? "secured " + std::to_string(times) + " times" : "secured and also lost");
    }
    if (times > 0 || is_lost) return;
    if (!report_.ended) {
      ++stage.undecided;
      ++report_.undecided;
      return;
    }
    ++stage.silent;
    ++report_.silent;
    violation("", "microbatch ", pair.first, " at stage ", pair.second, " (entry ", winner,
              ") was committed, then neither secured nor lost");
  }

  // The sum over what the rounds up to `version` secured.
  CountTag secured_tag(std::uint16_t stage, std::uint64_t version) const {
    CountTag sum = 0;
    const auto rounds = tag_at_.find(stage);
    if (rounds == tag_at_.end()) return sum;
    for (const auto& [at, tag] : rounds->second) {
      if (at <= version) sum += tag;
    }
    return sum;
  }

  void judge_tags() {
    std::map<std::pair<std::uint16_t, std::uint64_t>, const AuditEvent*> first;
    for (const AuditEvent* anchor : anchors_) {
      const std::uint16_t stage = anchor->stage->value;
      StageVerdict& verdict = report_.stages[stage];
      ++verdict.anchors;
      const auto [other, is_new] = first.try_emplace({stage, anchor->version->value}, anchor);
      if (!is_new && other->second->digest != anchor->digest) {
        violation(anchor->where, "the anchor of stage ", stage, " at version ", *anchor->version,
                  " differs from that in ", other->second->where);
      }
      if (*anchor->tag == secured_tag(stage, anchor->version->value)) continue;
      verdict.tag_fits = false;
      violation(anchor->where, "the anchor of stage ", stage, " at version ", *anchor->version,
                " does not hold what the rounds secured (its tag differs)");
    }
    if (report_.ended) judge_final_tags(first);
  }

  void judge_final_tags(const std::map<std::pair<std::uint16_t, std::uint64_t>, const AuditEvent*>& anchors) {
    for (auto& [stage, verdict] : report_.stages) {
      CountTag committed = 0, lost = 0;
      for (const auto& [microbatch, entries] : commits_)
        committed += stage < entries.size() ? count_tag(microbatch) : 0;
      for (const auto& [pair, event] : lost_) lost += pair.second == stage ? count_tag(pair.first) : 0;
      const auto last = anchors.find({stage, verdict.version});
      if (last == anchors.end()) {
        if (verdict.rounds == 0) continue;
        verdict.tag_fits = false;
        violation("", "no replica of stage ", stage, " wrote of its anchor at the last version ", verdict.version);
      } else if (*last->second->tag + lost != committed) {
        verdict.tag_fits = false;
        violation("", "stage ", stage, ": anchor + lost differs from the sum over all commits (by tag)");
      }
    }
  }

  void count_rest() {
    report_.issued = issued_.size();
    report_.committed = commits_.size();
    for (const MicrobatchId& microbatch : issued_) report_.unfinished += !commits_.contains(microbatch);
    for (const auto& [pair, count] : entries_per_pair_) report_.branches += count - 1;
    report_.answered_gone = gone_.size();
    report_.sessions = sessions_.size();
    report_.sessions_over = over_.size();
  }

  const EventFiles& files_;
  AuditReport report_;
  bool has_trainer_ = false;
  std::size_t stages_ = 0;
  std::set<MicrobatchId> issued_;
  std::map<MicrobatchId, std::vector<EntryName>> commits_;
  std::unordered_map<EntryName, Pair> winners_;
  std::map<Pair, AuditEvent> lost_;
  std::unordered_map<EntryName, std::string> merged_, gone_;
  std::map<std::pair<std::uint16_t, std::uint64_t>, RoundStory> rounds_;
  std::unordered_map<EntryName, EntryStory> entries_;
  std::map<Pair, std::uint64_t> entries_per_pair_, times_secured_;
  std::unordered_set<EntryName> secured_entries_;
  std::map<std::uint16_t, std::map<std::uint64_t, CountTag>> tag_at_;
  std::vector<const AuditEvent*> anchors_;
  std::set<Session> sessions_, with_own_log_, over_;
};

}  // namespace

AuditReport audit(const EventFiles& files) { return Auditor(files).run(); }

}  // namespace shoal
