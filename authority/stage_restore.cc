#include "authority/stage_restore.h"

#include <utility>

#include "common/log.h"
#include "events/session_end.h"

namespace shoal {

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
    for (const auto& [session, member] : book_.of(line_.stage)) repeats_.send_commit(*member, commit);
  });
}

void say_restored(AuthorityPort& port, const RoundCommit& commit, const RecentCommits::TakenBack& taken) {
  port.write(restored_event(commit.stage, commit.round, commit.version, *commit.back_to, commit.digest, taken.tag,
                            taken.secured, "nobody holds the version before"));
  port.on_restored(commit, taken);
}

}  // namespace shoal
