// What the log says, brought back; and the log that says the same in few records.
#include <algorithm>

#include "authority/authority.h"
#include "events/session_end.h"

namespace shoal {

namespace {

constexpr std::size_t kItemsMax = 4096;  // of one record

// As LogAgain has it.
RoundCommit with(const RecentCommits::TakenBack& taken, RoundCommit commit) {
  if (!commit.back_to) return commit;
  commit.secured = taken.secured;
  commit.tag = taken.tag;
  return commit;
}

// A record of `Record` for each kItemsMax of them.
template <class Record, class Item>
void add_in_parts(const std::vector<Item>& items, std::vector<Item> Record::*field, std::vector<LogRecord>& records) {
  for (std::size_t at = 0; at < items.size(); at += kItemsMax) {
    Record record;
    const auto begin = items.begin() + static_cast<std::ptrdiff_t>(at);
    (record.*field).assign(begin, begin + static_cast<std::ptrdiff_t>(std::min(kItemsMax, items.size() - at)));
    records.push_back(std::move(record));
  }
}

}  // namespace

// Applies the records in order. Rounds that were opened and not committed are over: their commit never left.
Status Authority::restore(const std::vector<LogRecord>& records) {
  for (const LogRecord& record : records)
    SHOAL_TRY(std::visit([this](const auto& said) { return replay(said); }, record));
  if (records.empty()) decide(LogStart{options_.manifest}, [] {});
  return {};
}

void Authority::start() {
  SHOAL_CHECK(!started_ && log_->settled());
  started_ = true;
  for (const auto& [session, left] : over_)
    if (!left) port_.fence(session);
  for (const auto& tell : std::exchange(again_, {})) tell();
  const TimePoint now = loop_.now();
  for (auto& [session, member] : members_) member.heard_at = now;
  publish(build_list());
  last_tick_ = now;
  arm_tick();
}

Status Authority::contradicts(const std::string& what) const {
  return make_error(ErrorCode::kCorrupt, "the authority's log " + what);
}

Status Authority::replay(const LogStart& start) {
  if (start.manifest.body != options_.manifest.body)
    return make_error(ErrorCode::kCorrupt,
                      "the run was started with another manifest: its run file was changed or damaged since. HINT: put "
                      "the old one back, or start a new run in another folder");
  if (start.manifest.signature != options_.manifest.signature)  // Ed25519: one key, one text, one signature
    return contradicts(
        "belongs to another run: it was begun with another run.key. HINT: put back the run.key that was "
        "made with it");
  return {};
}

Status Authority::replay(const LogMember& logged) {
  StageState* stage = stage_of(logged.stage);
  if (stage == nullptr) return contradicts("names a stage that the run does not have");
  MemberState& member = place_member(logged.member.session, logged.stage);
  member.member = logged.member;
  member.ready = member.serves = logged.member.serving;
  member.version = logged.member.version;
  member.heard_at = loop_.now();
  ++stage->epoch.value;
  ++epoch_.value;
  return {};
}

Status Authority::replay(const LogOver& over) {
  const auto at = members_.find(over.session);
  if (at == members_.end()) return contradicts("ends a session that never was a member");
  const StageId stage = at->second.stage;
  ++stage_of(stage)->epoch.value;
  ++epoch_.value;
  over_[over.session] = !is_fault(over.reason);
  note_over(over.session, stage, over.reason);
  drop_member(over.session);
  return replay(over_lately_.back());
}

Status Authority::replay(const LogOpen& open) {
  StageState* stage = stage_of(open.open.stage);
  if (stage == nullptr) return contradicts("names a stage that the run does not have");
  stage->round_used = open.open.round;
  stage->last_abandon = RoundAbandon{open.open.stage, open.open.round, "the authority was restarted"};
  return {};
}

Status Authority::replay(const LogCommit& record) {
  const RoundCommit& commit = record.commit;
  StageState* stage = stage_of(commit.stage);
  if (stage == nullptr) return contradicts("names a stage that the run does not have");
  if (commit.version <= stage->version || (commit.back_to && stage->recent.digest_of(*commit.back_to) != commit.digest))
    return contradicts("commits a version that does not follow the one before");
  const auto taken = commit.back_to ? stage->recent.behind(*commit.back_to) : RecentCommits::TakenBack();
  note_commit(*stage, commit, taken);
  stage->round_used = std::max(stage->round_used, commit.round);
  stage->last_commit_sent = commit;
  note_named(commit);
  ++epoch_.value;
  return replay(LogAgain{with(taken, commit)});
}

// ---- a compacted log ----

Status Authority::replay(const LogBase& base) {
  epoch_ = base.epoch;
  tally_.rounds = base.rounds;
  tally_.taken_back = base.taken_back;
  tally_.faults = base.faults;
  return {};
}

Status Authority::replay(const LogShares& record) {
  for (const LogShares::Share& share : record.shares) tally_.shares[{share.peer_tag, share.stage}] = share.entries;
  return {};
}

Status Authority::replay(const LogSessions& record) {
  for (const LogSessions::Over& over : record.over) over_[over.session] = over.left;
  return {};
}

Status Authority::replay(const LogStage& record) {
  StageState* stage = stage_of(record.stage);
  if (stage == nullptr) return contradicts("names a stage that the run does not have");
  stage->epoch = record.epoch;
  stage->round_used = record.round_used;
  stage->step_done = record.step_done;
  stage->recent = record.recent;
  if (!record.last_commit) return {};
  if (stage->recent.digest_of(record.last_commit->version) != record.last_commit->digest)
    return contradicts("ends a stage with a version that it does not know");
  stage->version = record.last_commit->version;
  stage->digest = record.last_commit->digest;
  stage->secured = true;
  stage->round_committed = record.last_commit->round;
  stage->last_commit = stage->last_commit_sent = record.last_commit;
  return {};
}

Status Authority::replay(const LogNamed& record) {
  note_named(record.commit);
  return {};
}

Status Authority::replay(const LogAgain& record) {
  StageState* stage = stage_of(record.commit.stage);
  if (stage == nullptr) return contradicts("names a stage that the run does not have");
  if (stage->told.empty() || stage->told.back().commit.version < record.commit.version)
    stage->told.push_back({record.commit, loop_.now()});
  again_.push_back([this, commit = record.commit]() mutable {
    if (commit.back_to) {
      const RecentCommits::TakenBack taken{std::exchange(commit.secured, {}), std::exchange(commit.tag, 0)};
      return say_restored(commit, taken);
    }
    port_.write(event_of(commit));
    port_.on_round_commit(commit);
  });
  return {};
}

Status Authority::replay(const LogOverAgain& record) {
  if (over_lately_.empty() || over_lately_.back().session != record.session) over_lately_.push_back(record);
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
  std::vector<Bytes> packed;
  for (const LogRecord& record : compacted()) {
    SHOAL_ASSIGN(packed.emplace_back(), pack_log_record(record));
    if (packed.back().size() > kAuthorityLog.record_bytes_max)
      return make_error(ErrorCode::kTooLarge, "a record of the authority's log would be too large");
  }
  log_->compact(std::move(packed), lifetime_.guard(std::move(done)));
  return {};
}

std::vector<LogRecord> Authority::compacted() const {
  std::vector<LogRecord> records{LogStart{options_.manifest}};
  records.push_back(LogBase{epoch_, port_.paths_logged(), tally_.rounds, tally_.taken_back, tally_.faults});
  std::vector<LogShares::Share> shares;
  for (const auto& [of, entries] : tally_.shares) shares.push_back({of.first, of.second, entries});
  add_in_parts(shares, &LogShares::shares, records);
  std::vector<LogSessions::Over> over;
  for (const auto& [session, left] : over_) over.push_back({session, left});
  add_in_parts(over, &LogSessions::over, records);
  for (const StageState& stage : stages_) compact_stage(stage, records);
  for (const LogOverAgain& lately : over_lately_) records.push_back(lately);
  return records;
}

void Authority::compact_stage(const StageState& stage, std::vector<LogRecord>& records) const {
  records.push_back(
      LogStage{stage.stage, stage.epoch, stage.round_used, stage.step_done, stage.recent, stage.last_commit});
  // One that is open, or came to nothing: whoever still asks hears that it is over.
  if (stage.round_used > stage.round_committed) {
    LogOpen open;
    open.open.stage = stage.stage;
    open.open.round = stage.round_used;
    records.push_back(std::move(open));
  }
  for (const auto& [session, member] : stage.members) records.push_back(LogMember{stage.stage, member->member});
  for (const auto& [session, member] : stage.members)
    if (member->named) records.push_back(LogNamed{*member->named});
  for (const StageState::Told& told : stage.told) records.push_back(LogAgain{told.commit});
}

}  // namespace shoal
