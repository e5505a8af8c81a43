#pragma once
// What `shoal-bench log` feeds the logs of a run with: a launching process as far as its logs go, and all its peers.
// Thread: the loop's.   Borrows: options and loop.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "authority/authority.h"
#include "bench/log_bench.h"
#include "common/crypto/sign.h"
#include "common/log.h"
#include "common/os/file_storage.h"
#include "common/os/posix_file.h"
#include "common/os/thread_loop.h"
#include "router/commit_book.h"
#include "runtime/launch/run_logs.h"

namespace shoal {

inline constexpr std::uint64_t kTrainer = 1, kTargets = 8;  // of a microbatch
inline constexpr std::uint64_t kMembers = 2;                // of a stage
inline constexpr int kStandsMax = 60;                       // seconds without a commit: it would never end

inline KeyPair key_of(std::uint64_t n) {
  std::array<std::uint8_t, 32> seed{};
  for (std::size_t i = 0; i < 8; ++i) seed[i] = static_cast<std::uint8_t>(n >> (8 * i));
  return KeyPair::from_seed(seed);
}

// A peer of a stage; another session of it comes when one is over.
struct BenchMember {
  StageId stage;
  PeerId peer;
  std::uint64_t incarnation = 1;
  std::vector<std::uint64_t> settled, in_round;  // serials of its entries
  Session session() const { return Session::of(peer, incarnation); }
  Remote remote() const { return {peer, session(), PeerRole::kPeer}; }
};

struct BenchStage {
  std::vector<BenchMember> members;
  bool round_due = false;
  std::size_t opened = 0;  // members that the open round was told to
  std::uint64_t rounds = 0;
  Version version;
};

// A launching process as far as its logs go, and all its peers.
class LogFeed final : private AuthorityPort {
 public:
  LogFeed(const LogBenchOptions& options, ThreadLoop& loop, std::string folder)
      : options_(options),
        loop_(loop),
        folder_(std::move(folder)),
        storage_(loop),
        book_(kTrainer, options.stages),
        run_key_(key_of(0)),
        trainer_space_(trainer_path(), kLogBytesMax, kLogCompactBytes),
        authority_space_(authority_path(), kLogBytesMax, kLogCompactBytes) {
    for (std::uint16_t k = 0; k < options.stages; ++k) {
      BenchStage stage;
      for (std::uint64_t i = 0; i < kMembers; ++i)
        stage.members.push_back({StageId(k), key_of(1 + k * kMembers + i).id(), 1, {}, {}});
      stages_.push_back(std::move(stage));
    }
  }
  std::string trainer_path() const { return folder_ + "/trainer.log"; }
  std::string authority_path() const { return folder_ + "/authority.log"; }

  // As Launch::open does, up to where a resumed run goes on.
  Status open() {
    SHOAL_ASSIGN(AuthorityLog log, open_authority_log(storage_, authority_path()));
    SHOAL_ASSIGN(trainer_log_, RecordLog::open(storage_, trainer_path(), kTrainerLog,
                                               [this](ByteView record) { return book_.replay(record); }));
    SHOAL_TRY(check_log_partners(reach_of(log.records), book_, trainer_path(), authority_path()));
    if (trainer_log_->empty()) trainer_log_->append(book_.header_record());
    AuthorityOptions options;
    options.run = RunId{run_key_.id().bytes};
    options.manifest.body = "[run]\n";
    options.stages = options_.stages;
    options.round_targets = options_.round * kTargets / kMembers;
    options.join_hold = Duration(0);
    SHOAL_ASSIGN(authority_, Authority::open(std::move(options), *this, loop_, std::move(log)));
    Status synced;
    int open = 2;
    const auto done = [&](const Status& status) {
      if (!status.ok()) synced = status;
      if (--open == 0) loop_.stop();
    };
    trainer_log_->sync(done);
    authority_->sync_log(done);
    while (open > 0) loop_.run();  // a stop() of the feed before may be left
    SHOAL_TRY(synced);
    authority_->start();
    return {};
  }
  // Until all microbatches are in the logs and what follows from them is; `progress` at each hundredth.
  Status feed(std::function<void(std::uint64_t)> progress) {
    progress_ = std::move(progress);
    // A wish waits while another stage has nobody.
    for (std::size_t i = 0; i < kMembers; ++i)
      for (BenchStage& stage : stages_) join(stage.members[i]);
    beat_all();
    pump();
    loop_.run();
    loop_.cancel(beat_timer_);
    return failed_;
  }
  const CommitBook& book() const { return book_; }
  const RoundTally& tally() const { return authority_->tally(); }
  std::uint64_t sessions() const { return sessions_; }
  int compactions() const { return compactions_; }
  std::uint64_t most_bytes() const { return most_bytes_; }

