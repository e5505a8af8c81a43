// What members say, and what becomes of them; the ends of a run.
#include "authority/authority.h"

#include <algorithm>
#include <utility>

#include "authority/membership.h"
#include "common/crypto/path_tag.h"
#include "common/log.h"
#include "common/peer_name.h"
#include "events/session_end.h"
#include "transport/dial_trials.h"
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

Authority::Authority(AuthorityOptions options, AuthorityPort& port, EventLoop& loop, std::unique_ptr<RecordLog> log)
    : options_(std::move(options)),
      port_(port),
      loop_(loop),
      log_(std::move(log)),
      book_(options_, port, loop, [this](const Error& error) { fail_log(error); }),
      placement_(options_, port, loop, book_, stages_) {
  StageHost& host = *this;
  for (std::uint16_t i = 0; i < options_.stages; ++i)
    stages_.push_back(std::make_unique<StageRounds>(StageId(i), options_, port, loop, book_, host));
}

Authority::~Authority() {
  if (tick_timer_ != 0) loop_.cancel(tick_timer_);
}

// ---- time ----

void Authority::arm_tick() {
  const Duration period = std::min<Duration>(options_.membership / 20, 250ms);
  tick_timer_ = loop_.after(period, [this] { tick(); });
}

void Authority::tick() {
  loop_.name_callback("authority tick");
  if (failed_) return;
  const Duration passed = book_.ticked();
  if (passed > options_.membership / 2) {  // we slept, not they
    book_.all_heard();
  } else if (sync_overdue(loop_.now())) {
    book_.forgive(passed);
  } else {
    // A process that is always late sees nevertheless which members are gone.
    if (passed > MemberBook::kSlept) book_.forgive(passed - MemberBook::kSlept);
    check_memberships();
  }
  for (const auto& stage : stages_) {
    stage->end_squatters();
    stage->maybe_restore();
    stage->maybe_open();
  }
  if (book_.list_is_stale() && syncs_.empty()) book_.publish(build_list());
  if (!finishing_ && !ended_) placement_.look();
  check_finished();
  arm_tick();
}

void Authority::check_memberships() {
  const std::map<Session, std::string> dead = book_.dead();
  // After the end nobody is fenced any more, and a silent member is not waited for.
  if (ended_) return static_cast<void>(std::erase_if(unheard_, [&](const Session& s) { return dead.contains(s); }));
  for (const auto& [session, why] : dead) end_session(session, why, true, {});
}

// ---- messages ----

void Authority::on_message(const Remote& from, const Message& message) {
  if (failed_ || !started_) return;
  if (const auto* join = std::get_if<JoinRequest>(&message)) return on_join(from, *join);
  if (const auto* beat = std::get_if<Beat>(&message)) return on_beat(from, *beat);
  if (const auto* report = std::get_if<RoundReport>(&message))
    return report->stage.value < stages_.size() ? rounds_of(report->stage).on_report(from, *report) : void();
  if (const auto* leave = std::get_if<Leave>(&message)) return on_leave(from, *leave);
  if (const auto* query = std::get_if<MembersQuery>(&message)) {
    if (MemberState* member = book_.find(from.session)) return book_.send_list(*member, query->epoch, query->id);
    if (from.role != PeerRole::kObserver) return;
    return ended_ ? port_.send(from.peer, end_) : book_.show_list(from.peer, query->epoch, query->id);
  }
  if (ended_ && std::holds_alternative<Goodbye>(message)) return void(unheard_.erase(from.session));
  if (std::holds_alternative<Goodbye>(message))
    return end_session(from.session, std::string(kLeft) + " without waiting for a round", false, {});
  if (const auto* step = std::get_if<Step>(&message); step && from.role == PeerRole::kTrainer) return on_step(*step);
}

void Authority::on_link_up(const Remote& from) {
  book_.on_link_up(from);
  if (!started_ || failed_) return;
  if (book_.is_over(from.session)) return book_.tell_over(from);
  if (ended_) port_.send(from.peer, end_);
  if (MemberState* member = book_.find(from.session)) rounds_of(member->stage).on_link_up(*member);
}

