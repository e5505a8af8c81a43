#pragma once
// One stage's replicas, their authority and just enough of a trainer in virtual time, with kills, freezes, broken links
// and restarts of the authority. Everything of sync/ is the product's code; the executor is the exact one, so the
// checker compares to the last unit.
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "authority/authority.h"
#include "authority/membership.h"
#include "common/crypto/sign.h"
#include "common/lifetime.h"
#include "sim/sim_loop.h"
#include "sim/sim_storage.h"
#include "stages/integer_executor.h"
#include "state/state_image.h"
#include "state/state_transfer.h"
#include "sync/round.h"

namespace shoal::test {

// What a process sees of the loop: while frozen, what is due is held; when killed, dropped.
class HostLoop final : public EventLoop {
 public:
  explicit HostLoop(SimLoop& base) : base_(base) {}
  TimePoint now() const override { return base_.now(); }
  WallTime wall() const override { return base_.wall(); }
  void post(std::function<void()> task) override { base_.post(wrap(std::move(task))); }
  TimerId at(TimePoint when, std::function<void()> task) override;
  void cancel(TimerId timer) override;  // also of one that is held by a freeze
  void freeze(Duration time);
  void kill();  // everything pending is dropped; later tasks belong to the next process
  std::function<void()> wrap(std::function<void()> task);
  bool frozen() const { return base_.now() < frozen_until_; }

 private:
  SimLoop& base_;
  TimePoint frozen_until_{};
  std::map<TimerId, std::shared_ptr<bool>> live_;  // true: cancelled
  std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

struct SwarmOptions {
  std::uint64_t seed = 1;
  RuleId rule = RuleId::kDiloco;
  std::size_t peers = 3;
  Duration faults_for = 60s;
  bool faults = true;
  // What a part weighs on the wire: each of its bytes stands for so many. Links have so many bytes a second each way.
  double bytes_per_byte = 0, link_bytes_per_second = 0;
  Duration round_budget = 5s;  // 0 = from `bytes_per_byte`
};

class Swarm;

// One session of one peer.
class Replica final : public MembershipPort, public RoundHost, public DonorHost, public FetcherHost {
 public:
  Replica(Swarm& swarm, std::size_t host, Session self, Bytes held);
  void start();
  void on_message(const Session& from, const PeerId& peer, const Message& message, Bytes frame);
  void work();  // diloco: one microbatch and its inner step
  bool count_for_step(const MicrobatchId& microbatch, StepId step, std::uint64_t* serial);  // allreduce

  // MembershipPort
  void send_to_authority(Message message) override;
  Carried carried(const Session& member) const override;
  Beat make_beat() override;
  void on_joined(const JoinAnswer& answer) override;
  void on_refused(const std::string& reason) override;
  void on_unreachable(const std::string&) override {}
  void on_later(const std::string&) override {}
  void on_members(const MemberList& list) override;
  void on_fenced(const std::string& reason) override;
  void on_goodbye() override {}
  void on_end(const std::string&) override {}
  void on_status(const BeatAck&) override {}
  // RoundHost
  Version version() const override { return version_; }
  std::uint64_t payload_bytes_max() const override { return 1u << 20; }
  const OuterRule* rule(std::uint8_t id) const override {
    return id == static_cast<std::uint8_t>(rule_->id()) ? rule_.get() : nullptr;
  }
  void contribute(const RoundOpen& open, std::function<void(Result<Contribution>)> done) override;
  void run_aside(std::function<void()> job, std::function<void()> done) override {
    job();
    done();
  }
  void prepare(const RoundOpen& open, Payload reduced, std::function<void(Result<Digest>)> done) override;
  void commit(const RoundOpen& open, const RoundCommit& commit, std::function<void()> done) override;
  void abandon(const RoundOpen& open) override;
  void fell_behind(const RoundCommit& commit, bool secured, bool differs, const std::string& why) override;
  void send_to_member(const Session& member, Message message, std::vector<Bytes> frames) override;
  // DonorHost, FetcherHost
  void make_image(std::function<void(Result<StateImage>)> done) override;
  void send(const PeerId& to, Message message, std::vector<Bytes> frames) override;
  void send(const PeerId& to, Message message) override { send(to, std::move(message), {}); }
  std::uint64_t received(const PeerId&) const override { return 0; }
  void on_progress(std::uint64_t, std::uint64_t) override {}
  void on_fetched(Bytes image) override;
  void on_waiting(const std::string&) override {}

  Swarm& swarm_;
  const std::size_t host_;
  const Session self_;
  HostLoop& loop_;
  IntegerExecutor executor_;
  std::unique_ptr<OuterRule> rule_;
  Membership membership_;
  std::unique_ptr<Round> round_;
  StateDonor donor_;
  StateFetcher fetcher_;
  Version version_;
  bool has_state_ = false, serving_ = false, over_ = false;
  std::set<std::uint64_t> local_;        // entries in the parameters or the step's window, in no committed round
  std::set<std::uint64_t> contributed_;  // of these, in the round that runs
  bool named_ = false;                   // a commit that we missed names contributed_
  std::map<StepId, Step> steps_;
  StepId window_step_;  // allreduce: whose entries the window holds
  std::set<std::uint64_t> unsettled_;
  StepId closed_step_;
  RoundContext context_;
  RoundId asked_;  // newest round that asked for a contribution
  std::uint64_t serial_ = 0;

