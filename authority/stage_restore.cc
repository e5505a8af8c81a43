#include "authority/stage_restore.h"

#include <algorithm>
#include <utility>

#include "common/log.h"
#include "events/session_end.h"

namespace shoal {
namespace {

constexpr Duration kOpenAgainOfMember = 100ms;  // for each member of the round, between two repeats of its opening

// With the entries of that member alone: the names of all, to all, would grow with the square of a stage's members.
RoundCommit as_told_to(const Session& session, const RoundCommit& commit) {
  RoundCommit told{commit.stage, commit.round, commit.version, commit.digest, commit.tag,
                   commit.step,  {},           commit.back_to};
  for (const Secured& secured : commit.secured)
    if (secured.session == session) told.secured.push_back(secured);
  return told;
}

}  // namespace

// ---- told again ----

void StageRestore::send_commit(const MemberState& member, const RoundCommit& commit) const {
  // A newer one than `commit` is not durable yet.
  if (member.named && member.named->round < commit.round) port_.send(member.member.peer, *member.named);
  port_.send(member.member.peer, as_told_to(member.member.session, commit));
}

void StageRestore::on_link_up(MemberState& member, std::optional<OpenRound>& round) const {
  member.lists.on_link = false;  // it asks when it sees that it missed one
  if (line_.last_abandon) port_.send(member.member.peer, *line_.last_abandon);
  member.commit_sent_at = {};
  repeat(member, round);
}

// An opening names all members to each of them: with many it is repeated less often, so that the bytes of a second grow
// with the members and not with their square.
void StageRestore::repeat(MemberState& member, std::optional<OpenRound>& round) const {
  const TimePoint now = loop_.now();
  if (now - member.commit_sent_at < 1s) return;
  if (line_.last_commit_sent && member.version < line_.last_commit_sent->version) {
    member.commit_sent_at = now;
    return send_commit(member, *line_.last_commit_sent);
  }
  if (!round || !round->sent) return;
  const bool new_link = member.commit_sent_at == TimePoint{};
  const Duration most = std::max<Duration>(1s, std::chrono::milliseconds(round->open.budget_ms) / 4);
  const Duration of_all = static_cast<int>(round->members.size()) * kOpenAgainOfMember;
  const Duration again = new_link ? 1s : std::clamp<Duration>(of_all, 1s, most);
  if (now - std::max(round->sent_at, member.commit_sent_at) < again) return;
  const RoundMember* said = round->find(member.member.session);
  if (said == nullptr || said->decided()) return;
  member.commit_sent_at = now;
  if (round->step && !said->contributed) port_.send(member.member.peer, *round->step);
  port_.send(member.member.peer, round->open);
}

// ---- back ----

bool StageRestore::look(bool may) {
  const MembersOfStage& members = book_.of(line_.stage);
  if (!may || !line_.missing(members)) {
    missing_since_.reset();
    return false;
  }
  const TimePoint now = loop_.now();
  if (!missing_since_) missing_since_ = now;
  const auto version = line_.restorable(members);
  if (!version || (now - *missing_since_ < options_.restore_after && line_.one_may_come(members))) return false;
  go_back_to(*version);
  return true;
}

void StageRestore::go_back_to(Version version) {
  RecentCommits::TakenBack taken = line_.recent.behind(version);
  RoundCommit commit;
  commit.stage = line_.stage;
  commit.round = RoundId(++line_.round_used.value);
  commit.version = Version(line_.version().value + 1);
  commit.digest = *line_.recent.digest_of(version);
  commit.back_to = version;
  log_warning("stage ", line_.stage, ": nobody holds version ", line_.version(), " any more: back to version ", version,
              ", called ", commit.version, " from now on. ", taken.entries(),
              " contributions that later rounds secured are taken back");
  line_.push(commit, taken, port_.settled(line_.stage), loop_.now());
  book_.note_commit(commit, taken);
  missing_since_.reset();
  for (const auto& [session, member] : book_.of(line_.stage)) {
    member->settled = 0;
    member->commit_sent_at = loop_.now();
  }
  log_.decide(LogCommit{commit, port_.paths_logged()}, [this, commit, taken = std::move(taken)] {
    line_.last_commit_sent = commit;
    say_restored(port_, commit, taken);
    for (const auto& [session, member] : book_.of(line_.stage)) send_commit(*member, commit);
  });
}

void say_restored(AuthorityPort& port, const RoundCommit& commit, const RecentCommits::TakenBack& taken) {
  port.write(restored_event(commit.stage, commit.round, commit.version, *commit.back_to, commit.digest, taken.tag,
                            taken.secured, "nobody holds the version before"));
  port.on_restored(commit, taken);
}

}  // namespace shoal