 private:
  // ---- AuthorityPort ----
  void send(const PeerId& peer, Message message) override {
    const auto* open = std::get_if<RoundOpen>(&message);
    if (open == nullptr) return;
    loop_.post([this, peer, open = *open] { on_open(peer, open); });
  }
  std::vector<std::uint8_t> sign(ByteView body) override {
    const Signature signature = run_key_.sign(body);
    return {signature.begin(), signature.end()};
  }
  void fence(const Session&) override {}
  std::string other_host(const PeerId&) const override { return {}; }
  void on_members(const MemberList&) override {}
  void on_round_commit(const RoundCommit& commit) override {
    loop_.post([this, commit] { on_commit(commit); });
  }
  void on_round_abandoned(const RoundAbandon& abandon) override { fail("a round was abandoned: " + abandon.reason); }
  void on_restored(const RoundCommit&, const RecentCommits::TakenBack&) override { fail("a stage went back"); }
  std::optional<std::string> unfit_for_round(StageId stage, const Session& session,
                                             const std::vector<std::uint64_t>& serials) const override {
    return book_.unfit_for_round(stage, session, serials);
  }
  Version settled(StageId stage) const override { return book_.done().settled(stage); }
  std::uint64_t paths_logged() const override { return book_.committed(); }
  void on_session_over(const Session& session, StageId, const std::string& why) override {
    loop_.post([this, session, why] {
      ++sessions_;
      (void)book_.on_session_over(session, why);
      write_done();
    });
  }
  void on_slow_log(Duration) override {}
  void on_log_failure(const Error& error) override { fail(error.message); }
  void write(const EventRecord&) override {}

  void fail(const std::string& why) {
    if (failed_.ok()) failed_ = make_error(ErrorCode::kIo, why);
    loop_.stop();
  }

  // ---- the trainer ----
  // As many as the window takes, in one sync.
  void pump() {
    if (syncing_) return;
    std::vector<MicrobatchId> ids;
    for (auto id = book_.next(); id && id->serial < options_.microbatches; id = book_.next()) {
      book_.issued(*id);
      Gradient gradient;
      gradient.microbatch = *id;
      for (const BenchStage& stage : stages_)
        gradient.path.push_back({stage.members[member_of(id->serial)].session(), id->serial});
      gradient.loss_sum = 1;
      gradient.targets = kTargets;
      trainer_log_->append(book_.log(*id, gradient));
      ids.push_back(*id);
    }
    if (ids.empty()) return finish_when_done();
    syncing_ = true;
    trainer_log_->sync([this, ids = std::move(ids)](const Status& status) {
      syncing_ = false;
      if (!status.ok()) return fail(status.error().message);
      for (const MicrobatchId& id : ids) settle(id);
      for (BenchStage& stage : stages_) ask_for_round(stage);
      tend_logs();
      tell_progress();
      pump();
    });
  }
  // Which of a stage's members had it: neither in turns nor in runs, as a router has it.
  static std::size_t member_of(std::uint64_t serial) { return (serial * 0x9e3779b97f4a7c15ull) >> 63; }
  void settle(const MicrobatchId& id) {
    (void)book_.durable(id);
    const CommitBook::Logged* logged = book_.find(id);
    for (std::size_t k = 0; logged != nullptr && k < stages_.size(); ++k) {
      BenchMember& member = stages_[k].members[member_of(id.serial)];
      if (logged->path[k].session == member.session()) member.settled.push_back(id.serial);
    }
  }
  void write_done() {
    if (!book_.done().dirty()) return;
    trainer_log_->append(book_.done_record());
    trainer_log_->sync([this](const Status& status) {
      if (!status.ok()) return fail(status.error().message);
      book_.done_durable();
      write_done();
      pump();
    });
  }
  void finish_when_done() {
    if (book_.committed() < options_.microbatches || book_.done().left() || book_.done().dirty()) return;
    for (const BenchStage& stage : stages_)
      if (stage.round_due) return;
    loop_.stop();
  }
  void tell_progress() {
    const std::uint64_t hundredth = book_.committed() * 100 / options_.microbatches;
    if (hundredth == told_) return;
    told_ = hundredth;
    progress_(hundredth);
  }

