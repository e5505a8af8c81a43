#include "sync/round.h"

#include <algorithm>

#include "common/bulk_bytes.h"
#include "common/lifetime.h"
#include "sync/early_parts.h"
#include "sync/reducer.h"
#include "sync/stall_watch.h"

namespace shoal {
namespace {

enum class Phase : std::uint8_t {
  kIdle,
  kContributing,  // host.contribute runs
  kReducing,      // parts travel
  kPreparing,     // host.prepare runs
  kReported,      // digest reported, the authority decides
  kFailed,        // failure reported, the authority decides
  kCommitting,    // host.commit runs
};

constexpr Duration kLookPeriod = 1s;

bool names(const RoundCommit& commit, const Session& session) {
  return std::any_of(commit.secured.begin(), commit.secured.end(),
                     [&](const Secured& s) { return s.session == session; });
}

}  // namespace

struct Round::State {
  State(RoundHost& host, EventLoop& loop, Session self, StageId stage)
      : host(host), loop(loop), self(self), stage(stage) {}
  ~State() { stop_timer(); }

  RoundHost& host;
  EventLoop& loop;
  const Session self;
  const StageId stage;

  Phase phase = Phase::kIdle;
  RoundOpen open;
  RoundShape shape;
  std::optional<Reducer> reducer;
  bool working = false;              // on whole parts
  std::vector<RoundReport> reports;  // sent for this round, to be repeated
  Digest digest;
  std::optional<RoundCommit> early_commit;  // decided before we were ready
  TimerId budget_timer = 0, look_timer = 0;
  StallWatch watch;

  std::optional<RoundOpen> waiting_open;  // its base is not reached yet
  std::optional<RoundId> finished;        // newest round that ended here
  EarlyParts early_parts;
  std::uint64_t generation = 0;  // invalidates callbacks
  Lifetime lifetime;

  void stop_timer() {
    for (TimerId* timer : {&budget_timer, &look_timer}) {
      if (*timer != 0) loop.cancel(*timer);
      *timer = 0;
    }
  }

  // Wraps a callback so that it runs only while this round is still the one it was made for.
  template <class Body>
  auto guarded(Body body) {
    return lifetime.guard([this, body = std::move(body), mine = generation](auto&&... arguments) mutable {
      if (mine == generation) body(std::forward<decltype(arguments)>(arguments)...);
    });
  }

  void end_round() {
    finished = open.round;
    phase = Phase::kIdle;
    ++generation;
    stop_timer();
    reducer.reset();
    reports.clear();
    early_commit.reset();
    early_parts.forget_until(*finished);
  }

  void start(const RoundOpen& next) {
    const auto at = std::find(next.members.begin(), next.members.end(), self);
    open = next;
    shape = {open.members.size(), static_cast<std::size_t>(at - next.members.begin()), open.owners};
    phase = Phase::kContributing;
    working = false;
    ++generation;
    budget_timer = loop.after(std::chrono::milliseconds(open.budget_ms), guarded([this] { on_budget_over(); }));
    if (host.rule(open.rule) == nullptr) return fail(std::nullopt, "this run has no such rule");
    if (!are_owners(open.owners, open.members.size()))
      return fail(std::nullopt, "its owners are not some of its members, each once and in their order");
    host.contribute(open, guarded([this](Result<RoundHost::Contribution> result) { contributed(std::move(result)); }));
  }

  void report(RoundReport message) {
    message.stage = stage;
    message.round = open.round;
    reports.push_back(message);
    host.send_to_authority(std::move(message));
  }

  void fail(std::optional<Session> silent, std::string reason, std::optional<Session> malformed = {}) {
    phase = Phase::kFailed;
    stop_timer();
    RoundReport message;
    message.sum = silent && reducer && !reducer->lacks_piece();
    reducer.reset();
    message.kind = ReportKind::kFailed;
    message.silent = silent;
    message.malformed = malformed;
    message.reason = std::move(reason);
    report(std::move(message));
    if (early_commit) fall_behind(*early_commit, false, "the round was committed before this member had its sum");
  }

  void fall_behind(RoundCommit commit, bool differs, const std::string& why) {
    if (phase != Phase::kIdle) end_round();
    finished = std::max(finished.value_or(commit.round), commit.round);
    host.fell_behind(commit, names(commit, self), differs, why);
  }

  void contributed(Result<RoundHost::Contribution> result) {
    if (phase != Phase::kContributing) return;  // too late: it failed
    if (!result.ok()) return fail(std::nullopt, result.error().message);
    RoundReport message;
    message.weight = result->payload.weight;
    message.tag = result->payload.tag;
    message.entries = std::move(result->entries);
    report(std::move(message));
    phase = Phase::kReducing;
    const std::uint64_t part_bytes = result->payload.bytes.size() / shape.parts() + 1;
    reducer.emplace(shape, host.rule(open.rule)->make_sum(std::move(result->payload.bytes), shape.parts()),
                    result->payload.weight, result->payload.tag);
    work_aside(reducer->cut(), [this, part_bytes] {
      for (std::size_t part = 0; part < shape.parts(); ++part)
        if (const std::size_t owner = shape.owners[part]; owner != shape.self)
          send_piece(owner, 0, part, reducer->piece_for(part));
      watch.start(loop.now(), part_bytes);
      look();
      use_early_parts();
      pump();
    });
  }

