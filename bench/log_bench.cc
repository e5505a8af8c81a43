#include "bench/log_bench.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "authority/authority.h"
#include "common/crypto/sign.h"
#include "common/log.h"
#include "common/os/file_storage.h"
#include "common/os/posix_file.h"
#include "common/os/thread_loop.h"
#include "router/commit_book.h"
#include "runtime/launch/log_partners.h"
#include "runtime/launch/log_space.h"

namespace shoal {
namespace {

constexpr std::uint64_t kTrainer = 1, kTargets = 8;  // of a microbatch
constexpr std::uint64_t kMembers = 2;                // of a stage
constexpr double kAimSeconds = 5;
constexpr std::uint64_t kAimBytes = 64u << 20;

KeyPair key_of(std::uint64_t n) {
  std::array<std::uint8_t, 32> seed{};
  for (std::size_t i = 0; i < 8; ++i) seed[i] = static_cast<std::uint8_t>(n >> (8 * i));
  return KeyPair::from_seed(seed);
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
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
    loop_.run();
    SHOAL_TRY(synced);
    authority_->start();
    return {};
  }
  // Until all microbatches are in the logs and what follows from them is; `progress` at each hundredth.
  Status feed(std::function<void(std::uint64_t)> progress) {
    progress_ = std::move(progress);
    for (BenchStage& stage : stages_)
      for (BenchMember& member : stage.members) join(member);
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
  Version settled(StageId stage) const override { return book_.settled(stage); }
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
    if (!book_.done_dirty()) return;
    trainer_log_->append(book_.done_record());
    trainer_log_->sync([this](const Status& status) {
      if (!status.ok()) return fail(status.error().message);
      book_.done_durable();
      write_done();
      pump();
    });
  }
  void finish_when_done() {
    if (book_.committed() < options_.microbatches || book_.done_left() || book_.done_dirty()) return;
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
};

struct LogFigures {
  double feed_s = 0, resume_s = 0, read_s = 0;
  std::uint64_t file_bytes = 0, most_bytes = 0, rss_early = 0, rss = 0, rounds = 0, sessions = 0, lost = 0;
  int compactions = 0;
};

Result<LogFigures> measure(const LogBenchOptions& options, const std::string& folder) {
  LogFigures figures;
  ThreadLoop loop;
  std::uint64_t committed = 0;
  std::string trainer_path, authority_path;
  {
    LogFeed feed(options, loop, folder);
    trainer_path = feed.trainer_path();
    authority_path = feed.authority_path();
    SHOAL_TRY(feed.open());
    const TimePoint began = monotonic_now();
    SHOAL_TRY(feed.feed([&](std::uint64_t hundredth) {
      if (hundredth == 2) figures.rss_early = resident_bytes();
      std::fprintf(stderr, "\r%llu %% of %llu microbatches", static_cast<unsigned long long>(hundredth),
                   static_cast<unsigned long long>(options.microbatches));
    }));
    std::fprintf(stderr, "\n");
    figures.feed_s = seconds_of(monotonic_now() - began);
    figures.rss = resident_bytes();
    figures.rounds = feed.tally().rounds;
    figures.sessions = feed.sessions();
    figures.lost = feed.book().lost();
    figures.compactions = feed.compactions();
    figures.most_bytes = feed.most_bytes();
    committed = feed.book().committed();
  }
  for (const std::string& path : {trainer_path, authority_path}) {
    const TimePoint began = monotonic_now();
    SHOAL_ASSIGN(const Bytes bytes, read_file(path, kLogBytesMax));
    figures.read_s += seconds_of(monotonic_now() - began);
    figures.file_bytes += bytes.size();
  }
  LogFeed resumed(options, loop, folder);
  const TimePoint began = monotonic_now();
  SHOAL_TRY(resumed.open());
  figures.resume_s = seconds_of(monotonic_now() - began);
  if (resumed.book().committed() != committed || resumed.tally().rounds != figures.rounds ||
      resumed.book().lost() != figures.lost)
    return make_error(ErrorCode::kCorrupt, "what was resumed is not what was written");
  return figures;
}

void tell(const LogBenchOptions& options, const LogFigures& f) {
  const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  std::printf("%llu microbatches over %u stages in %.0f s: %llu rounds, %llu sessions over, %llu pairs lost\n",
              static_cast<unsigned long long>(options.microbatches), options.stages, f.feed_s,
              static_cast<unsigned long long>(f.rounds), static_cast<unsigned long long>(f.sessions),
              static_cast<unsigned long long>(f.lost));
  std::printf("both logs    %8.1f MiB, %.1f at most (aim %.0f), compacted %d times\n", mib(f.file_bytes),
              mib(f.most_bytes), mib(kAimBytes), f.compactions);
  std::printf("resumed in   %8.2f s (aim %.0f); reading the files alone takes %.2f s\n", f.resume_s, kAimSeconds,
              f.read_s);
  std::printf("memory       %8.1f MiB; %.1f when 2 %% were done\n", mib(f.rss), mib(f.rss_early));
}

}  // namespace

int run_log_bench(const LogBenchOptions& options) {
  set_log_level(LogLevel::kWarning);
  std::string folder = options.folder;
  if (folder.empty()) {
    std::string pattern = (std::filesystem::temp_directory_path() / "shoal-log-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      std::fprintf(stderr, "shoal-bench log: cannot make a folder like %s\n", pattern.c_str());
      return 1;
    }
    folder = pattern;
  }
  const Result<LogFigures> figures = measure(options, folder);
  if (options.folder.empty()) std::filesystem::remove_all(folder);
  if (!figures.ok()) {
    std::fprintf(stderr, "\nshoal-bench log: %s\n", figures.error().message.c_str());
    return 1;
  }
  if (!options.json) return tell(options, *figures), 0;
  const nlohmann::json line = {{"bench", "log"},
                               {"microbatches", options.microbatches},
                               {"resume_s", figures->resume_s},
                               {"file_bytes", figures->file_bytes},
                               {"rss_bytes", figures->rss},
                               {"most_file_bytes", figures->most_bytes},
                               {"rss_early_bytes", figures->rss_early},
                               {"read_s", figures->read_s},
                               {"feed_s", figures->feed_s},
                               {"rounds", figures->rounds},
                               {"sessions", figures->sessions},
                               {"lost", figures->lost},
                               {"compactions", figures->compactions}};
  std::printf("%s\n", line.dump().c_str());
  return 0;
}

}  // namespace shoal
