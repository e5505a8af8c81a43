// The log: the order of its effects, what it says brought back, and the log that says the same in few records.
#include "authority/authority.h"
#include "common/log.h"
#include "events/session_end.h"

namespace shoal {

Result<std::unique_ptr<Authority>> Authority::open(AuthorityOptions options, AuthorityPort& port, EventLoop& loop,
                                                   AuthorityLog log) {
  std::unique_ptr<Authority> authority(new Authority(std::move(options), port, loop, std::move(log.file)));
  SHOAL_TRY(authority->restore(log.records));
  return authority;
}

void Authority::sync_log(std::function<void(Status)> done) { log_->sync(lifetime_.guard(std::move(done))); }

void Authority::decide(const LogRecord& record, std::function<void()> effect) {
  if (failed_) return;
  Result<Bytes> packed = pack_log_record(record);
  if (!packed.ok()) return fail_log(packed.error());
  log_->append(*packed);
  syncs_.push_back(loop_.now());
  log_->sync(lifetime_.guard([this, effect = std::move(effect)](const Status& synced) {
    if (failed_) return;
    if (!synced.ok()) return fail_log(synced.error());
    syncs_.pop_front();
    effect();
  }));
}

void Authority::fail_log(const Error& error) {
  failed_ = true;
  book_.close();
  port_.on_log_failure(error);
}

bool Authority::sync_overdue(TimePoint now) {
  const Duration waited = syncs_.empty() ? Duration::zero() : now - syncs_.front();
  if (waited < kSyncOverdue) return false;
  if (now >= next_sync_notice_) {
    next_sync_notice_ = now + kSyncSaidAgain;
    port_.on_slow_log(waited);
  }
  return true;
}

// ---- replay ----

// Applies the records in order. Rounds that were opened and not committed are over: their commit never left.
Status Authority::restore(const std::vector<LogRecord>& records) {
  const auto apply = [this](const auto& said) -> Status {
    if constexpr (requires { book_.replay(said); })
      book_.replay(said);
    else
      SHOAL_TRY(replay(said));
    return {};
  };
  for (const LogRecord& record : records) SHOAL_TRY(std::visit(apply, record));
  if (records.empty()) decide(LogStart{options_.manifest}, [] {});
  return {};
}

void Authority::start() {
  SHOAL_CHECK(!started_ && log_->settled());
  started_ = true;
  book_.fence_again();
  for (const auto& tell : std::exchange(again_, {})) tell();
  book_.all_heard();
  book_.publish(build_list());
  book_.ticked();
  arm_tick();
}

Result<StageRounds*> Authority::stage_in_log(StageId stage) {
  if (stage.value >= stages_.size()) return log_contradicts("names a stage that the run does not have");
  return &rounds_of(stage);
}

Status Authority::replay(const LogStart& start) {
  if (start.manifest.body != options_.manifest.body)
    return make_error(ErrorCode::kCorrupt,
                      "the run was started with another manifest: its run file was changed or damaged since. HINT: put "
                      "the old one back, or start a new run in another folder");
  if (start.manifest.signature != options_.manifest.signature)  // Ed25519: one key, one text, one signature
    return log_contradicts(
        "belongs to another run: it was begun with another run.key. HINT: put back the run.key that was "
        "made with it");
  return {};
}

Status Authority::replay(const LogMember& logged) {
  SHOAL_ASSIGN(StageRounds* const stage, stage_in_log(logged.stage));
  MemberState& member = book_.place(logged.member.session, logged.stage);
  member.member = logged.member;
  member.enter(logged.member.serving ? MemberPhase::kReady : MemberPhase::kIdle);
  member.version = logged.member.version;
  member.beats.heard_at = member.fetch.idle_since = loop_.now();
  ++stage->line().epoch.value;
  book_.change_list();
  return {};
}

Status Authority::replay(const LogOver& over) {
  const MemberState* member = book_.find(over.session);
  if (member == nullptr) return log_contradicts("ends a session that never was a member");
  const StageId stage = member->stage;
  ++rounds_of(stage).line().epoch.value;
  book_.end(over.session, over.reason, !is_fault(over.reason));
  return replay(LogOverAgain{stage, over.session, over.reason});
}

Status Authority::replay(const LogOpen& record) {
  SHOAL_ASSIGN(StageRounds* const stage, stage_in_log(record.open.stage));
  stage->line().replay(record);
  return {};
}

Status Authority::replay(const LogCommit& record) {
  SHOAL_ASSIGN(StageRounds* const stage, stage_in_log(record.commit.stage));
  StageLine& line = stage->line();
  SHOAL_ASSIGN(const auto taken, line.replay(record, port_.settled(line.stage), loop_.now()));
  book_.note_commit(record.commit, taken);
  return replay(LogAgain{line.told.back().commit});
}

// ---- a compacted log ----

Status Authority::replay(const LogStage& record) {
  SHOAL_ASSIGN(StageRounds* const stage, stage_in_log(record.stage));
  return stage->line().replay(record);
}

Status Authority::replay(const LogAgain& record) {
  SHOAL_ASSIGN(StageRounds* const stage, stage_in_log(record.commit.stage));
  stage->line().replay(record, loop_.now());
  again_.push_back([this, stage, commit = record.commit]() mutable {
    if (commit.back_to) {
      const RecentCommits::TakenBack taken{std::exchange(commit.secured, {}), std::exchange(commit.tag, 0)};
      return stage->say_restored(commit, taken);
    }
    port_.write(event_of(commit));
    port_.on_round_commit(commit);
  });
  return {};
}

Status Authority::replay(const LogOverAgain& record) {
  book_.note_over(record);
  again_.push_back([this, record] {
    port_.write(session_over_event(record.session, record.stage, record.reason));
    port_.on_session_over(record.session, record.stage, record.reason);
  });
  return {};
}

// ---- compaction ----

Status Authority::compact(std::function<void(Status)> done) {
  SHOAL_CHECK(started_);
  if (failed_ || log_->compacting()) return make_error(ErrorCode::kBusy, "the authority's log takes nothing now");
  std::vector<LogRecord> records{LogStart{options_.manifest}};
  book_.compact(records);
  for (const auto& stage : stages_) stage->line().compact(book_.of(stage->line().stage), records);
  for (const LogOverAgain& lately : book_.over_lately()) records.push_back(lately);
  std::vector<Bytes> packed;
  for (const LogRecord& record : records) {
    SHOAL_ASSIGN(packed.emplace_back(), pack_log_record(record));
    if (packed.back().size() > kAuthorityLog.record_bytes_max)
      return make_error(ErrorCode::kTooLarge, "a record of the authority's log would be too large");
  }
  log_->compact(std::move(packed), lifetime_.guard(std::move(done)));
  return {};
}

// ---- what members know and the log does not ----

bool Authority::keep_ahead(const MemberState& member, MemberPhase before, Version version) {
  const StageRounds& stage = rounds_of(member.stage);
  const Version newest = stage.line().version;
  const Session session = member.member.session;
  const std::string cause = "it says that it holds version " + std::to_string(version.value) +
                            ", and the authority's log knows " + std::to_string(newest.value) + " as the newest";
  const bool another = stage.line().held(book_.of(member.stage));
  if (before != MemberPhase::kAhead) {
    port_.write({.event = EventKind::kMember,
                 .stage = member.stage,
                 .about = session,
                 .version = version,
                 .state = "ahead",
                 .cause = cause});
    if (another)
      log_warning(
          "stage ", member.stage, ": session ", short_name(session), " joins again: ", cause,
          ", as others of its stage do. HINT: only if an older copy of authority.log was put back, stop, put the "
          "newer one back and resume");
    else
      log_warning("stage ", member.stage, ": session ", short_name(session), " is ahead: ", cause,
                  ". If that is so, the log lost what had been told: was an older copy put back? HINT: then stop, put "
                  "the newer authority.log back and resume; else it has to fetch version ",
                  newest.value, " from a peer that holds it");
  }
  if (another) end_session(session, "ahead of the run: " + cause, true, {});
  return !another;
}

}  // namespace shoal
