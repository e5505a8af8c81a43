// The audit's way through the files: the trainer's in the order of their beginnings, then the peers', then what only
// all of them together can say.
#include "events/audit/audit.h"

#include <algorithm>

#include "common/hex.h"
#include "events/audit/audit_books.h"
#include "events/audit/authority_story.h"
#include "events/audit/peer_story.h"
#include "events/audit/trainer_story.h"
#include "events/delay_profile.h"
#include "events/event_lines.h"

namespace shoal {
namespace {

class Auditor {
 public:
  AuditReport run(const std::vector<EventSource>& sources) {
    std::vector<std::pair<double, const EventSource*>> trainers;
    std::vector<const EventSource*> others;
    for (const EventSource& source : sources) {
      const auto [trainer, time] = begins_as(source);
      if (trainer)
        trainers.emplace_back(time, &source);
      else
        others.push_back(&source);
    }
    std::stable_sort(trainers.begin(), trainers.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    report_.files = sources.size();
    for (const auto& [time, source] : trainers) read(*source, true);
    if (runs_.empty() || !books_.trainer_seen)
      findings_.violation("no line of a trainer: there is nothing to judge by");
    trainers_runs_ = runs_.size();
    trainer_.finish();
    authority_.finish();
    for (const EventSource* source : others) read(*source, false);
    if (runs_.size() > 1) findings_.violation("the files are of ", runs_.size(), " different runs");
    judge_sessions();
    judge_trainers();
    judge_entries();
    judge_microbatches();
    judge_stages();
    return std::move(report_);
  }

  // Sums up what run() read. ERRORS: kIo (not all could be), accepted_work()'s kInput.
  Status sum_up(AcceptedWork& work, const std::string& folder) const {
    SHOAL_TRY(unread_);
    if (!books_.trainer_seen)
      return make_error(ErrorCode::kInput,
                        folder + ": holds no event file of a launching process (`shoal launch --events FILE`)");
    if (trainers_runs_ > 1) return make_error(ErrorCode::kInput, folder + ": holds event files of two runs");
    work.run = runs_.front();
    for (const auto& [peer, name] : books_.names)
      if (!name.empty()) work.names.emplace(peer, name);
    for (const auto& [name, fact] : books_.entries)
      if (fact.committed && fact.times > 0 && !fact.taken_back)
        work.peers[name.session.peer_tag][fact.stage][fact.microbatch.serial] =
            books_.microbatches.at(fact.microbatch).targets;
    return {};
  }

 private:
  // By its first line that can be read.
  std::pair<bool, double> begins_as(const EventSource& source) {
    EventLines lines(source);
    const auto first = lines.next();
    if (!first.ok() || *first == nullptr) return {false, 0};
    return {(*first)->is_trainer(), (*first)->time};
  }

  struct File {
    std::string name, role;
    PeerId peer;
    std::optional<Session> session;
    EventLevel level = EventLevel::kFull;  // of the session
    bool gap = false;
    std::uint64_t lines = 0;
  };

  void read(const EventSource& source, bool trainer) {
    EventLines lines(source);
    File file{.name = source.name, .role = {}, .peer = {}, .session = {}};
    findings_.look_at({file.name});
    for (const std::string& segment : source.lacks) {
      findings_.incomplete("its segment ", segment, " is not here");
      file.gap = true;
      if (trainer) books_.trainer_gap = true;
    }
    while (true) {
      const auto next = lines.next();
      for (const std::uint64_t line : lines.take_damaged()) {
        findings_.look_at({file.name, line});
        findings_.violation("cannot be read");
      }
      if (!next.ok()) {
        findings_.look_at({file.name});
        findings_.incomplete(next.error().message);
        unread_ = next.error();
      }
      if (!next.ok() || *next == nullptr) break;
      findings_.look_at({file.name, lines.number()});
      take(**next, file, trainer);
    }
    findings_.look_at({});
    if (!trainer) peer_.end_session();
    report_.lines += lines.lines();
    report_.torn += lines.torn();
  }

  void take(const ReadEvent& e, File& file, bool trainer) {
    if (const std::uint64_t missing = e.missing.value_or(0); missing > 0) {
      findings_.incomplete(missing, missing == 1 ? " line is" : " lines are",
                           " missing in front of this one: they could not be written");
      report_.missing += missing;
      file.gap = true;
      if (trainer)
        books_.trainer_gap = true;
      else
        peer_.note_gap();
    }
    const std::string_view lacking = lacking_field(e);
    if (!lacking.empty()) return findings_.violation(e.name, " lacks \"", lacking, "\"");
    if (e.row == nullptr) return findings_.violation("\"", e.name, "\" is no event of a ", e.role);
    if (!same_process(e, file)) return;
    if (e.event == EventKind::kReopened) return;
    take_session(e, file, trainer);
    if (!is_written(e.event, file.level))
      findings_.violation(e.name, " is written, which the session's level \"", name_of(file.level), "\" leaves out");
    if (!trainer && !e.is_peer()) return;
    if (!trainer) {
      note_delays(e);
      return peer_.take(e);
    }
    books_.trainer_seen = true;
    take_of_trainer(e);
  }

  void note_delays(const ReadEvent& e) {
    if (!e.delays || !e.stage || e.stage->value >= kDelayStagesMax) return;
    StageVerdict& stage = report_.stages[e.stage->value];
    if (e.event == EventKind::kStepped) {
      stage.delays_of_windows.merge(DelayHistogram::of(*e.delays));
      ++stage.steps_of_windows;
    } else if (e.event == EventKind::kAnchor) {
      stage.delays_of_rounds.merge(DelayHistogram::of(*e.delays));
      ++stage.steps_of_rounds;
    }
  }

  bool same_process(const ReadEvent& e, File& file) {
    if (std::find(runs_.begin(), runs_.end(), e.run) == runs_.end() && runs_.size() < 8) runs_.push_back(e.run);
    if (file.lines++ == 0) {
      file.role = e.role;
      file.peer = e.peer;
    }
    if (e.role != file.role || e.peer != file.peer) {
      findings_.violation("is of another process (", e.role, " ", short_name(e.peer), ") than the file");
      return false;
    }
    if (e.session != Session{} && !is_of(e.session, e.peer))
      findings_.violation("session ", e.session, " is none of peer ", hex_of(e.peer).substr(0, 16));
    return true;
  }

  // A file's lines carry one session from one `start` to the next.
  void take_session(const ReadEvent& e, File& file, bool trainer) {
    if (e.role == "solo") return;
    const bool starts = e.event == EventKind::kStart;
    if (!starts && file.session == e.session) return;
    if (!starts)
      findings_.absent(file.gap, "session ", e.session, " wrote no start, or its line is in a foreign place");
    SessionFact& fact = books_.sessions[e.session];
    if (starts) {
      if (fact.started) findings_.violation("session ", e.session, " starts a second time");
      fact.started = true;
      ++report_.sessions;
    }
    file.level = fact.level = level_of(e);
    file.session = e.session;
    if (trainer) {
      fact.seen = true;
      books_.trainer_tells_merged = books_.trainer_tells_merged && is_written(EventKind::kMerged, file.level);
      books_.life = {.number = static_cast<std::uint16_t>(books_.life.number + 1),
                     .resumed = e.cause == "resume" || !starts};
      trainer_.begin_life();
    } else {
      peer_.begin_session(e.session, file.gap);
    }
  }

  // The first line of a session says it.
  EventLevel level_of(const ReadEvent& e) {
    if (e.level.empty()) return EventLevel::kFull;
    const auto level = event_level_named(e.level);
    if (!level) findings_.violation("\"", e.level, "\" is no level of events");
    return level.value_or(EventLevel::kFull);
  }

  void take_of_trainer(const ReadEvent& e) {
    const bool decides =
        (e.event >= EventKind::kIssue && e.event <= EventKind::kRestored && e.event != EventKind::kRoundFailed) ||
        e.event == EventKind::kMerged;
    if (books_.life.ended && (decides || e.event == EventKind::kEnd))
      findings_.violation(e.name, " behind the end of the run");
    if (e.event == EventKind::kEnd) books_.ended = books_.life.ended = true;
    trainer_.take(e);
    authority_.take(e);
  }

  // ---- what only all files together say ----
  void judge_sessions() {
    std::uint64_t without_entries = 0;
    for (const auto& [name, session] : books_.sessions) {
      report_.sessions_over += session.over;
      without_entries += session.seen && !session.tells_entries();
      if (session.seen) continue;
      if (session.joined || session.named)
        findings_.incomplete("session ", name, " took part, and no file holds a line of it");
    }
    if (without_entries > 0)
      findings_.incomplete(without_entries, without_entries == 1 ? " session tells" : " sessions tell",
                           " nothing of single entries: that is not written at level \"", name_of(EventLevel::kRounds),
                           "\"");
    for (const auto& [name, session] : books_.sessions)
      if (session.named && !session.joined) findings_.untold("session ", name, " took part and never joined");
  }

  // A member may send on microbatches of its own making.
  void judge_trainers() {
    for (const auto& [name, trainer] : books_.trainers)
      if (trainer.entries > 0)
        findings_.incomplete(trainer.entries, " entries of trainer ", hex_of_word(name),
                             " were made, and no file holds a line of it");
  }

  void judge_entries() {
    for (const auto& [name, fact] : books_.entries) {
      const SessionFact& session = books_.sessions[name.session];
      const bool gap = session.gap || session.cut;
      if (fact.lost && fact.lost_as_gone && !fact.gone && session.tells_entries())
        findings_.absent(gap, "entry ", name, " is lost as gone, its peer did not answer that");
      if (fact.lost_as_late && !fact.late && session.tells_entries())
        findings_.absent(gap, "entry ", name, " is lost as too late, its peer did not say so");
      if (!fact.committed) {
        if (fact.times > 0) judge_foreign(name, fact);
        continue;
      }
      if (session.tells_entries()) {
        if (!fact.told)
          findings_.absent(gap, "entry ", name, " was committed, its peer never wrote of it");
        else if (fact.late && fact.times > 0)
          findings_.violation("entry ", name, " was secured, its peer dropped it as too late");
        else if (!fact.counted && !fact.late)
          findings_.absent(gap, "entry ", name, " was committed, its peer never counted it");
        else if (fact.times > 0 && !fact.settled)
          findings_.absent(gap, "entry ", name, " was secured, its peer never settled it");
      }
      judge_winner(name, fact);
    }
  }

  // A round names what nobody committed.
  void judge_foreign(const EntryName& name, const EntryFact& fact) {
    const RoundFact& round = books_.rounds[fact.round - 1];
    if (!fact.told) {
      findings_.untold("entry ", name, " was secured (", round.where, "), nobody committed it or wrote of it");
      return;
    }
    findings_.untold("entry ", name, " of microbatch ", fact.microbatch, " was secured (", round.where,
                     "), which the trainer did not commit for stage ", round.stage);
    if (books_.trainer_gap) return;
    ++report_.counted_twice;  // counted once is already once too often
    ++report_.stages[round.stage].counted_twice;
  }

  void judge_winner(const EntryName& name, const EntryFact& fact) {
    StageVerdict& stage = report_.stages[fact.stage];
    ++stage.commits;
    stage.secured += fact.times > 0 && !fact.taken_back;
    stage.taken_back += fact.taken_back;
    stage.lost += fact.lost;
    report_.secured += fact.times > 0 && !fact.taken_back;
    report_.taken_back += fact.taken_back;
    report_.lost += fact.lost;
    if (fact.times > 1 || (fact.times > 0 && fact.lost)) {
      ++stage.counted_twice;
      ++report_.counted_twice;
      findings_.violation("microbatch ", fact.microbatch, " at stage ", fact.stage, " was ",
                          fact.times > 1    ? "secured " + std::to_string(fact.times) + " times"
                          : fact.taken_back ? "taken back and also lost"
                                            : "secured and also lost");
    }
    if (fact.times > 0 || fact.lost) return;
    if (!books_.ended || books_.trainer_gap) {
      ++stage.undecided;
      ++report_.undecided;
    } else {
      ++stage.silent;
      ++report_.silent;
    }
    if (books_.ended)
      findings_.untold("microbatch ", fact.microbatch, " at stage ", fact.stage, " (entry ", name,
                       ") was committed, then neither secured nor lost");
  }

  void judge_microbatches() {
    for (const auto& [name, fact] : books_.microbatches) {
      report_.issued += fact.issue_life != 0;
      report_.committed += fact.commit_life != 0;
      if (fact.commit_life != 0) report_.committed_targets += fact.targets;
      report_.unfinished += fact.issue_life != 0 && fact.commit_life == 0;
    }
    report_.ended = books_.ended;
    report_.undone = sums_.undone;
    report_.answered_gone = sums_.gone;
    report_.dropped_late = sums_.late;
    for (const RoundFact& round : books_.rounds) ++(round.back_to ? report_.restores : report_.rounds);
    // The winner of a committed pair is the first one, that of another is any.
    report_.branches = sums_.entries - sums_.winners - sums_.unfinished.size();
  }

  void judge_stages() {
    for (auto& [stage, fact] : books_.stages) {
      StageVerdict& verdict = report_.stages[stage];
      verdict.version = fact.newest();
      for (const auto& [number, story] : fact.stories)
        verdict.members_max = std::max(verdict.members_max, story.members);
      for (const std::uint32_t index : fact.rounds)
        if (index != 0) ++(books_.rounds[index - 1].back_to ? verdict.restores : verdict.rounds);
      if (verdict.rounds > 0 && books_.ended) judge_last_anchor(stage, fact);
      const auto secured = books_.secured_tag(stage, fact.newest());
      if (!books_.ended || !secured || *secured + fact.lost + fact.taken_back == fact.committed) continue;
      verdict.tag_fits = books_.trainer_gap;
      findings_.untold("stage ", stage, ": anchor + lost", verdict.restores > 0 ? " + taken back" : "",
                       " differs from the sum over all commits (by tag)");
    }
  }

  void judge_last_anchor(std::uint16_t stage, const StageFact& fact) {
    std::uint64_t last = fact.newest();
    // A peer that joins at a version that a restore made writes no anchor line of it; the content was told of before.
    for (const RoundFact* made = books_.round_of(stage, last);
         made != nullptr && made->back_to && *made->back_to < last; made = books_.round_of(stage, last))
      last = *made->back_to;
    if (report_.stages[stage].newest_anchor >= last) return;
    bool gap = false;  // in the file of one that may have written it
    for (const auto& [name, session] : books_.sessions)
      if (session.stage == stage) gap = gap || session.gap || session.cut || !session.seen;
    findings_.absent(gap, "no replica of stage ", stage, " wrote of its anchor at the last version ", last);
  }

  AuditReport report_;
  Books books_;
  Findings findings_{report_, books_};
  TrainerStory trainer_{books_, findings_};
  AuthorityStory authority_{books_, findings_};
  PeerSums sums_;
  PeerStory peer_{books_, findings_, report_, sums_};
  std::vector<RunId> runs_;
  std::size_t trainers_runs_ = 0;  // of these, the first ones
  Status unread_;                  // why the rest of a file could not be read
};

}  // namespace

std::string_view name_of(AuditVerdict verdict) {
  switch (verdict) {
    case AuditVerdict::kClean:
      return "clean";
    case AuditVerdict::kIncomplete:
      return "incomplete";
    case AuditVerdict::kViolated:
      break;
  }
  return "violated";
}

AuditReport audit_texts(const std::map<std::string, std::string>& files) {
  std::vector<EventSource> sources;
  for (const auto& [name, text] : files) sources.push_back(text_source(name, text));
  return Auditor().run(sources);
}

Result<AuditReport> audit_folder(const std::string& folder, const ReadProgress& progress) {
  SHOAL_ASSIGN(const std::vector<EventSource> sources, sources_in(folder, progress));
  return Auditor().run(sources);
}

Result<AcceptedWork> accepted_work(const std::string& folder, const ReadProgress& progress) {
  SHOAL_ASSIGN(const std::vector<EventSource> sources, sources_in(folder, progress));
  Auditor auditor;
  AcceptedWork work{.audit = auditor.run(sources)};
  SHOAL_TRY(auditor.sum_up(work, folder));
  return work;
}

}  // namespace shoal
