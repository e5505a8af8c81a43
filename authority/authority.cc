#include "authority/authority.h"

#include <algorithm>
#include <utility>

#include "common/log.h"
#include "events/session_end.h"
#include "transport/one_taker.h"

namespace shoal {

Authority::Authority(AuthorityOptions options, AuthorityPort& port, EventLoop& loop, std::unique_ptr<RecordLog> file)
    : options_(std::move(options)),
      port_(port),
      loop_(loop),
      log_(std::move(file), port, loop),
      book_(options_, port, loop),
      detector_(options_, loop, book_),
      lists_(options_, port, loop, book_, log_),
      course_(options_, port, log_, stages_),
      placement_(options_, port, loop, book_, detector_, stages_),
      decisions_(options_, port, loop, log_, book_, lists_, course_, stages_, placement_),
      knocks_(book_, port, loop) {
  for (std::uint16_t i = 0; i < options_.stages; ++i)
    stages_.push_back(
        std::make_unique<StageRounds>(StageId(i), options_, port, loop, log_, book_, detector_, course_, decisions_));
}

Authority::~Authority() {
  if (tick_timer_ != 0) loop_.cancel(tick_timer_);
}

Result<std::unique_ptr<Authority>> Authority::open(AuthorityOptions options, AuthorityPort& port, EventLoop& loop,
                                                   AuthorityLog log) {
  std::unique_ptr<Authority> opened(new Authority(std::move(options), port, loop, std::move(log.file)));
  Authority& self = *opened;
  for (const LogRecord& record : log.records) SHOAL_TRY(self.replay(record));
  if (log.records.empty()) self.log_.decide(LogStart{self.options_.manifest}, [] {});
  return opened;
}

void Authority::start() {
  SHOAL_CHECK(!course_.started() && log_.settled());
  course_.start();
  book_.fence_again();
  for (const auto& tell : std::exchange(again_, {})) tell();
  detector_.all_heard();
  lists_.publish(decisions_.present_list());
  detector_.ticked();
  arm_tick();
}

Status Authority::compact(std::function<void(Status)> done) {
  SHOAL_CHECK(course_.started());
  std::vector<LogRecord> records{LogStart{options_.manifest}};
  book_.compact(records);
  for (const auto& stage : stages_) stage->line().compact(book_.of(stage->line().stage), records);
  for (const LogOverAgain& lately : book_.over_lately()) records.push_back(lately);
  return log_.compact(records, std::move(done));
}

// ---- replay ----

Status Authority::replay(const LogRecord& record) {
  const auto on_line = [this](StageId stage, auto apply) -> Status {
    if (stage.value >= stages_.size()) return log_contradicts("names a stage that the run does not have");
    return apply(rounds_of(stage).line());
  };
  const auto takers = OneTaker{
      [&](const LogStart& start) { return replay_start(start); },
      [&](const LogMember& logged) {
        return on_line(logged.stage, [&](StageLine& line) {
          MemberState& member = book_.place(logged.member.session, logged.stage);
          member.member = logged.member;
          member.enter(logged.member.serving ? MemberPhase::kReady : MemberPhase::kIdle);
          member.version = logged.member.version;
          member.beats.heard_at = member.fetch.idle_since = loop_.now();
          ++line.epoch.value;
          book_.change_list();
          return Status();
        });
      },
      [&](const LogOver& over) { return replay_over(over); },
      [&](const LogOpen& opened) {
        return on_line(opened.open.stage, [&](StageLine& line) { return line.replay(opened); });
      },
      [&](const LogCommit& committed) {
        return on_line(committed.commit.stage, [&](StageLine& line) -> Status {
          SHOAL_ASSIGN(const auto taken, line.replay(committed, port_.settled(line.stage), loop_.now()));
          book_.note_commit(committed.commit, taken);
          tell_again(LogAgain{line.told.back().commit});
          return {};
        });
      },
      [&](const LogStage& stage) { return on_line(stage.stage, [&](StageLine& line) { return line.replay(stage); }); },
      [&](const LogAgain& again) {
        return on_line(again.commit.stage, [&](StageLine&) {
          tell_again(again);
          return Status();
        });
      },
      [&](const LogOverAgain& over) {
        tell_again(over);
        return Status();
      },
      [&](const LogRelays& logged) {
        book_.set_relays(logged.relays);
        return Status();
      },
      [&](const AnyOf<LogBase, LogShares, LogSessions, LogNamed> auto& of_book) {
        book_.replay(of_book);
        return Status();
      },
  };
  return std::visit(takers, record);
}

Status Authority::replay_start(const LogStart& start) const {
  if (start.manifest.body != options_.manifest.body)
    return make_error(ErrorCode::kCorrupt,
                      "the run was started with another manifest: its run file was changed or damaged since. HINT: put "
                      "the old one back, or start a new run in another folder");
  if (start.manifest.signature != options_.manifest.signature)  // Ed25519: one key, one text, one signature
    return log_contradicts(
        "belongs to another run: it was begun with another run.key. HINT: put back the run.key that was "
        "made with it");
  return {};
}

Status Authority::replay_over(const LogOver& over) {
  const MemberState* member = book_.find(over.session);
  if (member == nullptr) return log_contradicts("ends a session that never was a member");
  const StageId stage = member->stage;
  ++rounds_of(stage).line().epoch.value;
  book_.end(over.session, over.reason, !is_fault(over.reason));
  tell_again(LogOverAgain{stage, over.session, over.reason});
  return {};
}

void Authority::tell_again(const LogAgain& record) {
  rounds_of(record.commit.stage).line().replay(record, loop_.now());
  again_.push_back([this, commit = record.commit]() mutable {
    if (commit.back_to) {
      const RecentCommits::TakenBack taken{std::exchange(commit.secured, {}), std::exchange(commit.tag, 0)};
      return say_restored(port_, commit, taken);
    }
    port_.write(event_of(commit));
    port_.on_round_commit(commit);
  });
}

void Authority::tell_again(const LogOverAgain& record) {
  book_.note_over(record);
  again_.push_back([this, record] {
    port_.write(session_over_event(record.session, record.stage, record.reason));
    port_.on_session_over(record.session, record.stage, record.reason);
  });
}

// ---- time ----

void Authority::arm_tick() {
  const Duration period = std::min<Duration>(options_.membership / 20, 250ms);
  tick_timer_ = loop_.after(period, [this] { tick(); });
}

void Authority::tick() {
  loop_.name_callback("authority tick");
  if (log_.failed()) return;
  const Duration passed = detector_.ticked();
  if (passed > options_.membership / 2) {  // we slept, not they
    detector_.all_heard();
  } else if (log_.overdue()) {
    detector_.forgive(passed);
  } else {
    // A process that is always late sees nevertheless which members are gone.
    if (passed > FailureDetector::kSlept) detector_.forgive(passed - FailureDetector::kSlept);
    check_memberships();
  }
  for (const auto& stage : stages_) {
    stage->end_squatters();
    stage->maybe_restore();
    stage->maybe_open();
  }
  if (log_.idle() && lists_.is_stale()) lists_.publish(decisions_.present_list());
  if (!course_.finishing() && !course_.ended()) placement_.look();
  course_.check_finished();
  arm_tick();
}

void Authority::check_memberships() {
  const std::map<Session, std::string> dead = detector_.dead();
  // After the end nobody is fenced any more, and a silent member is not waited for.
  if (course_.ended())
    return static_cast<void>(std::erase_if(course_.unheard(), [&](const Session& s) { return dead.contains(s); }));
  for (const auto& [session, why] : dead) decisions_.end_session(session, why, true, {});
}

// ---- messages ----

void Authority::on_message(const Remote& from, const Message& message) {
  if (!course_.takes_messages()) return;
  if (const auto* join = std::get_if<JoinRequest>(&message)) return decisions_.on_join(from, *join);
  if (const auto* beat = std::get_if<Beat>(&message)) return on_beat(from, *beat);
  if (const auto* report = std::get_if<RoundReport>(&message))
    return report->stage.value < stages_.size() ? rounds_of(report->stage).on_report(from, *report) : void();
  if (const auto* leave = std::get_if<Leave>(&message)) return decisions_.on_leave(from, *leave);
  if (const auto* knock = std::get_if<Knock>(&message)) return knocks_.pass_on(from.session, *knock);
  if (const auto* query = std::get_if<MembersQuery>(&message)) {
    if (MemberState* member = book_.find(from.session)) return lists_.give(*member, query->epoch, query->id);
    if (from.role != PeerRole::kObserver) return;
    return course_.ended() ? course_.tell_end(from.peer) : lists_.show(from.peer, query->epoch, query->id);
  }
  if (course_.ended() && std::holds_alternative<Goodbye>(message)) return void(course_.unheard().erase(from.session));
  if (std::holds_alternative<Goodbye>(message))
    return decisions_.end_session(from.session, std::string(kLeft) + " without waiting for a round", false, {});
  if (const auto* step = std::get_if<Step>(&message); step && from.role == PeerRole::kTrainer) return on_step(*step);
}

void Authority::on_link_up(const Remote& from) {
  detector_.on_link_up(from);
  if (!course_.takes_messages()) return;
  if (book_.is_over(from.session)) return book_.tell_over(from);
  if (course_.ended()) course_.tell_end(from.peer);
  if (MemberState* member = book_.find(from.session)) rounds_of(member->stage).on_link_up(*member);
}

void Authority::on_beat(const Remote& from, const Beat& beat) {
  MemberState* member = book_.find(from.session);
  if (member == nullptr) return book_.tell_over(from);
  if (beat.stage != member->stage) return;
  StageRounds& stage = rounds_of(member->stage);
  if (const Version made = stage.line().version(); beat.version > made && member->of_this_life)
    return decisions_.end_for_misconduct(from.session, "it says that it holds version " +
                                                           std::to_string(beat.version.value) + ", and version " +
                                                           std::to_string(made.value) + " is the newest that was made");
  detector_.on_beat(*member, beat);
  if (beat.leaving) placement_.moves().on_leaving(from.peer, from.session, loop_.now());
  const MemberPhase before = member->phase();
  stage.on_beat(*member, beat);
  decisions_.show_serving(*member);
  if (member->ahead() && !keep_ahead(*member, before, beat.version)) return;

  BeatAck ack = course_.status();
  ack.list_epoch = lists_.told();
  ack.move_to = placement_.moves().asked(from.peer, from.session);
  port_.send(from.peer, ack);
  if (course_.ended()) course_.tell_end(from.peer);
  stage.repeat(*member);
  stage.maybe_open();
}

bool Authority::keep_ahead(const MemberState& member, MemberPhase before, Version version) {
  const StageRounds& stage = rounds_of(member.stage);
  const Version newest = stage.line().version();
  const Session session = member.member.session;
  const std::string cause = "it says that it holds version " + std::to_string(version.value) +
                            ", and the authority's log knows " + std::to_string(newest.value) + " as the newest";
  const bool another = stage.line().held(book_.of(member.stage));
  if (before != MemberPhase::kAhead) {
    port_.write({.event = EventKind::kMember,
                 .stage = member.stage,
                 .about = session,
                 .version = version,
                 .state = "ahead",
                 .cause = cause});
    if (another)
      log_warning(
          "stage ", member.stage, ": session ", short_name(session), " joins again: ", cause,
          ", as others of its stage do. HINT: only if an older copy of authority.log was put back, stop, put the "
          "newer one back and resume");
    else
      log_warning("stage ", member.stage, ": session ", short_name(session), " is ahead: ", cause,
                  ". If that is so, the log lost what had been told: was an older copy put back? HINT: then stop, put "
                  "the newer authority.log back and resume; else it has to fetch version ",
                  newest.value, " from a peer that holds it");
  }
  if (another) decisions_.end_session(session, "ahead of the run: " + cause, true, {});
  return !another;
}

// ---- steps, and the ends of a run ----

bool Authority::step_done(StageId stage, StepId step) const {
  return stage.value < stages_.size() && rounds_of(stage).line().step_done >= step;
}

void Authority::end(const std::string& reason) {
  std::set<Session> members;
  for (const auto& [session, member] : book_.members()) members.insert(session);
  course_.end(reason, std::move(members), detector_.reachable());
}

// ---- what others see ----

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
