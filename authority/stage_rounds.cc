#include "authority/stage_rounds.h"

#include <algorithm>

#include "authority/member_decisions.h"
#include "common/log.h"
#include "events/session_end.h"
#include "sync/round_budget.h"

namespace shoal {
namespace {

constexpr std::size_t kReasonMax = 200;  // bytes of a member's words in ours: below limits::kTextMax together

}  // namespace

StageRounds::StageRounds(StageId stage, const AuthorityOptions& options, AuthorityPort& port, EventLoop& loop,
                         DecisionLog& log, MemberBook& book, FailureDetector& detector, RunCourse& course,
                         MemberDecisions& decisions)
    : options_(options),
      port_(port),
      loop_(loop),
      log_(log),
      book_(book),
      detector_(detector),
      course_(course),
      decisions_(decisions),
      blames_(stage, port, loop, book, detector, decisions),
      times_(stage, options, loop, book, detector),
      restore_(options, port, loop, log, book, line_),
      last_commit_at_(loop.now()) {
  line_.stage = stage;
}

StageRounds::~StageRounds() {
  if (round_) take_round();
}

bool StageRounds::diloco_active() const {
  return !traits_of(options_.rule).every_step && line_.step_done.value >= options_.warm_steps;
}

// ---- opening ----

bool StageRounds::enough_for_parts(std::size_t members) {
  const bool fit = parts_fit(times_.payload(), members, members);
  if (!fit && !too_few_said_)
    log_warning("stage ", line_.stage, ": a round among ", members, " replicas would send ",
                part_bytes(times_.payload(), members) >> 20, " MiB at a time, and a transfer has at most ",
                limits::kTransferBytesMax >> 20, " MiB: the stage makes no round before it has ",
                members_needed(times_.payload()), " replicas. HINT: shoal join TICKET --stage ", line_.stage);
  too_few_said_ = !fit;
  if (!fit) last_.drop();
  return fit;
}

bool StageRounds::diloco_due() {
  if (!diloco_active()) return false;
  if (leaver_waits(view()) || last_.due(line_, members(), blames_)) return true;
  const bool cap_over = options_.round_cap > Duration(0) && loop_.now() - last_commit_at_ >= options_.round_cap;
  return targets_due(view(), options_.round_targets, cap_over);
}

void StageRounds::maybe_open() {
  if (round_ || gave_up_ || !course_.opens_rounds()) return;
  const TimePoint now = loop_.now();
  if (now < retry_at_) return;
  if (times_.hold_rounds() && somebody_fetches(view())) return;
  const Step* step = course_.step_after(line_.step_done);
  if (step == nullptr && !diloco_due()) return;
  blames_.bring_back(owners_needed(times_.payload()));
  std::vector<Session> able = who_takes_part(view(), step != nullptr);
  if (!able.empty() && enough_for_parts(able.size())) open_round(step, std::move(able));
}

void StageRounds::open_round(const Step* step, std::vector<Session> members) {
  RoundOpen open;
  open.stage = line_.stage;
  open.round = RoundId(++line_.round_used.value);
  const bool warm = step != nullptr && !traits_of(options_.rule).every_step;
  open.rule = static_cast<std::uint8_t>(warm ? kWarmRule : options_.rule);
  if (step != nullptr) open.step = step->step;
  open.fragment = line_.fragment_opened = 0;  // the only one that a line has
  open.base = line_.fragments[open.fragment].version;
  open.owners = who_owns(view(), members);
  open.members = std::move(members);
  const Duration budget = times_.budget(open.members.size(), open.owners.size());
  open.budget_ms = static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(budget).count());
  open.last = step == nullptr && last_.wanted();
  open.run_targets = step != nullptr ? step->run_targets : course_.status().run_targets;
  round_.emplace(open, step);
  log_.decide(LogOpen{open}, [this, id = open.round] {
    if (round_ && round_->open.round == id) send_open();
  });
}

