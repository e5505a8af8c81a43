#include "authority/round_repeats.h"

#include <algorithm>

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

void RoundRepeats::send_commit(const MemberState& member, const RoundCommit& commit) const {
  // A newer one than `commit` is not durable yet.
  if (member.named && member.named->round < commit.round) port_.send(member.member.peer, *member.named);
  port_.send(member.member.peer, as_told_to(member.member.session, commit));
}

void RoundRepeats::on_link_up(MemberState& member, const StageLine& line, OpenRound* round) const {
  member.lists.on_link = false;  // it asks when it sees that it missed one
  if (line.last_abandon) port_.send(member.member.peer, *line.last_abandon);
  member.commit_sent_at = {};
  repeat(member, line, round);
}

// An opening names all members to each of them: with many it is repeated less often, so that the bytes of a second grow
// with the members and not with their square.
void RoundRepeats::repeat(MemberState& member, const StageLine& line, OpenRound* round) const {
  const TimePoint now = loop_.now();
  if (now - member.commit_sent_at < 1s) return;
  if (line.last_commit_sent && member.version < line.last_commit_sent->version) {
    member.commit_sent_at = now;
    return send_commit(member, *line.last_commit_sent);
  }
  if (round == nullptr || !round->sent) return;
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

}  // namespace shoal