  // Little is done at once. `then` does not run when the reduction has failed or ended meanwhile.
  void work_aside(Reducer::Work work, std::function<void()> then) {
    working = true;
    auto done = guarded([this, then = std::move(then)] {
      working = false;
      if (reducer) then();
    });
    if (work.bytes > kBulkBytesMax) return host.run_aside(std::move(work.job), std::move(done));
    work.job();
    done();
  }

  // Every second while parts travel.
  void look() {
    look_timer = 0;
    if (phase != Phase::kReducing) return;
    const TimePoint now = loop.now();
    for (std::size_t i = 0; i < open.members.size(); ++i)
      if (shape.meets(i)) {
        const RoundHost::Carried carried = host.carried(open.members[i]);
        watch.look(i, carried.bytes, carried.bytes_per_second, now);
      }
    look_timer = loop.after(kLookPeriod, guarded([this] { look(); }));
    if (working) return watch.moved(now);  // on all that is here
    if (!watch.stalled(now)) return;
    if (early_commit) return fall_behind(RoundCommit(*early_commit), false, "it was committed, and nothing moves here");
    RoundReport waiting;
    waiting.kind = ReportKind::kWaiting;
    waiting.stage = stage;
    waiting.round = open.round;
    const std::optional<std::size_t> missing = reducer->missing();
    if (!missing) return;  // all is here and being put together
    waiting.silent = open.members[*missing];
    waiting.sum = !reducer->lacks_piece();
    host.send_to_authority(std::move(waiting));
  }

  void send_piece(std::size_t to, std::uint8_t phase_number, std::size_t part, Reducer::Piece piece) {
    RoundPart message;
    message.stage = stage;
    message.round = open.round;
    message.phase = phase_number;
    message.part = static_cast<std::uint16_t>(part);
    message.weight = piece.weight;
    message.tag = piece.tag;
    std::vector<Bytes> frames;
    if (!piece.bytes.empty()) frames.push_back(std::move(piece.bytes));
    host.send_to_member(open.members[to], std::move(message), std::move(frames));
  }

  void use_early_parts() {
    for (const EarlyParts::Part& early : early_parts.take(open.round))
      if (phase == Phase::kReducing) use_part(early);
  }

  void use_part(const EarlyParts::Part& arrived) {
    const auto at = std::find(open.members.begin(), open.members.end(), arrived.from);
    if (at == open.members.end() || arrived.from == self) return;
    const std::size_t from = static_cast<std::size_t>(at - open.members.begin());
    const std::optional<std::size_t> part = shape.part_of(arrived.part.phase == 0 ? shape.self : from);
    if (!part || arrived.part.part != part) return;
    Reducer::Piece piece{arrived.part.weight, arrived.part.tag, arrived.frame};
    arrived.part.phase == 0 ? reducer->add(from, std::move(piece)) : reducer->take(*part, std::move(piece));
    watch.moved(loop.now());
  }

  void pump() {
    if (phase != Phase::kReducing || working) return;
    if (reducer->own_part_due()) return work_aside(reducer->sum_own_part(), [this] { own_part_summed(); });
    if (reducer->complete()) work_aside(reducer->join(), [this] { joined(); });
  }

  // A part that is not what it should be is its sender's fault.
  void fail_reduction(const Error& error) {
    const std::optional<std::size_t> failed = reducer->failed();
    if (!failed) return fail(std::nullopt, error.message);
    const Session sender = open.members[*failed];
    fail(std::nullopt, "the part of session " + short_name(sender) + " cannot be used: " + error.message, sender);
  }

  void own_part_summed() {
    const Result<Reducer::Piece> own = reducer->take_own_part();
    if (!own.ok()) return fail_reduction(own.error());
    for (std::size_t i = 0; i < open.members.size(); ++i)
      if (i != shape.self) send_piece(i, 1, *shape.part_of(shape.self), *own);
    pump();
  }

  void joined() {
    Result<Payload> sum = reducer->take_result();
    if (!sum.ok()) return fail_reduction(sum.error());
    reducer.reset();
    phase = Phase::kPreparing;
    const std::uint64_t weight = sum->weight;
    const CountTag tag = sum->tag;
    host.prepare(open, std::move(*sum),
                 guarded([this, weight, tag](Result<Digest> made) { prepared(std::move(made), weight, tag); }));
  }

  void prepared(Result<Digest> made, std::uint64_t weight, CountTag tag) {
    if (!made.ok()) return fail(std::nullopt, made.error().message);
    stop_timer();
    phase = Phase::kReported;
    digest = *made;
    RoundReport message;
    message.kind = ReportKind::kAgreed;
    message.digest = digest;
    message.weight = weight;
    message.tag = tag;
    report(std::move(message));
    if (early_commit) decide(RoundCommit(*early_commit));
  }