void StageRounds::send_open() {
  const RoundOpen& open = round_->open;
  round_->sent = true;
  round_->sent_at = loop_.now();
  // A little more than the members have, so that their word on silent members comes first.
  const Duration budget = std::chrono::milliseconds(open.budget_ms);
  round_->ends_at = loop_.now() + budget + budget / 10;
  const Duration to_contribute = times_.to_contribute(budget);
  round_->budget = loop_.after(to_contribute + to_contribute / 10, [this] { on_budget(); });
  port_.write({.event = EventKind::kRoundOpen,
               .stage = open.stage,
               .round = open.round,
               .version = open.base,
               .step = open.step,
               .members = open.members.size()});
  for (const Session& member : open.members) {
    if (round_->step) book_.send_to(member, *round_->step);
    book_.send_to(member, open);
  }
}

// ---- deciding ----

void StageRounds::on_report(const Remote& from, const RoundReport& report) {
  const MemberState* known = book_.find(from.session);
  if (known == nullptr) return;
  if (!round_ || round_->open.round != report.round) {
    if (line_.last_commit_sent && line_.last_commit_sent->round == report.round)
      restore_.send_commit(*known, *line_.last_commit_sent);
    else if (report.round > line_.round_committed() && report.round <= line_.round_used &&
             report.round != line_.last_commit.value_or(RoundCommit{}).round)
      port_.send(from.peer, RoundAbandon{report.stage, report.round, "this round is over"});
    return;
  }
  RoundMember* member = round_->find(from.session);
  if (!round_->sent || member == nullptr) return;
  switch (report.kind) {
    case ReportKind::kContributed:
      if (const auto unfit = port_.unfit_for_round(report.stage, from.session, report.entries))
        return decisions_.end_session(from.session, "it brought to a round " + *unfit, true, {});
      if (options_.entry_targets > 0 && report.weight != report.entries.size() * options_.entry_targets)
        return decisions_.end_for_misconduct(from.session, "it brought to a round a weight of " +
                                                               std::to_string(report.weight) + " for " +
                                                               std::to_string(report.entries.size()) + " entries of " +
                                                               std::to_string(options_.entry_targets) + " targets");
      book_.find(from.session)->blame.refusals = 0;
      if (!member->contributed) member->contributed = report;
      break;
    case ReportKind::kAgreed:
      member->agree(report, loop_.now());
      break;
    case ReportKind::kWaiting:
      if (!report.silent) return;  // for whom, it does not say
      member->waiting = {*report.silent, loop_.now()};
      member->lacks_piece = !report.sum;
      return check_stall();
    case ReportKind::kFailed:
      member->lacks_piece = report.silent && !report.sum;
      if (!std::exchange(member->failed, true)) return on_failed(from, report);
  }
  try_decide(false);
}

void StageRounds::on_failed(const Remote& from, const RoundReport& report) {
  port_.write({.event = EventKind::kRoundFailed,
               .stage = line_.stage,
               .about = from.session,
               .round = report.round,
               .silent = report.silent,
               .cause = report.reason});
  if (!round_->has_contribution(from.session)) return on_refused(*book_.find(from.session), report);
  if (report.malformed) return on_malformed(from.session, *report.malformed, report.reason);
  if (report.silent) blames_.note_silent(*round_, from.session, *report.silent);
  try_decide(false);
}

// The member that it names does not count: one that brought nothing waited for nobody. One that was not ready in time
// is slow or waits for others, and costs no more than a silent one: that is no misconduct, unless it says so long
// before its time is over.
void StageRounds::on_refused(MemberState& member, const RoundReport& report) {
  const Session session = member.member.session;  // `member` goes with it
  round_->find(session)->silent = true;
  const auto waited = 2 * (loop_.now() - round_->sent_at);  // its clock may go otherwise than ours
  const bool late = report.silent == session && waited >= std::chrono::milliseconds(round_->open.budget_ms);
  if (late || ++member.blame.refusals < kRoundRefusalsMax) return try_decide(false);
  decisions_.end_for_misconduct(
      session, "it answered " + std::to_string(kRoundRefusalsMax) +
                   " rounds in a row with an error and brought nothing: " + report.reason.substr(0, kReasonMax));
}

// A member that accuses two others before anybody agrees on anything is more likely the one. Ends the attempt: the
// member that got the part has no sum to pass on, and the others would name it silent.
void StageRounds::on_malformed(const Session& by, const Session& sender, const std::string& reason) {
  if (round_->majority()) return try_decide(false);  // the others could use all
  bool another = false;
  if (sender != by && round_->has_contribution(sender)) {
    round_->find(by)->blame = {sender, true};
    const PeerId peer = book_.find(sender)->member.peer;
    std::optional<PeerId>& accused = book_.find(by)->blame.accused;
    another = accused && *accused != peer;
    accused = peer;
  }
  abandon(reason);
  if (another)
    decisions_.end_for_misconduct(by, "it said of one member after another that their parts of a round cannot be used");
}