bool Authority::comes_too_early(const Remote& from) {
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

void Authority::on_join(const Remote& from, const JoinRequest& request) {
  if (ended_) return port_.send(from.peer, end_);
  if (book_.is_over(from.session)) return book_.tell_over(from);
  if (const MemberState* known = book_.find(from.session))
    return syncs_.empty() ? port_.send(from.peer, admission(rounds_of(known->stage).line(),
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

void Authority::admit(const Remote& from, const JoinRequest& request, const StageChoice& choice) {
  std::optional<Session> older;
  for (const auto& [session, member] : book_.members())
    if (member.member.peer == from.peer) older = session;
  const Whereabouts whereabouts = usable(request.whereabouts);
  if (!book_.fits(build_list(), whereabouts, older))
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
  ++stage.line().epoch.value;
  book_.change_list();
  decide(LogMember{member.stage, member.member}, [this, from, reason = choice.reason, list = build_list()] {
    book_.publish(list);
    MemberState* joined = book_.find(from.session);
    if (joined == nullptr) return;
    book_.send_list(*joined, Epoch(0), 0);
    JoinAnswer answer = admission(rounds_of(joined->stage).line(), path_key_of(options_.path_secret, from.session));
    answer.reason = reason;
    port_.send(from.peer, std::move(answer));
  });
}

void Authority::on_beat(const Remote& from, const Beat& beat) {
  MemberState* member = book_.find(from.session);
  if (member == nullptr) return book_.tell_over(from);
  if (beat.stage != member->stage) return;
  StageRounds& stage = rounds_of(member->stage);
  if (const Version made = stage.line().version; beat.version > made && member->of_this_life)
    return end_for_misconduct(from.session, "it says that it holds version " + std::to_string(beat.version.value) +
                                                ", and version " + std::to_string(made.value) +
                                                " is the newest that was made");
  book_.on_beat(*member, beat);
  if (beat.leaving) placement_.moves().on_leaving(from.peer, from.session, loop_.now());
  const MemberPhase before = member->phase();
  stage.on_beat(*member, beat);
  show_serving(*member);
  if (member->ahead() && !keep_ahead(*member, before, beat.version)) return;

  BeatAck ack = status_;
  ack.list_epoch = book_.told();
  ack.move_to = placement_.moves().asked(from.peer, from.session);
  port_.send(from.peer, ack);
  if (ended_) port_.send(from.peer, end_);
  stage.repeat(*member);
  stage.maybe_open();
}

void Authority::show_serving(MemberState& member) {
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

void Authority::list_member(MemberState& member) {
  ++rounds_of(member.stage).line().epoch.value;
  book_.change_list();
  member.member.version = member.version;
  decide(LogMember{member.stage, member.member}, [this, list = build_list()] { book_.publish(list); });
}

void Authority::on_leave(const Remote& from, const Leave& leave) {
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

void Authority::end_session(const Session& session, const std::string& reason, bool fenced,
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
  decide(LogOver{session, reason},
         [this, session, stage_id, peer, reason, fenced, then = std::move(then), list = build_list()] {
           // By name and before its connections are closed; it may not arrive, a later message of the session is
           // answered with it again.
           if (fenced) port_.send(peer, Fenced{session, reason});
           if (fenced) port_.fence(session);
           if (then) then();
           port_.write(session_over_event(session, stage_id, reason));
           port_.on_session_over(session, stage_id, reason);
           book_.publish(list);
         });
  for (const auto& [other, member] : book_.of(stage_id)) show_serving(*member);  // left out for it: it serves again
  stage.maybe_open();
}

void Authority::end_for_misconduct(const Session& session, const std::string& what) {
  const MemberState* member = book_.find(session);
  if (member == nullptr) return;
  const Duration rest = admission_.on_misconduct(member->member.peer, loop_.now());
  log_warning("stage ", member->stage, ": session ", short_name(session), " is ended: ", what,
              ". Its peer is admitted again in ", static_cast<int>(seconds_of(rest)), " s");
  end_session(session, what, true, {});
}

// ---- steps ----

bool Authority::step_done(StageId stage, StepId step) const {
  return stage.value < stages_.size() && rounds_of(stage).line().step_done >= step;
}

void Authority::on_step(const Step& step) {
  if (failed_ || !started_) return;
  const auto done = [&](StepId id) {
    return std::ranges::all_of(stages_, [&](const auto& stage) { return stage->line().step_done >= id; });
  };
  std::erase_if(steps_, [&](const auto& entry) { return done(entry.first); });
  if (done(step.step) || step.step.value == 0) return;
  steps_.emplace(step.step, step);
  for (const auto& stage : stages_) stage->maybe_open();
}

const Step* Authority::step_after(StepId done) const {
  const auto at = steps_.upper_bound(done);
  return at == steps_.end() ? nullptr : &at->second;
}

// ---- the ends of a run ----

// While it finishes, rounds open as long as somebody waits for them: what none secured by then is about to be named
// lost.
bool Authority::opens_rounds() const { return started_ && !failed_ && !ended_ && (!finishing_ || finished_); }

void Authority::finish(std::function<void()> done) {
  finishing_ = true;
  finished_ = std::move(done);
  for (const auto& stage : stages_) stage->want_last();
  check_finished();
}

void Authority::give_up(std::function<void()> done) {
  finishing_ = true;
  finished_ = std::move(done);
  for (const auto& stage : stages_) stage->give_up();
  check_finished();
}

void Authority::check_finished() {
  if (!finished_ || !syncs_.empty()) return;
  for (const auto& stage : stages_) stage->tend_last();
  if (std::ranges::all_of(stages_, [](const auto& stage) { return stage->finished(); }))
    std::exchange(finished_, nullptr)();
}

void Authority::end(const std::string& reason) {
  ended_ = true;
  end_ = End{reason, port_.sign(end_text(options_.run, reason))};
  for (const auto& [session, member] : book_.members()) unheard_.insert(session);
  for (const PeerId& peer : book_.reachable()) port_.send(peer, end_);
}

// ---- what others see ----

MemberList Authority::build_list() const {
  std::vector<StageMembers> heads;
  for (const auto& stage : stages_) heads.push_back(stage->line().head());
  return book_.list_of(std::move(heads));
}

std::vector<StageStatus> Authority::status() const {
  std::vector<StageStatus> all;
  for (const auto& stage : stages_) all.push_back(stage->status());
  return all;
}

std::uint64_t Authority::looked_at() const {
  std::uint64_t all = 0;
  for (const auto& stage : stages_) all += stage->looked_at();
  return all;
}

}  // namespace shoal
