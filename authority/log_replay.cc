#include "authority/log_replay.h"

#include <utility>

#include "events/session_end.h"

namespace shoal {

Result<std::vector<LogReplay::Tell>> LogReplay::apply(const std::vector<LogRecord>& records) {
  const auto apply_one = [this](const auto& said) -> Status {
    if constexpr (requires { book_.replay(said); })
      book_.replay(said);
    else
      SHOAL_TRY(replay(said));
    return {};
  };
  for (const LogRecord& record : records) SHOAL_TRY(std::visit(apply_one, record));
  return std::move(again_);
}

Result<StageRounds*> LogReplay::stage_of(StageId stage) const {
  if (stage.value >= stages_.size()) return log_contradicts("names a stage that the run does not have");
  return stages_[stage.value].get();
}

Status LogReplay::replay(const LogStart& start) const {
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

Status LogReplay::replay(const LogMember& logged) {
  SHOAL_ASSIGN(StageRounds* const stage, stage_of(logged.stage));
  MemberState& member = book_.place(logged.member.session, logged.stage);
  member.member = logged.member;
  member.enter(logged.member.serving ? MemberPhase::kReady : MemberPhase::kIdle);
  member.version = logged.member.version;
  member.beats.heard_at = member.fetch.idle_since = loop_.now();
  ++stage->line().epoch.value;
  book_.change_list();
  return {};
}

Status LogReplay::replay(const LogOver& over) {
  const MemberState* member = book_.find(over.session);
  if (member == nullptr) return log_contradicts("ends a session that never was a member");
  const StageId stage = member->stage;
  ++stages_[stage.value]->line().epoch.value;
  book_.end(over.session, over.reason, !is_fault(over.reason));
  return replay(LogOverAgain{stage, over.session, over.reason});
}

Status LogReplay::replay(const LogOpen& record) {
  SHOAL_ASSIGN(StageRounds* const stage, stage_of(record.open.stage));
  return stage->line().replay(record);
}

Status LogReplay::replay(const LogCommit& record) {
  SHOAL_ASSIGN(StageRounds* const stage, stage_of(record.commit.stage));
  StageLine& line = stage->line();
  SHOAL_ASSIGN(const auto taken, line.replay(record, port_.settled(line.stage), loop_.now()));
  book_.note_commit(record.commit, taken);
  return replay(LogAgain{line.told.back().commit});
}

Status LogReplay::replay(const LogStage& record) {
  SHOAL_ASSIGN(StageRounds* const stage, stage_of(record.stage));
  return stage->line().replay(record);
}

Status LogReplay::replay(const LogAgain& record) {
  SHOAL_ASSIGN(StageRounds* const stage, stage_of(record.commit.stage));
  stage->line().replay(record, loop_.now());
  again_.push_back([&port = port_, commit = record.commit]() mutable {
    if (commit.back_to) {
      const RecentCommits::TakenBack taken{std::exchange(commit.secured, {}), std::exchange(commit.tag, 0)};
      return say_restored(port, commit, taken);
    }
    port.write(event_of(commit));
    port.on_round_commit(commit);
  });
  return {};
}

Status LogReplay::replay(const LogOverAgain& record) {
  book_.note_over(record);
  again_.push_back([&port = port_, record] {
    port.write(session_over_event(record.session, record.stage, record.reason));
    port.on_session_over(record.session, record.stage, record.reason);
  });
  return {};
}

}  // namespace shoal
