// Joining, beats, leaving, fencing.
#include <algorithm>

#include "authority/authority.h"
#include "authority/planner.h"
#include "common/log.h"
#include "events/delay.h"
#include "transport/dial_trials.h"
#include "transport/limits.h"

namespace shoal {
namespace {

constexpr Duration kOpenAgainOfMember = 100ms;  // for each member of the round, between two repeats of its opening

}  // namespace

JoinAnswer Authority::join_answer(const MemberState& member) const {
  const StageState& stage = stages_[member.stage.value];
  JoinAnswer answer;
  answer.accepted = true;
  answer.stage = member.stage;
  answer.initialise = !stage.secured;
  return answer;
}

void Authority::refuse_join(const Remote& from, const std::string& reason) {
  JoinAnswer answer;
  answer.reason = reason;
  port_.send(from.peer, std::move(answer));
}

bool Authority::wish_waits(const Session& session) {
  const TimePoint now = loop_.now();
  std::erase_if(wishes_, [&](const auto& wish) { return now - wish.second > 2 * kWishPatience; });  // it went away
  const auto at = wishes_.find(session);
  if (at == wishes_.end() && wishes_.size() >= kWishesMax) return false;
  return now - wishes_.emplace(session, now).first->second < kWishPatience;
}

void Authority::tell_over(const Remote& to) {
  const auto at = over_.find(to.session);
  if (at != over_.end() && at->second) return port_.send(to.peer, Goodbye{});
  port_.send(to.peer,
             Fenced{to.session, at == over_.end() ? "not a member" : "this session is over; join as a new one"});
}

bool Authority::knows(const Session& session) const {
  return ended_ || members_.count(session) > 0 || over_.count(session) > 0;
}

void Authority::on_join(const Remote& from, const JoinRequest& request) {
  if (ended_) return port_.send(from.peer, end_);
  if (over_.count(from.session)) return tell_over(from);
  if (const auto known = members_.find(from.session); known != members_.end())
    return undurable_ == 0 ? port_.send(from.peer, join_answer(known->second)) : void();  // else it is on its way
  std::vector<StageSupply> supply;
  for (const StageState& stage : stages_)
    supply.push_back({stage.stage, 0, 0, 0, stage.secured, stage.version, stage.digest});
  std::optional<Session> older;
  for (const auto& [session, member] : members_) {
    if (member.member.peer == from.peer) {
      older = session;
      continue;
    }
    StageSupply& of = supply[member.stage.value];
    ++of.members;
    of.serving += member.member.serving ? 1 : 0;
    of.rate_sum += member.rate;
  }
  const auto left_out = left_out_until(from.peer);
  const auto paced = left_out ? std::nullopt : admission_.refuse(from.peer, port_.other_host(from.peer), loop_.now());
  if (left_out || paced) {
    JoinAnswer answer;
    answer.unreachable = left_out.has_value();
    answer.later = paced.has_value();
    answer.reason = left_out ? *left_out : *paced;
    return port_.send(from.peer, std::move(answer));
  }
  const Result<StageChoice> choice = choose_stage(supply, wish_of(request));
  if (!choice.ok()) return refuse_join(from, choice.error().message);
  if (choice->wish_may_come && wish_waits(from.session)) return;
  if (supply[choice->stage.value].members >= limits::kReplicasMax)
    return refuse_join(from,
                       "stage " + std::to_string(choice->stage.value) + " has as many replicas as a stage may have");
  const std::vector<std::string> addresses = usable_addresses(request.addresses);
  if (!fits_list(addresses, older))
    return refuse_join(from, "the run has as many members as its signed list has room for (" +
                                 std::to_string(options_.list_bytes_max >> 10) + " KiB)");
  if (older) end_session(*older, "replaced by a newer session of the same peer", true);

  StageState& stage = stages_[choice->stage.value];
  const TimePoint now = loop_.now();
  MemberState& member = place_member(from.session, choice->stage);
  member.member.session = from.session;
  member.member.peer = from.peer;
  member.member.addresses = addresses;
  member.rate = request.rate;
  member.heard_at = now;
  member.fetching = stage.secured;
  if (stage.secured) hold_rounds(stage, options_.join_hold);
  port_.write({.event = EventKind::kMember,
               .stage = choice->stage,
               .about = from.session,
               .about_peer = from.peer,
               .state = "joined",
               .cause = choice->reason});
  ++stage.epoch.value;
  ++epoch_.value;
  decide(LogMember{member.stage, member.member}, [this, from, reason = choice->reason, list = build_list()] {
    publish(list);
    const auto at = members_.find(from.session);
    if (at == members_.end()) return;
    send_list(at->second, Epoch(0), 0);
    JoinAnswer answer = join_answer(at->second);
    answer.reason = reason;
    port_.send(from.peer, std::move(answer));
  });
}

void Authority::on_beat(const Remote& from, const Beat& beat) {
  const auto at = members_.find(from.session);
  if (at == members_.end()) return tell_over(from);
  MemberState& member = at->second;
  if (beat.stage != member.stage) return;
  StageState& stage = *stage_of(member.stage);
  note_life(member, beat, loop_.now(), options_.membership);
  member.rate = beat.rate;
  member.capacity = beat.capacity;
  member.stranded = beat.stranded;
  member.delay = std::min<double>(beat.delay_milli / 1000.0, DelayHistogram::kBins - 1);
  member.steps = beat.inner_steps;
  if (beat.version <= stage.version) member.version = beat.version;
  member.settled = beat.version == stage.version ? beat.settled_targets : 0;
  note_fetch(member, beat);
  update_serving(member, beat);
  if (beat.version > stage.version && !keep_ahead(member, beat.version)) return;
  member.ahead = beat.version > stage.version;

  BeatAck ack = status_;
  ack.list_epoch = lists_.newest().epoch;
  port_.send(from.peer, ack);
  if (ended_) port_.send(from.peer, end_);
  repeat_what_it_missed(member);
  maybe_open(stage);
}

void Authority::note_fetch(MemberState& member, const Beat& beat) {
  StageState& stage = *stage_of(member.stage);
  if (!beat.behind || beat.version >= stage.version) return member.behind_since.reset();
  const TimePoint now = loop_.now();
  if (member.behind_since && beat.version <= member.behind_at) return;
  if (member.behind_since) {  // it has fetched a version, and that is not the newest any more
    const Duration took = std::min<Duration>(now - *member.behind_since, fetch_patience(stage));
    hold_rounds(stage, took + took / 4);
  }
  member.behind_since = now;
  member.behind_at = beat.version;
}

void Authority::hold_rounds(StageState& stage, Duration time) {
  constexpr int kTimesApart = 10;
  const TimePoint now = loop_.now();
  if (now < stage.hold_allowed_at) return;
  stage.hold_until = now + time;
  stage.hold_allowed_at = now + kTimesApart * time;
}

// A longer gap than `membership` passed while we were away.
void Authority::note_life(MemberState& member, const Beat& beat, TimePoint now, Duration membership) {
  constexpr double kGapKept = 0.9;  // of the longest one, a beat
  const Duration gap = std::min<Duration>(now - member.heard_at, membership);
  member.longest_gap = std::max(gap, from_seconds(kGapKept * seconds_of(member.longest_gap)));
  member.heard_at = now;
  member.job = std::chrono::milliseconds(beat.job_ms);
  member.longest_job = std::chrono::milliseconds(beat.longest_ms);
  member.longest_any = std::max(member.longest_any, member.longest_job);
}

void Authority::update_serving(MemberState& member, const Beat& beat) {
  StageState& stage = *stage_of(member.stage);
  member.leaving = member.leaving || beat.leaving;
  member.serves = beat.serving;
  // Of an older version it may serve microbatches no longer than until it noticed; it becomes ready only at the newest
  // one.
  if (!beat.serving || beat.version > stage.version) member.ready = false;
  if (beat.serving && !member.ready && beat.version == stage.version) member.ready = true;
  if (member.ready) member.fetching = false;
  member.beaten = true;
  member.held = beat.serving ? std::nullopt : beat.held;
  note_had(stage, member);
  show_serving(member);
}

// As the list shows it. To who is left out of rounds nothing new is sent: no round may secure it.
void Authority::show_serving(MemberState& member) {
  const auto& unreachable = stages_[member.stage.value].unreachable;
  const bool doubted = unreachable.doubted(member.member.peer);
  const bool shown_serving = member.ready && !member.leaving && !doubted;
  if (shown_serving == member.member.serving) return;
  if (shown_serving && !member.serving_shown.take(loop_.now())) {  // its next beats ask again
    if (!std::exchange(member.unsteady_said, true))
      log_warning("stage ", member.stage, ": session ", short_name(member.member.session),
                  " says again and again that it serves and does not: others hear of it every ",
                  static_cast<int>(1 / kServingPerSecond), " s at most");
    return;
  }
  member.member.serving = shown_serving;
  port_.write({.event = EventKind::kMember,
               .stage = member.stage,
               .about = member.member.session,
               .state = shown_serving    ? "serving"
                        : member.leaving ? "leaving"
                                         : "not serving",
               .cause = !doubted ? ""
                        : unreachable.sends_malformed(member.member.peer)
                            ? "it sends parts of a round that another member cannot use"
                            : "it and another member cannot exchange the bytes of a round"});
  list_member(member);
}

bool Authority::keep_ahead(MemberState& member, Version version) {
  const StageState& stage = *stage_of(member.stage);
  const Session session = member.member.session;
  const std::string cause = "it holds version " + std::to_string(version.value) + ", and the authority's log knows " +
                            std::to_string(stage.version.value) + " as the newest";
  if (!member.ahead) {
    port_.write({.event = EventKind::kMember,
                 .stage = member.stage,
                 .about = session,
                 .version = version,
                 .state = "ahead",
                 .cause = cause});
    log_warning("stage ", member.stage, ": session ", short_name(session), " is ahead: ", cause,
                ". The log lost what had been told: was an older copy put back? HINT: stop, put the newer "
                "authority.log back and resume; else it has to fetch version ",
                stage.version.value, " from a peer that holds it");
  }
  const bool another = std::any_of(stage.members.begin(), stage.members.end(), [&](const auto& entry) {
    return entry.second->ready && entry.second->version == stage.version;
  });
  if (another) end_session(session, "ahead of the run: " + cause, true);
  return !another;
}

void Authority::list_member(MemberState& member) {
  ++stage_of(member.stage)->epoch.value;
  ++epoch_.value;
  member.member.version = member.version;
  decide(LogMember{member.stage, member.member}, [this, list = build_list()] { publish(list); });
}

// Messages are not reliable: what a member should have by now is sent again, at most once a second. An opening names
// all members to each of them: with many it is repeated less often, so that the bytes of a second grow with the members
// and not with their square.
void Authority::repeat_what_it_missed(MemberState& member) {
  StageState& stage = *stage_of(member.stage);
  const TimePoint now = loop_.now();
  if (now - member.commit_sent_at < 1s) return;
  if (stage.last_commit_sent && member.version < stage.last_commit_sent->version) {
    member.commit_sent_at = now;
    return send_commit(member, *stage.last_commit_sent);
  }
  if (!stage.round || !stage.round->sent) return;
  const OpenRound& round = *stage.round;
  const Session& session = member.member.session;
  const auto& members = round.open.members;
  const bool new_link = member.commit_sent_at == TimePoint{};
  const Duration most = std::max<Duration>(1s, std::chrono::milliseconds(round.open.budget_ms) / 4);
  const Duration of_all = static_cast<int>(members.size()) * kOpenAgainOfMember;
  const Duration again = new_link ? 1s : std::clamp<Duration>(of_all, 1s, most);
  if (now - std::max(round.sent_at, member.commit_sent_at) < again) return;
  if (std::find(members.begin(), members.end(), session) == members.end()) return;
  if (round.agreed.count(session) || round.failed.count(session)) return;
  member.commit_sent_at = now;
  if (const auto step = steps_.find(round.open.step); step != steps_.end() && !round.contributed.count(session))
    port_.send(member.member.peer, step->second);
  port_.send(member.member.peer, round.open);
}

void Authority::on_leave(const Remote& from, const Leave& leave) {
  const auto at = members_.find(from.session);
  if (at == members_.end()) return tell_over(from);
  MemberState& member = at->second;
  StageState& stage = *stage_of(member.stage);
  const bool in_round =
      stage.round && std::count(stage.round->open.members.begin(), stage.round->open.members.end(), from.session) > 0;
  // Two that leave at a time count on each other: the second one asks again until somebody else holds the state.
  if (!held_without(stage, from.session)) return;
  if (!in_round && !(leave.round_wanted && member.ready && !rests(member)))
    return end_session(from.session, std::string(kLeft), false,
                       [this, peer = from.peer] { port_.send(peer, Goodbye{}); });
  if (!member.leave_asked && in_round && diloco_active(stage) && stage.round->contributed.contains(from.session))
    member.leave_after = stage.round->open.round;
  member.leave_asked = true;
  if (!member.leaving) {
    member.leaving = true;
    if (member.member.serving) {
      member.member.serving = false;
      list_member(member);
    }
  }
  maybe_open(stage);
}

bool Authority::held_without(const StageState& stage, const Session& session) const {
  return !stage.secured || std::any_of(stage.members.begin(), stage.members.end(), [&](const auto& entry) {
    return entry.first != session && entry.second->ready && entry.second->version == stage.version;
  });
}

void Authority::end_session(const Session& session, const std::string& reason, bool fenced,
                            std::function<void()> then) {
  const auto at = members_.find(session);
  if (at == members_.end()) return;
  const StageId stage_id = at->second.stage;
  const PeerId peer = at->second.member.peer;
  StageState& stage = *stage_of(stage_id);
  member_leaves_round(stage, session);
  over_[session] = !fenced;
  note_over(session, stage_id, reason);
  fenced ? stage.unreachable.on_gone(peer) : stage.unreachable.on_left(peer);
  drop_member(session);
  ++stage.epoch.value;
  ++epoch_.value;
  decide(LogOver{session, reason},
         [this, session, stage_id, peer, reason, fenced, then = std::move(then), list = build_list()] {
           // By name and before its connections are closed; it may not arrive, a later message of the session is
           // answered with it again.
           if (fenced) port_.send(peer, Fenced{session, reason});
           if (fenced) port_.fence(session);
           if (then) then();
           port_.write(session_over_event(session, stage_id, reason));
           port_.on_session_over(session, stage_id, reason);
           publish(list);
         });
  for (const auto& [other, member] : stage.members) show_serving(*member);  // who was left out for it serves again
  maybe_open(stage);
}

Duration Authority::silence_patience(const MemberState& member) const {
  return std::max(options_.membership, 2 * member.longest_gap);
}

Duration Authority::job_patience(const MemberState& member) const {
  if (member.longest_job == Duration::zero()) return std::max(options_.membership, kFirstJob);
  const Duration measured = from_seconds(kJobFactor * seconds_of(member.longest_job));
  return std::max(options_.membership, std::min(measured, kPatienceMax));
}

Duration Authority::job_allowance(const StageState& stage) const {
  constexpr int kTurns = 3;  // to contribute, to prepare, and one for what was measured on other work
  Duration longest{};
  for (const auto& [session, member] : stage.members) longest = std::max(longest, member->longest_any);
  return std::min(kTurns * longest, kTurns * kPatienceMax);
}

// A process whose network thread answers while its device hangs sends beats too.
std::string Authority::dead_because(const MemberState& member, TimePoint now) const {
  const auto text = [](Duration d) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
    return std::to_string(ms / 1000) + "." + std::to_string(ms % 1000 / 100) + " s";
  };
  if (const Duration silent = now - member.heard_at; silent > silence_patience(member))
    return "no sign of life within the membership time: silent for " + text(silent);
  if (member.job <= job_patience(member)) return "";
  return "no sign of life from its device: a job runs for " + text(member.job) +
         (member.longest_job == Duration::zero()
              ? ", the first of its kind"
              : ", the longest finished one of its kind took " + text(member.longest_job)) +
         ", and at most " + text(job_patience(member)) + " are waited for";
}

void Authority::check_memberships(TimePoint now) {
  std::map<Session, std::string> dead;
  for (const auto& [session, member] : members_)
    if (std::string why = dead_because(member, now); !why.empty()) dead.emplace(session, std::move(why));
  // After the end nobody is fenced any more, and who is silent is not waited for.
  if (ended_) return static_cast<void>(std::erase_if(unheard_, [&](const Session& s) { return dead.contains(s); }));
  for (const auto& [session, why] : dead) end_session(session, why, true);
}

}  // namespace shoal