// Slow and silent are two things: as long as bytes move at one member, the others wait for them. A member that does not
// beat is no reason to end the attempt, its membership time is.
void StageRounds::check_stall() {
  if (!round_->stalled(loop_.now())) return;
  std::string reason;
  for (const auto& [session, member] : round_->members) {
    if (!member.waiting) continue;
    if (reason.empty())
      reason = "no byte of it moves any more: session " + short_name(session) + " waits for " +
               short_name(member.waiting->silent);
    if (!member.agreed) blames_.note_silent(*round_, session, member.waiting->silent);
  }
  abandon(reason);
}

// The first time: in which everybody must have contributed. Then bytes may move until the round's end; that they stand
// still is told by the members.
void StageRounds::on_budget() {
  round_->budget = 0;
  if (round_->all_contributed() && loop_.now() < round_->ends_at) {
    round_->budget = loop_.at(round_->ends_at, [this] { on_budget(); });
    return;
  }
  // The others may have more time for the whole, and would not have named them yet.
  for (auto& [session, member] : round_->members) member.silent = member.silent || !member.contributed;
  const RoundId id = round_->open.round;
  try_decide(true);  // a commit may open the next one
  if (round_ && round_->open.round == id) abandon("no agreement within the budget");
}

void StageRounds::try_decide(bool grace_over) {
  const std::size_t members = round_->members.size();
  if (!round_->all_contributed()) {
    // The sum would hold a part whose entries we cannot name: a member that failed without a contribution ends the
    // attempt.
    if (round_->refused()) abandon("a member could not contribute");
    return;
  }
  const auto [digest, votes] = round_->best_vote();
  const std::size_t open = round_->undecided();
  const bool won = 2 * votes > members;
  if (won && (open == 0 || grace_over)) return commit(digest);
  if (!won && 2 * (votes + open) > members) return;
  // What the others say shows who contradicts whom.
  if (!won && (open == 0 || grace_over || !round_->doubtful()))
    return abandon("no digest has more than half of the members with the weight and tag of the contributions");
  if (round_->grace != 0) return;
  round_->grace = loop_.after(options_.round_grace, [this] {
    round_->grace = 0;
    try_decide(true);
  });
}

OpenRound StageRounds::take_round() {
  OpenRound round = *std::exchange(round_, std::nullopt);
  times_.on_round_over();
  for (const TimerId timer : {round.budget, round.grace})
    if (timer != 0) loop_.cancel(timer);
  return round;
}

void StageRounds::commit(const Digest& digest) {
  const RoundCommit commit = round_->commit_of(digest);
  for (const Secured& brought : commit.secured)
    if (const auto unfit = port_.unfit_for_round(line_.stage, brought.session, brought.serials)) {
      abandon("it has what no round may contain");  // it answered since that it holds no such entry any more
      return decisions_.end_session(brought.session, "it brought to a round " + *unfit, true, {});
    }
  // Honest members stay far below: ids are given out in order, and not more of them than the run's window.
  if (const auto packed = pack_log_record(LogCommit{commit, 0}); !packed.ok())
    return abandon("its commit cannot be logged: " + packed.error().message);
  const OpenRound round = take_round();
  line_.push(commit, {}, port_.settled(line_.stage), loop_.now());
  book_.note_commit(commit, {});
  last_commit_at_ = loop_.now();
  retry_pause_.reset();
  last_.on_any_commit();
  for (const auto& [session, member] : members()) {
    member->settled = 0;
    member->blame.silent_count = 0;
    member->blame.accused.reset();
    member->commit_sent_at = loop_.now();
    if (round.open.last && round.has_contribution(session)) member->flushed = true;
    if (round.agrees_on(session, digest)) member->version = commit.version;
  }
  if (round.open.last) last_.on_commit(loop_.now() + times_.to_fetch());
  times_.note_round(round.members.size(), round.open.owners.size(), loop_.now() - round.sent_at);
  blames_.on_commit(round, digest);
  const auto late = round.last_to_agree(digest);
  if (late) book_.note_wait(line_.stage, *late);
  log_.decide(LogCommit{commit, port_.paths_logged()}, [this, commit, late, among = round.open.members] {
    line_.last_commit_sent = commit;
    port_.write(event_of(commit, late));
    for (const auto& [session, member] : members()) restore_.send_commit(*member, commit);
    port_.on_round_commit(commit);
    release_leavers(among);
    course_.check_finished();
  });
  blames_.name_contradicting(round, diloco_active());
  maybe_open();
}