  // ---- as Launch::tend_logs ----
  void tend_logs() {
    const TimePoint now = loop_.now();
    most_bytes_ = std::max<std::uint64_t>(most_bytes_, trainer_log_->bytes() + authority_->log_bytes());
    if (!trainer_log_->compacting() && trainer_space_.compaction_due(trainer_log_->bytes(), now))
      trainer_log_->compact(book_.compacted(), [this](const Status& status) {
        if (!status.ok()) return fail(status.error().message);
        ++compactions_;
        trainer_space_.compacted(trainer_log_->bytes(), book_.committed());
      });
    if (!authority_space_.compaction_due(authority_->log_bytes(), now)) return;
    (void)authority_->compact([this](const Status& status) {
      if (!status.ok()) return fail(status.error().message);
      ++compactions_;
      authority_space_.compacted(authority_->log_bytes(), book_.committed());
    });
  }

  // ---- the peers ----
  void join(BenchMember& member) {
    authority_->on_link_up(member.remote());
    JoinRequest request;
    request.wish = member.stage;
    authority_->on_message(member.remote(), request);
  }
  void beat(const BenchStage& stage, const BenchMember& member) {
    Beat beat;
    beat.stage = member.stage;
    beat.version = stage.version;
    beat.serving = true;
    beat.settled_targets = member.settled.size() * kTargets;
    authority_->on_message(member.remote(), beat);
  }
  void beat_all() {
    for (const BenchStage& stage : stages_)
      for (const BenchMember& member : stage.members) beat(stage, member);
    (void)book_.outstanding();  // the trainer's tick, which forgets what is answered
    standing_ = book_.committed() == at_beat_ ? standing_ + 1 : 0;
    at_beat_ = book_.committed();
    if (standing_ == kStandsMax) fail("nothing was logged for " + std::to_string(kStandsMax) + " s");
    beat_timer_ = loop_.after(1s, [this] { beat_all(); });
  }
  void ask_for_round(BenchStage& stage) {
    std::uint64_t settled = 0;
    for (const BenchMember& member : stage.members) settled += member.settled.size();
    if (stage.round_due || settled < options_.round) return;
    stage.round_due = true;
    for (const BenchMember& member : stage.members) beat(stage, member);
  }
  void on_open(const PeerId& peer, const RoundOpen& open) {
    BenchStage& stage = stages_[open.stage.value];
    const auto at = std::ranges::find(stage.members, peer, &BenchMember::peer);
    if (at == stage.members.end()) return;
    RoundReport report;
    report.stage = open.stage;
    report.round = open.round;
    at->in_round = std::exchange(at->settled, {});
    report.entries = at->in_round;
    report.weight = at->in_round.size() * kTargets;
    authority_->on_message(at->remote(), report);
    if (++stage.opened < open.members.size()) return;
    stage.opened = 0;
    RoundReport agreed;
    agreed.stage = open.stage;
    agreed.round = open.round;
    agreed.kind = ReportKind::kAgreed;
    for (std::size_t i = 0; i < 8; ++i) agreed.digest.bytes[i] = static_cast<std::uint8_t>(open.round.value >> (8 * i));
    for (const BenchMember& member : stage.members) agreed.weight += member.in_round.size() * kTargets;
    for (const BenchMember& member : stage.members) authority_->on_message(member.remote(), agreed);
  }
  void on_commit(const RoundCommit& commit) {
    BenchStage& stage = stages_[commit.stage.value];
    if (!book_.on_round_commit(commit, [](const MicrobatchId&, StageId, const EntryName&) {}).empty())
      return fail("a round named what was lost");
    stage.version = commit.version;
    stage.round_due = false;
    if (++stage.rounds % options_.session == 0) replace(stage.members[stage.rounds / options_.session % kMembers]);
    write_done();
    for (const BenchMember& member : stage.members) beat(stage, member);
    ask_for_round(stage);
    finish_when_done();
  }
  // It leaves, what it had settled is lost, and another session of it joins.
  void replace(BenchMember& member) {
    authority_->on_message(member.remote(), Leave{false});
    ++member.incarnation;
    member.settled.clear();
    member.in_round.clear();
    join(member);
  }

  const LogBenchOptions& options_;
  ThreadLoop& loop_;
  std::string folder_;
  FileStorage storage_;
  CommitBook book_;
  KeyPair run_key_;
  LogSpace trainer_space_, authority_space_;
  std::unique_ptr<RecordLog> trainer_log_;
  std::unique_ptr<Authority> authority_;
  std::vector<BenchStage> stages_;
  std::function<void(std::uint64_t)> progress_;
  Status failed_;
  bool syncing_ = false;
  TimerId beat_timer_{};
  std::uint64_t told_ = 0, sessions_ = 0, most_bytes_ = 0;
  int compactions_ = 0;
  int standing_ = 0;           // beats without a commit
  std::uint64_t at_beat_ = 0;  // what was committed at the last one
};

}  // namespace shoal