  // REQUIRES: phase is kReported, the commit is of this round.
  void decide(const RoundCommit& commit) {
    if (commit.digest != digest || commit.version.value != open.base.value + 1)
      return fall_behind(commit, true, "this member's digest differs from the committed one");
    phase = Phase::kCommitting;
    host.commit(open, commit, guarded([this] {
                  end_round();
                  try_waiting();
                }));
  }

  void on_budget_over() {
    budget_timer = 0;
    if (phase == Phase::kContributing) return fail(self, "the step or snapshot was not ready within the budget");
    if (phase != Phase::kReducing) return;
    const std::optional<std::size_t> missing = reducer->missing();
    std::optional<Session> silent;
    if (missing && *missing != shape.self) silent = open.members[*missing];
    fail(silent, "a part did not come within the budget");
  }

  void try_waiting() {
    if (!waiting_open) return;
    const RoundOpen next = *waiting_open;
    waiting_open.reset();
    consider(next);
  }

  void consider(const RoundOpen& next) {
    if (next.stage != stage || (finished && next.round <= *finished)) return;
    if (std::find(next.members.begin(), next.members.end(), self) == next.members.end()) return;
    if (phase != Phase::kIdle && next.round <= open.round) {
      if (next.round == open.round)
        for (const RoundReport& sent : reports) host.send_to_authority(sent);
      return;
    }
    if (host.version() > next.base) return;
    if (phase == Phase::kCommitting || host.version() < next.base) {
      if (!waiting_open || waiting_open->round < next.round) waiting_open = next;
      return;
    }
    if (phase != Phase::kIdle) {
      const RoundOpen old = open;
      end_round();
      host.abandon(old);
    }
    start(next);
  }
};

Round::Round(RoundHost& host, EventLoop& loop, Session self, StageId stage)
    : state_(std::make_unique<State>(host, loop, self, stage)) {}
Round::~Round() = default;

void Round::on_open(const RoundOpen& open) { state_->consider(open); }

void Round::on_part(const Session& from, const RoundPart& part, Bytes frame) {
  State& s = *state_;
  if (part.stage != s.stage || (s.finished && part.round <= *s.finished)) return;
  EarlyParts::Part arrived{from, part, std::move(frame)};
  if (s.phase != Phase::kIdle && part.round == s.open.round && s.phase != Phase::kContributing) {
    if (s.phase == Phase::kReducing) s.use_part(arrived);
    return s.pump();
  }
  if (s.phase != Phase::kIdle && part.round < s.open.round) return;
  const bool open_here = s.phase != Phase::kIdle && part.round == s.open.round;
  const std::uint64_t payloads = open_here ? (s.shape.members - 1) / s.shape.parts() + 1 : 1;
  s.early_parts.keep(std::move(arrived), std::max(kEarlyBytesMax, payloads * s.host.payload_bytes_max()));
}

void Round::on_commit(const RoundCommit& commit) {
  State& s = *state_;
  if (commit.stage != s.stage || (s.finished && commit.round <= *s.finished)) return;
  if (s.phase == Phase::kIdle || commit.round != s.open.round) {
    if (s.phase == Phase::kCommitting || (s.phase != Phase::kIdle && commit.round < s.open.round)) return;
    // Whether the earlier one names us must not be forgotten for the newer one's sake.
    if (s.early_commit)
      s.fall_behind(RoundCommit(*s.early_commit), false, "a newer round was committed before this member had its sum");
    return s.fall_behind(commit, false, "this member took no part in the round");
  }
  switch (s.phase) {
    case Phase::kReported:
      return s.decide(commit);
    case Phase::kFailed:
      return s.fall_behind(commit, false, "this member did not get the round's sum");
    case Phase::kCommitting:
      return;
    default:
      s.early_commit = commit;
  }
}

void Round::on_abandon(const RoundAbandon& abandon) {
  State& s = *state_;
  if (abandon.stage != s.stage) return;
  if (s.waiting_open && s.waiting_open->round <= abandon.round) s.waiting_open.reset();
  if (s.phase == Phase::kIdle || s.phase == Phase::kCommitting || s.open.round != abandon.round) return;
  const RoundOpen old = s.open;
  s.end_round();
  s.host.abandon(old);
  s.try_waiting();
}

void Round::on_version_changed() { state_->try_waiting(); }

void Round::cancel() {
  State& s = *state_;
  s.waiting_open.reset();
  s.early_parts.clear();
  if (s.phase == Phase::kIdle) return;
  const bool told = s.phase != Phase::kCommitting;
  const RoundOpen old = s.open;
  s.end_round();
  if (told) s.host.abandon(old);
}

bool Round::active() const { return state_->phase != Phase::kIdle; }

std::optional<RoundId> Round::current() const {
  if (!active()) return std::nullopt;
  return state_->open.round;
}

}  // namespace shoal
