#pragma once
// One session serving one stage: composes ledger, courier and round over a transport, a device and an executor. It ends
// with its session: whoever owns it (runtime/peer/peer.h) makes a new one after a fence.
//
// Thread: loop only; the executor is touched inside device jobs. Borrows everything in Environment; the executor is
// shared with jobs under way.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "common/event_loop.h"
#include "events/event_log.h"
#include "router/courier.h"
#include "router/ledger.h"
#include "router/roster.h"
#include "runtime/config/config.h"
#include "runtime/stage_peer/device_queue.h"
#include "runtime/stage_peer/frame_coder.h"
#include "sync/round.h"
#include "transport/transport.h"

namespace shoal {

struct StagePeerOptions {
  std::shared_ptr<const RunConfig> config;  // shared with device jobs, which may outlive the session
  StageSpec spec;
  Session self;
  PeerId authority;
  std::size_t credits = 16;
};

struct StagePeerEnvironment {
  EventLoop& loop;
  Transport& transport;
  DeviceQueue& device;
  EventLog& events;
  std::shared_ptr<StageExecutor> executor;
  FrameCoder* coder = nullptr;  // may be absent
};

// Figures for beats and for people.
struct StagePeerStatus {
  LedgerCounters ledger;
  CourierCounters courier;
  std::uint64_t settled_targets = 0, inner_steps = 0, progress = 0, run_targets = 0;
  double run_loss = 0;
  std::uint64_t graphs_dropped = 0;          // by inner steps: their forwards run again
  std::optional<TimePoint> last_accepted{};  // a microbatch
  bool device_busy = false;
  std::size_t live = 0, queued = 0, parked = 0;
  std::uint32_t queue_ms = 0;
  double rate = 0;                                  // targets a second over the last seconds
  std::uint64_t fp32_bytes = 0, payload_bytes = 0;  // of activations and gradients that were encoded; of their frames
  Version version;
};

class StagePeer final : private CourierPort, private LedgerPort, private RoundHost {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // This session cannot go on: its state differs from the stage's, or it missed what it cannot catch up with.
    virtual void on_session_lost(const std::string& why) = 0;
    virtual void on_version(Version version) = 0;
    virtual void on_inner_step() = 0;
    // A round was committed without this session, which can follow: fetch this state or a newer one and give it to
    // catch_up(). Called again when it is not the newest any more. Until then the session goes on with its old anchor
    // and takes part in no round.
    virtual void on_behind(Version version, const Digest& digest) = 0;
  };

  StagePeer(StagePeerOptions options, StagePeerEnvironment environment, Owner& owner);
  ~StagePeer() override;

  // The arena holds the stage's state of `version`, which `rule` made: from now on forwards are accepted.
  void serve(Version version, RuleId rule);
  bool serving() const { return serving_; }
  // The image (root and digest checked) of a committed version, asked for by on_behind: shifts what is here onto it.
  // False: not wanted any more, and on_behind is called again if another one is.
  bool catch_up(Bytes image);

