#include "authority/round_blames.h"

#include <algorithm>
#include <utility>

#include "authority/member_decisions.h"
#include "common/log.h"

namespace shoal {

void RoundBlames::note_silent(OpenRound& round, const Session& by, const Session& silent) const {
  const auto& members = book_.of(stage_);
  const auto accused = members.find(silent), witness = members.find(by);
  if (accused == members.end() || witness == members.end()) return;
  if (round.has_contribution(silent) && detector_.beats(*accused->second) && detector_.beats(*witness->second))
    round.find(by)->blame = {silent};
  else if (RoundMember* named = round.find(silent))
    named->silent = true;
}

void RoundBlames::count_silent(const OpenRound& round) {
  const auto& members = book_.of(stage_);
  for (const auto& [session, said] : round.members) {
    const auto member = members.find(session);
    if (member == members.end()) continue;
    std::uint32_t& count = member->second->blame.silent_count;  // once an attempt, however many members say it
    // A member that was named, and contributed since and answers us, was not silent.
    const bool came = said.contributed.has_value();
    if (said.silent && !(came && detector_.beats(*member->second))) {
      if (++count == kSilentMax)
        log_warning("stage ", stage_, ": session ", short_name(session), " brought nothing to ", kSilentMax,
                    " attempts in a row: the next ones go without it until a round is committed");
      count = std::min(count, kSilentMax);
    } else if (came) {
      count = 0;
    }
  }
}

void RoundBlames::say(const UnreachablePairs::Settled& settled) const {
  const std::string peer = short_name(settled.peer), other = short_name(settled.other);
  const std::string what = settled.malformed
                               ? "peer " + peer + " sends parts of a round that peer " + other + " cannot use"
                               : "peers " + peer + " and " + other + " cannot exchange the bytes of a round";
  const std::string how = settled.out ? "; " + peer + " is left out and" : "; others add up for both, and the two are";
  log_warning("stage ", stage_, ": ", what, how, " tried again in ", static_cast<int>(seconds_of(settled.rest)),
              " s. HINT: ",
              settled.malformed ? "is its build of shoal the others', and is its memory sound? Else stop it"
                                : "let each of them reach the other's address, or stop one of them");
}

MemberState* RoundBlames::member_of(const PeerId& peer) const {
  const auto& members = book_.of(stage_);
  const auto at = std::ranges::find_if(members, [&](const auto& one) { return one.second->member.peer == peer; });
  return at == members.end() ? nullptr : at->second;
}

void RoundBlames::on_abandon(const OpenRound& round, std::size_t owners) {
  count_silent(round);
  const auto& members = book_.of(stage_);
  std::vector<UnreachablePairs::Blame> blames;
  std::set<PeerId> peers;
  for (const auto& [by, said] : round.members) {
    const auto witness = members.find(by);
    if (witness == members.end()) continue;
    peers.insert(witness->second->member.peer);
    if (!said.blame) continue;
    const auto accused = members.find(said.blame->whom);
    if (accused == members.end()) continue;
    // A sum that is missing because its owner waits for a piece says nothing of the way between the two.
    if (!said.blame->malformed && !said.lacks_piece && round.members.at(said.blame->whom).lacks_piece) continue;
    blames.push_back({witness->second->member.peer, accused->second->member.peer, said.blame->malformed});
  }
  const auto targets = [&](const PeerId& peer) {
    const MemberState* member = member_of(peer);
    return member == nullptr ? std::uint64_t{0} : member->settled;
  };
  const auto made = pairs_.on_attempt_failed(blames, peers, owners, targets, loop_.now());
  for (const UnreachablePairs::Settled& settled : made) say(settled);
  for (const UnreachablePairs::Settled& settled : made)  // the list shows who serves from now on
    for (const PeerId& peer : {settled.peer, settled.other})
      if (MemberState* member = member_of(peer)) decisions_.show_serving(*member);
}

void RoundBlames::bring_back(std::size_t owners) {
  if (pairs_.empty()) return;
  std::set<PeerId> here, ready;
  for (const auto& [session, member] : book_.of(stage_)) {
    if (!member->ready()) continue;
    ready.insert(member->member.peer);
    if (reliable(*member) && !detector_.away(*member)) here.insert(member->member.peer);
  }
  for (const PeerId& peer : pairs_.bring_back(here, std::move(ready), owners, loop_.now()))
    if (MemberState* member = member_of(peer)) decisions_.show_serving(*member);
}

std::vector<std::pair<std::size_t, std::size_t>> RoundBlames::apart(const std::vector<Session>& members) const {
  std::map<PeerId, std::size_t> places;
  for (std::size_t i = 0; i < members.size(); ++i) places[book_.find(members[i])->member.peer] = i;
  std::vector<std::pair<std::size_t, std::size_t>> apart;
  for (const auto& [one, other] : pairs_.apart(loop_.now()))
    if (places.contains(one) && places.contains(other)) apart.emplace_back(places.at(one), places.at(other));
  return apart;
}

void RoundBlames::on_commit(const OpenRound& round, const Digest& digest) {
  std::set<PeerId> agreed, owners, present;
  for (const auto& [session, member] : book_.of(stage_)) {
    present.insert(member->member.peer);
    if (round.agrees_on(session, digest)) agreed.insert(member->member.peer);
    if (round.owns(session)) owners.insert(member->member.peer);
  }
  pairs_.on_commit(agreed, owners, present);
}

void RoundBlames::try_now() {
  const auto& members = book_.of(stage_);
  pairs_.try_now(loop_.now(), [&](const PeerId& peer) {
    return members.size() > 2 && std::ranges::any_of(members, [&](const auto& one) {
             return one.second->member.peer == peer && one.second->flushed;
           });
  });
}

std::string RoundBlames::doubted_because(const MemberState& member) const {
  if (!doubted(member)) return "";
  return pairs_.sends_malformed(member.member.peer) ? "it sends parts of a round that another member cannot use"
                                                    : "it and another member cannot exchange the bytes of a round";
}

std::optional<std::string> RoundBlames::keeps_out(const PeerId& peer) const {
  const auto why = pairs_.why(peer, loop_.now());
  if (!why) return std::nullopt;
  return (why->malformed
              ? "this machine sent parts of a round that peer " + short_name(why->other) +
                    " of the same stage cannot use"
              : "this machine and peer " + short_name(why->other) + " of the same stage cannot reach each other") +
         ", and rounds go on without this one; it is tried again by itself";
}

void RoundBlames::end_left_out() {
  std::vector<Session> out;
  for (const auto& [session, member] : book_.of(stage_))
    if (rests(*member)) out.push_back(session);
  for (const Session& session : out) decisions_.end_session(session, ends_because(*book_.find(session)), true, {});
}

std::string RoundBlames::ends_because(const MemberState& member) const {
  const auto why = pairs_.why(member.member.peer, loop_.now());
  return why->malformed ? "left out: it sent parts of a round that peer " + short_name(why->other) + " cannot use"
                        : "left out: it and peer " + short_name(why->other) + " cannot exchange the bytes of a round";
}

// Once may be a fault of its memory, and the next attempt goes without it where enough are left. A step cannot: the
// session would end for what it missed, and the next one of the same peer would begin with a clean sheet.
void RoundBlames::name_contradicting(const OpenRound& round, bool may_leave_out) {
  for (const Session& session : round.contradicting()) {
    MemberState* member = book_.find(session);
    if (member == nullptr) continue;
    const std::string what = "it agreed on a weight or tag of the whole that is not that of the contributions";
    if (std::exchange(member->blame.contradicted, true)) {
      decisions_.end_for_misconduct(session, what + ", in two rounds");
      continue;
    }
    if (may_leave_out) leave_out(*member);
    port_.write({.event = EventKind::kRoundFailed,
                 .stage = stage_,
                 .about = session,
                 .round = round.open.round,
                 .cause = what});
    log_warning("stage ", stage_, ": session ", short_name(session), ": ", what,
                ". Its session ends at the second time");
  }
}

}  // namespace shoal
