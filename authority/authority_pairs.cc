// Rounds: who was silent, and who is left out because of it.
#include <algorithm>

#include "authority/authority.h"
#include "common/log.h"

namespace shoal {
namespace {

constexpr std::size_t kReasonMax = 200;     // bytes of a member's words in ours: below limits::kTextMax together
constexpr Duration kBeatFresh = 2500ms;     // two beats and their way here
constexpr Duration kLinkBack = 1s;          // in which a link that broke is up again, and its peer beat
constexpr Duration kWaitingFresh = 2500ms;  // a member that waits says so every second

}  // namespace

bool Authority::beats(const MemberState& member) const { return loop_.now() - member.heard_at <= kBeatFresh; }

// After a sleep of ours the beats of some are read before those of others: nobody is away before the next tick.
bool Authority::away(const MemberState& member) const {
  const TimePoint now = loop_.now();
  if (now - last_tick_ > kSlept) return false;
  const auto link = linked_.find(member.member.peer);
  const bool linked = link != linked_.end() && link->second == member.member.session;
  return now - member.heard_at > (linked ? std::max<Duration>(kBeatFresh, 2 * member.longest_gap) : kLinkBack);
}

bool Authority::rests(const MemberState& member) const {
  return stages_[member.stage.value].unreachable.rests(member.member.peer, loop_.now());
}

// Slow and silent are two things: as long as bytes move at one member, the others wait for them. A member that does not
// beat is no reason to end the attempt, its membership time is.
void Authority::check_stall(StageState& stage) {
  OpenRound& round = *stage.round;
  if (round.contributed.size() < round.open.members.size()) return;
  const auto best = best_vote(round);
  if (best && 2 * best->second > round.open.members.size()) return;  // the grace time decides
  for (const Session& session : round.open.members) {
    if (round.agreed.contains(session) || round.failed.contains(session)) continue;
    const auto waiting = round.waiting.find(session);
    if (waiting == round.waiting.end() || loop_.now() - waiting->second.at > kWaitingFresh)
      return round.stalled_at.reset();
    if (round.stalled_at && waiting->second.at <= *round.stalled_at) return;
  }
  // Once more from everybody: a word of a moment ago may have been followed by bytes.
  if (!round.stalled_at) {
    round.stalled_at = loop_.now();
    return;
  }
  const auto& [by, first] = *round.waiting.begin();
  const std::string reason =
      "no byte of it moves any more: session " + short_name(by) + " waits for " + short_name(first.silent);
  for (const auto& [session, waiting] : round.waiting)
    if (!round.agreed.contains(session)) blame_silent(stage, session, waiting.silent);
  abandon_round(stage, reason);
}

// Whom it names does not count: who brought nothing waited for nobody.
// Who was not ready in time is slow or waits for others, and costs no more than who says nothing: that is no
// misconduct. Who says so long before its time is over does not mean it.
void Authority::on_refused_round(StageState& stage, MemberState& member, const RoundReport& report) {
  const Session session = member.member.session;  // `member` goes with it
  OpenRound& round = *stage.round;
  round.silent.insert(session);
  const auto waited = 2 * (loop_.now() - round.sent_at);  // its clock may go otherwise than ours
  const bool late = report.silent == session && waited >= std::chrono::milliseconds(round.open.budget_ms);
  if (late || ++member.refusals < kRoundRefusalsMax) return try_decide(stage, false);
  end_for_misconduct(session,
                     "it answered " + std::to_string(kRoundRefusalsMax) +
                         " rounds in a row with an error and brought nothing: " + report.reason.substr(0, kReasonMax));
}

void Authority::end_for_misconduct(const Session& session, const std::string& what) {
  const auto at = members_.find(session);
  if (at == members_.end()) return;
  const Duration rest = admission_.on_misconduct(at->second.member.peer, loop_.now());
  log_warning("stage ", at->second.stage, ": session ", short_name(session), " is ended: ", what,
              ". Its peer is admitted again in ", static_cast<int>(seconds_of(rest)), " s");
  end_session(session, what, true);
}

// Who brought nothing, or does not beat, is slow or away: it is left out of the next attempt when that happens twice in
// a row. Else its path to the other one is to blame.
void Authority::blame_silent(StageState& stage, const Session& by, const Session& silent) {
  const auto accused = members_.find(silent), witness = members_.find(by);
  if (accused == members_.end() || witness == members_.end() || accused->second.stage != stage.stage) return;
  if (stage.round->contributed.contains(silent) && beats(accused->second) && beats(witness->second)) {
    stage.round->blames[by] = {silent};
    return;
  }
  stage.round->silent.insert(silent);
}

void Authority::blame_malformed(StageState& stage, const Session& by, const Session& sender,
                                const std::string& reason) {
  const OpenRound& round = *stage.round;
  const auto best = best_vote(round);
  if (best && 2 * best->second > round.open.members.size())
    return try_decide(stage, false);  // the others could use all
  if (sender != by && round.contributed.contains(sender)) stage.round->blames[by] = {sender, true};
  abandon_round(stage, reason);
}

void Authority::settle_blames(StageState& stage, const OpenRound& round) {
  for (const Session& session : round.open.members) {
    const auto member = members_.find(session);
    if (member == members_.end()) continue;
    std::uint32_t& count = member->second.silent_count;  // once an attempt, however many members say it
    // Who was named, and contributed since and answers us, was not silent.
    const bool came = round.contributed.contains(session);
    if (round.silent.contains(session) && !(came && beats(member->second))) {
      if (++count == kSilentMax)
        log_warning("stage ", stage.stage, ": session ", short_name(session), " brought nothing to ", kSilentMax,
                    " attempts in a row: the next ones go without it until a round is committed");
      count = std::min(count, kSilentMax);
    } else if (came) {
      count = 0;
    }
  }
  std::vector<UnreachablePairs::Blame> blames;
  for (const auto& [by, blame] : round.blames) {
    const auto accused = members_.find(blame.whom), witness = members_.find(by);
    if (accused == members_.end() || witness == members_.end()) continue;
    blames.push_back({witness->second.member.peer, accused->second.member.peer, blame.malformed});
  }
  const auto settled = [&](const PeerId& peer) {
    for (const auto& [session, member] : members_)
      if (member.member.peer == peer) return member.settled;
    return std::uint64_t{0};
  };
  for (const UnreachablePairs::LeftOut& out : stage.unreachable.on_attempt_failed(blames, settled, loop_.now())) {
    const std::string what = out.malformed ? "peer " + short_name(out.peer) + " sends parts of a round that peer " +
                                                 short_name(out.other) + " cannot use"
                                           : "peers " + short_name(out.peer) + " and " + short_name(out.other) +
                                                 " cannot exchange the bytes of a round";
    log_warning("stage ", stage.stage, ": ", what, "; ", short_name(out.peer), " is left out and tried again in ",
                static_cast<int>(seconds_of(out.rest)), " s. HINT: ",
                out.malformed ? "is its build of shoal the others', and is its memory sound? Else stop it"
                              : "let each of them reach the other's address, or stop one of them");
    for (auto& [session, member] : members_)
      if (member.member.peer == out.peer && member.stage == stage.stage) show_serving(member);
  }
  loop_.post(lifetime_.guard([this, &stage] { end_left_out(stage); }));
}

// Steps go on without it and it would miss each of them, so it stays outside until its trial.
std::optional<std::string> Authority::left_out_until(const PeerId& peer) const {
  for (const StageState& stage : stages_) {
    if (diloco_active(stage)) continue;
    const auto why = stage.unreachable.why(peer, loop_.now());
    if (!why) continue;
    return (why->malformed
                ? "this machine sent parts of a round that peer " + short_name(why->other) +
                      " of the same stage cannot use"
                : "this machine and peer " + short_name(why->other) + " of the same stage cannot reach each other") +
           ", and rounds go on without this one; it is tried again by itself";
  }
  return std::nullopt;
}

void Authority::end_left_out(StageState& stage) {
  if (failed_ || ended_ || diloco_active(stage)) return;
  std::vector<std::pair<Session, PeerId>> out;
  for (const auto& [session, member] : members_)
    if (member.stage == stage.stage && rests(member)) out.emplace_back(session, member.member.peer);
  for (const auto& [session, peer] : out) {
    const auto why = stage.unreachable.why(peer, loop_.now());
    end_session(session,
                why->malformed
                    ? "left out: it sent parts of a round that peer " + short_name(why->other) + " cannot use"
                    : "left out: it and peer " + short_name(why->other) + " cannot exchange the bytes of a round",
                true);
  }
}

void Authority::forget_proven_pairs(StageState& stage, const OpenRound& round, const Digest& digest) {
  std::set<PeerId> agreed, present;
  for (const auto& [session, member] : members_) {
    if (member.stage != stage.stage) continue;
    present.insert(member.member.peer);
    const auto report = round.agreed.find(session);
    if (report != round.agreed.end() && report->second.digest == digest) agreed.insert(member.member.peer);
  }
  stage.unreachable.on_commit(agreed, present);
}

}  // namespace shoal
