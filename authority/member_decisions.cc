#include "authority/member_decisions.h"

#include <optional>
#include <utility>

#include "common/crypto/path_tag.h"
#include "common/log.h"
#include "common/peer_name.h"
#include "events/session_end.h"
#include "transport/dial_trials.h"
#include "transport/envelope.h"
#include "transport/limits.h"

namespace shoal {
namespace {

JoinAnswer refusal(const std::string& reason) {
  JoinAnswer answer;
  answer.reason = reason;
  return answer;
}

JoinAnswer admission(const StageLine& line, const Digest& path_key) {
  JoinAnswer answer;
  answer.accepted = true;
  answer.path_key = path_key;
  answer.stage = line.stage;
  answer.initialise = !line.secured;
  return answer;
}

}  // namespace

bool MemberDecisions::comes_too_early(const Remote& from) {
  JoinAnswer answer;
  for (const auto& stage : stages_)
    if (auto why = stage->keeps_out(from.peer); why && !answer.unreachable) {
      answer.unreachable = true;
      answer.reason = *std::move(why);
    }
  if (!answer.unreachable)
    if (auto paced = admission_.refuse(from.peer, port_.other_host(from.peer), loop_.now())) {
      answer.later = true;
      answer.reason = *std::move(paced);
    }
  if (!answer.unreachable && !answer.later) return false;
  port_.send(from.peer, std::move(answer));
  return true;
}

void MemberDecisions::on_join(const Remote& from, const JoinRequest& request) {
  if (course_.ended()) return course_.tell_end(from.peer);
  if (book_.is_over(from.session)) return book_.tell_over(from);
  if (const MemberState* known = book_.find(from.session))
    return log_.idle() ? port_.send(from.peer, admission(rounds_of(known->stage).line(),
                                                         path_key_of(options_.path_secret, from.session)))
                       : void();  // else it is on its way
  if (comes_too_early(from)) return;
  if (const Status named = check_peer_name(request.name); !named.ok())
    return port_.send(from.peer, refusal(named.error().message));
  const Result<StageChoice> choice = placement_.of_joiner(from.peer, request);
  if (!choice.ok()) return port_.send(from.peer, refusal(choice.error().message));
  if (choice->wish_may_come && book_.wish_waits(from.session)) return;
  if (book_.of(choice->stage).size() >= limits::kReplicasMax)
    return port_.send(from.peer, refusal("stage " + std::to_string(choice->stage.value) +
                                         " has as many replicas as a stage may have"));
  admit(from, request, *choice);
}

void MemberDecisions::admit(const Remote& from, const JoinRequest& request, const StageChoice& choice) {
  std::optional<Session> older;
  for (const auto& [session, member] : book_.members())
    if (member.member.peer == from.peer) older = session;
  const Whereabouts whereabouts = usable(request.whereabouts);
  if (!lists_.fits(present_list(), whereabouts, older))
    return port_.send(from.peer, refusal("the run has as many members as its signed list has room for (" +
                                         std::to_string(options_.list_bytes_max >> 10) + " KiB)"));
  if (older) end_session(*older, "replaced by a newer session of the same peer", true, {});

  StageRounds& stage = rounds_of(choice.stage);
  MemberState& member = book_.place(from.session, choice.stage);
  member.member.session = from.session;
  member.member.peer = from.peer;
  member.member.whereabouts = whereabouts;
  member.of_this_life = true;
  member.beats.heard_at = member.fetch.idle_since = member.jobs.present_from = loop_.now();
  member.enter(stage.line().secured ? MemberPhase::kFetching : MemberPhase::kIdle);
  placement_.moves().on_joined(from.peer, from.session, choice.stage, loop_.now());
  if (member.to_fetch()) stage.on_joiner();
  port_.write({.event = EventKind::kMember,
               .stage = choice.stage,
               .about = from.session,
               .about_peer = from.peer,
               .state = "joined",
               .cause = choice.reason,
               .peer_name = request.name});
  if (whereabouts.reach != Reach::kDirect) write_reach(member);
  ++stage.line().epoch.value;
  book_.change_list();
  log_.decide(LogMember{member.stage, member.member}, [this, from, reason = choice.reason, list = present_list()] {
    lists_.publish(list);
    MemberState* joined = book_.find(from.session);
    if (joined == nullptr) return;
    lists_.give(*joined, Epoch(0), 0);
    JoinAnswer answer = admission(rounds_of(joined->stage).line(), path_key_of(options_.path_secret, from.session));
    answer.reason = reason;
    port_.send(from.peer, std::move(answer));
  });
}

void MemberDecisions::show_serving(MemberState& member) {
  const RoundBlames& blames = rounds_of(member.stage).blames();
  const bool shown_serving = member.ready() && !member.leaves() && !blames.doubted(member);
  if (shown_serving == member.member.serving) return;
  if (shown_serving && !member.shown.changes.take(loop_.now())) {  // its next beats ask again
    if (!std::exchange(member.shown.unsteady_said, true))
      log_warning("stage ", member.stage, ": session ", short_name(member.member.session),
                  " says again and again that it serves and does not: others hear of it every ",
                  static_cast<int>(1 / kServingPerSecond), " s at most");
    return;
  }
  member.member.serving = shown_serving;
  if (shown_serving) {
    member.shown.since = loop_.now();
    placement_.moves().on_serving(member.member.peer, member.member.session, loop_.now());
  }
  port_.write({.event = EventKind::kMember,
               .stage = member.stage,
               .about = member.member.session,
               .state = shown_serving     ? "serving"
                        : member.leaves() ? "leaving"
                                          : "not serving",
               .cause = blames.doubted_because(member)});
  list_member(member);
}

void MemberDecisions::write_reach(const MemberState& member) const {
  port_.write({.event = EventKind::kMember,
               .stage = member.stage,
               .about = member.member.session,
               .state = "reach",
               .cause = std::string(name_of(member.member.whereabouts.reach))});
}

void MemberDecisions::show_reach(const Session& session, const Whereabouts& given) {
  MemberState* const member = book_.find(session);
  const Whereabouts found = usable(given);
  if (member == nullptr || member->member.whereabouts == found || !lists_.fits(present_list(), found, session)) return;
  member->member.whereabouts = found;
  write_reach(*member);
  list_member(*member);
}

Status MemberDecisions::set_relays(std::vector<RelayPlace> relays) {
  SHOAL_TRY(check_relays(relays));
  if (relays == book_.relays()) return {};
  MemberList list = present_list();
  list.relays = relays;
  if (!lists_.fits(std::move(list), {}, {}))
    return make_error(ErrorCode::kTooLarge, "the run's signed list has no room for its relays");
  book_.set_relays(std::move(relays));
  log_.decide(LogRelays{book_.relays()}, [this, list = present_list()] { lists_.publish(list); });
  return {};
}

void MemberDecisions::list_member(MemberState& member) {
  ++rounds_of(member.stage).line().epoch.value;
  book_.change_list();
  member.member.version = member.version;
  log_.decide(LogMember{member.stage, member.member}, [this, list = present_list()] { lists_.publish(list); });
}

void MemberDecisions::on_leave(const Remote& from, const Leave& leave) {
  MemberState* member = book_.find(from.session);
  if (member == nullptr) return book_.tell_over(from);
  StageRounds& stage = rounds_of(member->stage);
  // Two that leave at a time count on each other: the second one asks again until somebody else holds the state.
  if (!stage.held_without(from.session)) return;
  const bool left_before = member->leaves();
  if (!stage.waits_for_round(*member, leave))
    return end_session(from.session, std::string(kLeft), false,
                       [this, peer = from.peer] { port_.send(peer, Goodbye{}); });
  if (!left_before && std::exchange(member->member.serving, false)) list_member(*member);
  stage.maybe_open();
}

void MemberDecisions::end_session(const Session& session, const std::string& reason, bool fenced,
                                  std::function<void()> then) {
  if (book_.find(session) == nullptr) return;
  const StageId stage_id = book_.find(session)->stage;
  const PeerId peer = book_.find(session)->member.peer;
  StageRounds& stage = rounds_of(stage_id);
  stage.on_over(session, peer, fenced);
  if (book_.find(session) == nullptr) return;  // the end of its round was its end too
  placement_.moves().on_over(peer, session, !fenced, loop_.now());
  book_.end(session, reason, !fenced);
  ++stage.line().epoch.value;
  log_.decide(LogOver{session, reason},
              [this, session, stage_id, peer, reason, fenced, then = std::move(then), list = present_list()] {
                // By name and before its connections are closed; it may not arrive, a later message of the session is
                // answered with it again.
                if (fenced) port_.send(peer, Fenced{session, reason});
                if (fenced) port_.fence(session);
                if (then) then();
                port_.write(session_over_event(session, stage_id, reason));
                port_.on_session_over(session, stage_id, reason);
                lists_.publish(list);
              });
  for (const auto& [other, member] : book_.of(stage_id)) show_serving(*member);  // left out for it: it serves again
  stage.maybe_open();
}

void MemberDecisions::end_for_misconduct(const Session& session, const std::string& what) {
  const MemberState* member = book_.find(session);
  if (member == nullptr) return;
  const Duration rest = admission_.on_misconduct(member->member.peer, loop_.now());
  log_warning("stage ", member->stage, ": session ", short_name(session), " is ended: ", what,
              ". Its peer is admitted again in ", static_cast<int>(seconds_of(rest)), " s");
  end_session(session, what, true, {});
}

MemberList MemberDecisions::present_list() const {
  std::vector<StageMembers> heads;
  for (const auto& stage : stages_) heads.push_back(stage->line().head());
  return lists_.list_of(std::move(heads));
}

}  // namespace shoal