 private:
  void fetch(Version version, const Digest& digest);
  void rejoin();
  Bytes held_state();

  Lifetime lifetime_;
};

class Swarm final : public AuthorityPort {
 public:
  explicit Swarm(const SwarmOptions& options);
  ~Swarm() override;
  // Runs faults, then heals everything, finishes the run and checks. Empty = all is well.
  std::vector<std::string> run();
  std::uint64_t trace_hash() const { return loop_.trace_hash(); }

  // ---- AuthorityPort ----
  void send(const PeerId& peer, Message message) override;
  std::vector<std::uint8_t> sign(ByteView body) override;
  void fence(const Session&) override {}
  std::string other_host(const PeerId&) const override { return {}; }
  void on_members(const MemberList&) override {}
  void on_round_commit(const RoundCommit& commit) override;
  void on_round_abandoned(const RoundAbandon&) override { ++abandoned; }
  void on_restored(const RoundCommit&, const RecentCommits::TakenBack&) override {}
  std::optional<std::string> unfit_for_round(StageId, const Session& session,
                                             const std::vector<std::uint64_t>& serials) const override;
  Version settled(StageId) const override { return Version(UINT64_MAX); }  // what is secured is kept here for ever
  std::uint64_t paths_logged() const override { return made.size(); }
  void on_session_over(const Session& session, StageId, const std::string&) override;
  void on_slow_log(Duration) override {}
  void on_log_failure(const Error& error) override { problem("log: " + error.message); }
  void write(const EventRecord&) override {}

  void problem(const std::string& what) { problems_.push_back(what); }
  // Host 0 is the authority's. In order per pair, lost when the link between them breaks meanwhile.
  void deliver(std::size_t from, std::size_t to, std::function<void()> task);
  // The same for a part, which takes its time on the link; a slow one, but one that moves.
  void deliver_part(std::size_t from, std::size_t to, std::size_t bytes, std::function<void()> task);
  std::uint64_t moved(std::size_t from, std::size_t to) const;
  // Nothing crosses from one to the other any more, for ever.
  void cut_one_way(std::size_t from, std::size_t to) { cut_.insert({from, to}); }
  void heal() { cut_.clear(); }
  // What the one sends the other in a round lacks its last byte, for ever; nobody: {0, 0}.
  std::pair<std::size_t, std::size_t> spoiled{0, 0};
  bool listed_serving(std::size_t host) const;
  void replace(std::size_t host, Bytes held);  // the session of this host is over: a new one joins

  struct Host {
    explicit Host(SimLoop& loop) : loop(loop) {}
    HostLoop loop;
    std::unique_ptr<Replica> replica;
    std::vector<std::unique_ptr<Replica>> buried;  // destroyed between turns
  };

  SwarmOptions options;
  SimLoop loop_;
  Rng rng;
  KeyPair key;
  RunId run_id;
  SimDisk disk;
  std::unique_ptr<SimStorage> storage;
  std::unique_ptr<Authority> authority;
  std::vector<std::unique_ptr<Host>> hosts;
  struct Made {
    MicrobatchId microbatch;
    WeightStamp stamp = 0;  // of the weights that its gradient was made at
  };
  std::map<EntryName, Made> made;  // every entry ever counted
  std::set<EntryName> secured;
  std::set<Session> over;
  std::map<RoundId, RoundCommit> commits;
  CountTag secured_tag = 0;
  std::uint64_t abandoned = 0, kills = 0, freezes = 0, breaks = 0, restarts = 0, fences = 0, fell_behinds = 0;
  std::uint64_t next_microbatch = 1, next_incarnation = 1;
  bool working = true;

 private:
  void boot_authority();
  void kill_authority();
  void schedule_work(std::size_t host);
  void schedule_fault();
  void one_fault();
  void break_link(std::size_t a, std::size_t b, Duration time);
  void link_up(std::size_t host);
  void drive_step();
  void issue(const MicrobatchId& microbatch);
  void check_end();
  bool all_serving() const;

  std::vector<std::string> problems_;
  std::map<std::pair<std::size_t, std::size_t>, TimePoint> busy_until_, broken_until_;
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> link_life_;
  std::set<std::pair<std::size_t, std::size_t>> cut_;
  struct Transfer {
    TimePoint begin, end;
    double bytes = 0;
  };
  std::map<std::pair<std::size_t, std::size_t>, std::vector<Transfer>> transfers_;
  // allreduce: what a trainer keeps of a step
  StepId step_{1};
  std::map<MicrobatchId, EntryName> paths_;  // of this step, the log's decision
  std::vector<MicrobatchId> open_;
  std::map<MicrobatchId, TimePoint> issued_at_;
  std::vector<EntryName> winners_;  // of all steps
};

}  // namespace shoal::test