void StageRounds::abandon(const std::string& reason) {
  const OpenRound round = take_round();
  blames_.on_abandon(round, owners_needed(times_.payload()));
  loop_.post(lifetime_.guard([this] {
    if (!course_.is_over() && !diloco_active()) blames_.end_left_out();
  }));
  retry_at_ = loop_.now() + retry_pause_.next();
  const RoundAbandon told{line_.stage, round.open.round, reason};
  line_.last_abandon = told;
  if (round.sent) {  // else nobody heard that it was opened, and no line says it
    port_.write({.event = EventKind::kRoundAbandon, .stage = line_.stage, .round = told.round, .cause = reason});
    for (const Session& member : round.open.members) book_.send_to(member, told);
  }
  port_.on_round_abandoned(told);
  if (round.open.last) last_.on_abandon();
  loop_.at(retry_at_, lifetime_.guard([this] {
    maybe_open();
    course_.check_finished();
  }));
  blames_.name_contradicting(round, diloco_active());
}

// ---- leaving ----

bool StageRounds::waits_for_round(MemberState& member, const Leave& leave) {
  const Session& session = member.member.session;
  const bool in_round = round_ && round_->find(session) != nullptr;
  if (!in_round && !(leave.round_wanted && member.ready() && !blames_.rests(member))) return false;
  if (member.leaving != Leaving::kAsked && in_round && diloco_active() && round_->has_contribution(session))
    member.leave_after = round_->open.round;
  member.leaving = Leaving::kAsked;
  return true;
}

void StageRounds::on_over(const Session& session, const PeerId& peer, bool fenced) {
  if (round_ && round_->find(session) != nullptr) {
    if (round_->sent) try_decide(true);
    if (round_) {
      abandon("a member's session is over");
      retry_pause_.reset();
      retry_at_ = loop_.now();
    }
  }
  blames_.on_over(peer, fenced);
}

void StageRounds::release_leavers(const std::vector<Session>& among) {
  std::vector<std::pair<Session, PeerId>> free;  // the end of one may be that of another
  for (const Session& session : who_may_leave(view(), among))
    free.emplace_back(session, book_.find(session)->member.peer);
  for (const auto& [session, peer] : free)
    decisions_.end_session(session, std::string(kLeft), false, [this, peer = peer] { port_.send(peer, Goodbye{}); });
}

// ---- between rounds ----

void StageRounds::end_squatters() {
  const Duration patience = times_.to_serve();
  for (const Session& session : times_.squatters(line_, patience, course_.is_over()))
    decisions_.end_for_misconduct(session, "it neither fetched the stage's state nor served for " +
                                               std::to_string(static_cast<int>(seconds_of(patience))) + " s");
}

void StageRounds::maybe_restore() {
  if (!restore_.look(!round_ && !gave_up_ && !course_.is_over())) return;
  last_commit_at_ = loop_.now();
  retry_pause_.reset();
}

// ---- the last rounds ----

void StageRounds::want_last() {
  if (!traits_of(options_.rule).every_step) last_.want();
  blames_.try_now();
  maybe_open();
}

bool StageRounds::finished() {
  if (round_) return false;
  const bool no_step = course_.step_after(line_.step_done) == nullptr;
  // With steps still to come that nobody sends, the warm-up never ends: there is nothing beyond the last step to
  // secure.
  if (no_step && !diloco_active()) last_.drop();
  if (gave_up_) return true;
  const bool anyone = std::ranges::any_of(members(), [](const auto& entry) { return entry.second->ready(); });
  return no_step && (!anyone || !last_.wanted());  // a step waits for whoever comes
}

void StageRounds::give_up() {
  gave_up_ = true;
  if (round_) abandon("the run ends without waiting for it");
}

}  // namespace shoal
