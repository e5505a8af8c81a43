#include "authority/round_blames.h"

#include <algorithm>

#include "common/log.h"

namespace shoal {

RoundBlames::RoundBlames(StageId stage, const MemberBook& book, const FailureDetector& detector, const EventLoop& loop)
    : stage_(stage), book_(book), detector_(detector), loop_(loop) {}

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

void RoundBlames::say(const UnreachablePairs::LeftOut& out) const {
  const std::string what = out.malformed ? "peer " + short_name(out.peer) + " sends parts of a round that peer " +
                                               short_name(out.other) + " cannot use"
                                         : "peers " + short_name(out.peer) + " and " + short_name(out.other) +
                                               " cannot exchange the bytes of a round";
  log_warning("stage ", stage_, ": ", what, "; ", short_name(out.peer), " is left out and tried again in ",
              static_cast<int>(seconds_of(out.rest)), " s. HINT: ",
              out.malformed ? "is its build of shoal the others', and is its memory sound? Else stop it"
                            : "let each of them reach the other's address, or stop one of them");
}

std::vector<MemberState*> RoundBlames::on_abandon(const OpenRound& round) {
  count_silent(round);
  const auto& members = book_.of(stage_);
  const auto of_peer = [&](const PeerId& peer) {
    const auto at = std::ranges::find_if(members, [&](const auto& one) { return one.second->member.peer == peer; });
    return at == members.end() ? nullptr : at->second;
  };
  std::vector<UnreachablePairs::Blame> blames;
  for (const auto& [by, said] : round.members) {
    if (!said.blame) continue;
    const auto accused = members.find(said.blame->whom), witness = members.find(by);
    if (accused == members.end() || witness == members.end()) continue;
    blames.push_back({witness->second->member.peer, accused->second->member.peer, said.blame->malformed});
  }
  const auto settled = [&](const PeerId& peer) {
    const MemberState* member = of_peer(peer);
    return member == nullptr ? std::uint64_t{0} : member->settled;
  };
  std::vector<MemberState*> hidden;
  for (const UnreachablePairs::LeftOut& out : pairs_.on_attempt_failed(blames, settled, loop_.now())) {
    say(out);
    if (MemberState* member = of_peer(out.peer)) hidden.push_back(member);
  }
  return hidden;
}

void RoundBlames::on_commit(const OpenRound& round, const Digest& digest) {
  std::set<PeerId> agreed, present;
  for (const auto& [session, member] : book_.of(stage_)) {
    present.insert(member->member.peer);
    if (round.agrees_on(session, digest)) agreed.insert(member->member.peer);
  }
  pairs_.on_commit(agreed, present);
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

std::string RoundBlames::ends_because(const MemberState& member) const {
  const auto why = pairs_.why(member.member.peer, loop_.now());
  return why->malformed ? "left out: it sent parts of a round that peer " + short_name(why->other) + " cannot use"
                        : "left out: it and peer " + short_name(why->other) + " cannot exchange the bytes of a round";
}

}  // namespace shoal