  // ---- from the transport ----
  void on_message(const Remote& from, Message& message, TransferId transfer, std::uint64_t frame_bytes);
  void on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames);
  void on_link_up(const Remote& remote);
  void on_link_down(const Remote& remote);
  void on_members(const MemberList& list);
  // What the run has committed, as any message says: the schedule of the learning rate follows it.
  void note_run(std::uint64_t targets, double loss);

  // ---- leaving and end ----
  void leave();                     // no new forwards; open windows are closed when they are settled
  bool quiet() const;               // nothing live, nothing open
  std::string waiting_for() const;  // for people
  void stop();                      // fenced or gone: every timer and callback of this session ends
  bool stopped() const { return stopped_; }

  StagePeerStatus status() const;
  const Ledger& ledger() const { return ledger_; }
  const Courier& courier() const { return courier_; }
  const Roster& roster() const { return roster_; }
  Version version() const override { return version_; }
  // A candidate that was reported and neither committed nor abandoned yet: the authority may commit it without us.
  const std::optional<RoundOpen>& prepared() const { return prepared_; }
  const OuterRule* rule(std::uint8_t rule_id) const override;
  RuleId state_rule() const { return state_rule_; }  // of the last commit: whose roles belong to the anchor
  // Runs on the device between jobs; for state transfer and evaluation of the arena.
  void run_on_device(DeviceTask task, std::function<void(StageExecutor&)> job, std::function<void()> done);

 private:
  struct Tensors;  // what is kept of one entry
  struct Waiting;  // rounds that wait for the ledger

  // CourierPort
  std::vector<Session> candidates(StageId stage) override;
  std::uint64_t low_of(std::uint64_t trainer) override;
  Result<TransferId> send_forward(const Session& to, Forward message, bool key) override;
  void on_branch(const MicrobatchId& microbatch, const Session& to, const Lease& lease, BranchEnd end) override;
  void send(const Session& to, Message message) override;
  void drop_transfer(const Session& to, TransferId transfer) override;
  void on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes> frames) override;
  void on_parked(const MicrobatchId& microbatch, StageId stage, bool parked) override;
  void write(const EventRecord& event) override { env_.events.write(event); }
  // LedgerPort (send and write serve both)
  void ask_trainer(shoal::Waiting message) override;
  bool send_gradient(const Session& to, Gradient message, EntrySerial serial) override;
  void refuse_frames(const Session& from, TransferId transfer) override;
  void open_hop(EntrySerial serial) override;
  void close_hop(const MicrobatchId& microbatch, ReleaseWhy why) override;
  void commit_hop(const MicrobatchId& microbatch) override;
  void forget_hop(const MicrobatchId& microbatch) override;
  void take(const MicrobatchId& microbatch, const GradientHint& hint) override;
  void discard(EntrySerial serial) override;
  // RoundHost
  void contribute(const RoundOpen& open, std::function<void(Result<Contribution>)> done) override;
  void prepare(const RoundOpen& open, Payload reduced, std::function<void(Result<Digest>)> done) override;
  void commit(const RoundOpen& open, const RoundCommit& commit, std::function<void()> done) override;
  void abandon(const RoundOpen& open) override;
  void fell_behind(const RoundCommit& commit, bool secured, bool differs, const std::string& why) override;
  void send_to_authority(Message message) override;
  void send_to_member(const Session& member, Message message, std::vector<Bytes> frames) override;

  Result<TransferId> send_to(const Session& to, Message message, std::vector<Bytes> frames);
  bool refuses_frames(const Remote& from, const Message& message, TransferId transfer, std::uint64_t frame_bytes);
  void on_forward(const Remote& from, const Forward& message, TransferId transfer);
  void on_gradient(const Remote& from, const Gradient& message, TransferId transfer);
  void schedule_tick();
  void tick();
  void send_progress(bool all);
  void send_renewals();
  // Starts the next device job if the device is free.
  void pump();
  // The round's next step, if the ledger lets it happen now; true: the device has it.
  bool pump_round();
  bool run_abandon();
  bool run_commit();
  bool run_prepare();
  bool run_contribute();
  bool run_shift();
  // Whether a committed round that this session missed can be made up by a shift (the cases: stage_peer_shift.cc).
  bool can_shift() const;
  void start(const Job& job);
  void start_forward(EntrySerial serial, bool evaluate);
  void start_backward(const Job& job);
  void note_refused(EntrySerial serial, std::string_view why, std::string_view role);
  void count_frame(std::size_t bytes);
  void start_write(const Job& job);
  // `after` runs on the loop if this session still lives; then the next job starts.
  void on_device(DeviceTask task, std::function<void()> job, std::function<void()> after);
  // Shared with the device jobs of a round: they may outlive the session.
  std::shared_ptr<OuterRule> rule_of(RuleId id) const;
  std::shared_ptr<OuterRule> rule_of(const RoundOpen& open) const { return rule_of(static_cast<RuleId>(open.rule)); }
  RoundContext context_of(const RoundOpen& open) const;

  StagePeerOptions options_;
  StagePeerEnvironment env_;
  Owner& owner_;
  HopRates rates_;
  std::unique_ptr<RoutingPolicy> policy_;
  Courier courier_;
  Ledger ledger_;
  Roster roster_;
  const std::shared_ptr<OuterRule> allreduce_, diloco_;
  Round round_;
  std::unique_ptr<Waiting> waiting_;
  std::optional<Session> authority_session_;
  std::unordered_map<EntrySerial, std::shared_ptr<Tensors>> tensors_;
  struct Inbound {
    PeerId peer;
    TransferId transfer;
    auto operator<=>(const Inbound&) const = default;
  };
  std::map<Inbound, EntrySerial> inbound_inputs_;
  std::map<Inbound, Gradient> inbound_gradients_;
  std::map<Inbound, RoundPart> inbound_parts_;
  std::unordered_map<Lease, HopPhase> told_;  // phases our holders know
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  TimerId tick_timer_ = 0;
  TimePoint next_beat_{}, next_renewal_{};
  bool serving_ = false, leaving_ = false, device_busy_ = false, shift_pending_ = false, stopped_ = false;
  Version version_;
  RuleId state_rule_ = RuleId::kAllreduce;
  std::optional<RoundOpen> prepared_;
  struct Behind {
    Version newest;                                   // committed without us
    std::optional<std::vector<EntrySerial>> secured;  // ours, when the round that left our version behind names us
  };
  std::optional<Behind> behind_;  // until the shift is made
  std::uint64_t inner_steps_ = 0, adam_step_ = 0, progress_ = 0, run_targets_ = 0, graphs_dropped_ = 0;
  std::optional<TimePoint> last_accepted_;
  std::uint64_t part_bytes_max_ = 0;  // of a round: the whole arena
  double run_loss_ = 0;
  std::uint64_t fp32_bytes_ = 0, payload_bytes_ = 0;
  double rate_ = 0;
  TimePoint rate_since_{};
  std::uint64_t rate_counted_ = 0;
};

}  // namespace shoal
