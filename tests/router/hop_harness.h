#pragma once
// Whole swarms of ledgers and holders in virtual time: a trainer with its commit book and durable log, stages of
// replicas with a device of whole numbers (count tags), links that delay, break and lose what they carry, an authority
// that fences sessions and commits rounds. Everything random comes from the seed, so a seed is a run. Checks run after
// every device job and at the end; what they find is violations().
//
// Faults: kill (nothing is told), freeze (messages and timers wait), cut (a link goes down with all it carries),
// trainer killed and restarted from its log with what was not synced torn off. Tests may also steer: `choose` picks
// peers, `delay_of` delays or loses single messages.
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "common/rng.h"
#include "router/commit_book.h"
#include "router/courier.h"
#include "router/ledger.h"

namespace shoal::hop {

inline constexpr std::uint64_t kTrainerId = 77;
inline constexpr std::uint32_t kTargets = 1;  // of one microbatch

struct Options {
  std::uint64_t seed = 1;
  std::uint16_t stages = 2;
  std::size_t replicas = 2;
  std::uint64_t microbatches = 12;
  std::size_t in_flight = 4;
  std::size_t credits = 6;
  std::uint64_t inner_batch = 2;  // microbatches a window
  std::uint64_t step_size = 0;    // > 0: rule allreduce, that many microbatches a step
  Duration lease = 4s;
  Duration delay_min = 1ms, delay_max = 20ms;
  Duration job_min = 2ms, job_max = 30ms;
  double slow_chance = 0;  // of a message that takes up to a second longer, or a job that takes up to slow_job longer
  Duration slow_job = 1s;
  std::size_t faults = 0;  // how many in the first ten seconds
  bool trainer_faults = false;
  double base_lost = 0;   // of frames that turn out to need a base which the receiver has not (key frames never do)
  bool may_list = false;  // a steered run in which something fails; with faults it is always so
  Duration limit = 240s;  // virtual time in which everything must end
};

class World;

// The key of whoever has this tag: the trainer's is the same in every life.
PeerId peer_of(const Session& session);

// One session: a peer or the trainer, around the product's own courier. Its code runs only while it is neither dead nor
// frozen.
class Actor : protected HopOwner, private Links {
 public:
  Actor(World& world, Session self, std::optional<StageId> ahead, std::optional<PeerId> authority = {});
  ~Actor() override;
  virtual void on_message(const Session& from, Message& message, TransferId transfer) = 0;
  virtual void on_frames(const Session& from, TransferId transfer, bool whole) = 0;
  virtual void on_link_down(const Session& session) = 0;
  virtual void on_members(const MemberList& list) = 0;
  virtual void tick() = 0;

  const Session& self() const { return self_; }
  const Courier& courier() const { return courier_; }
  bool running() const { return !dead && !frozen; }

  bool dead = false, frozen = false;
  TimePoint stopped_at;                        // of the death or the freeze
  std::vector<std::function<void()>> backlog;  // what waits for the thaw

 protected:
  class Policy;
  // Whether `from` may speak; a link of that session is up then.
  bool hears(const Session& from);
  Remote remote_of(const Session& session) const { return {peer_of(session), session, PeerRole::kPeer}; }

  // HopOwner
  std::vector<Bytes> frames_of(const Session& to, const Forward& message, bool key) override;
  // Sent frames have one end, and nothing else has one.
  void on_branch(const MicrobatchId& m, const Session& to, const Lease& lease, BranchEnd end) override;
  void on_parked(const MicrobatchId& m, StageId stage, bool parked) override;
  void write(const EventRecord& event) override;

  World& world_;
  Session self_;
  Neighbours neighbours_;
  Courier courier_;

 private:
  // Links: to the session that has the peer's key now
  void learn(const PeerId& peer, Whereabouts whereabouts) override;
  Result<TransferId> send(const PeerId& peer, Message message, std::vector<Bytes> frames) override;
  void drop(const PeerId& peer, TransferId transfer) override;
  void refuse(const PeerId& peer, TransferId transfer) override;
  std::optional<Remote> remote(const PeerId& peer) const override;
  std::uint64_t ahead_of(const PeerId&, TransferId) const override { return 0; }
  LinkStats stats(const PeerId& peer) const override;

  std::map<PeerId, TimePoint> heard_;
  std::set<Lease> frames_out_;  // branches that were sent and have not ended
};

// What an executor keeps, in tags. Follows stages/executor.h: two buffers, stamps, graphs that die when their buffer is
// overwritten.
struct TagDevice {
  struct Item {
    MicrobatchId microbatch;
    WeightStamp stamp = 0;
    bool graph = true, counted = false;
    WindowSlot slot = WindowSlot::kA;
  };
  std::map<EntrySerial, Item> items;
  CountTag window[2] = {0, 0};
  CountTag unsecured = 0;  // in the parameters, in no committed round
  WeightStamp stamp = 0;
  // Counts what must not happen: a write over weights that an undo may need, an undo of what was never counted.
  std::vector<std::string> faults;
  bool backward(EntrySerial serial, WindowSlot slot);  // whether it was recomputed
  bool undo(const Job& job);
  void release(const Job& job);
  void write(std::optional<WindowSlot> slot);
};

class PeerActor final : public Actor, private LedgerPort {
 public:
  PeerActor(World& world, Session self, StageId stage);
  void on_message(const Session& from, Message& message, TransferId transfer) override;
  void on_frames(const Session& from, TransferId transfer, bool whole) override;
  void on_link_down(const Session& session) override;
  void on_members(const MemberList& list) override;
  void tick() override;
  void on_step(const Step& step);
  void pump();
  void check();

  StageId stage() const { return stage_; }
  Ledger& ledger() { return ledger_; }
  Windows& windows() { return windows_; }
  bool device_busy() const { return busy_; }
  TagDevice device;
  bool round_pending = false;            // a commit that names its entries is on the way to it
  std::map<JobKind, Duration> job_time;  // instead of a random one
  bool hold_jobs = false;                // the device starts nothing new

 private:
  // HopOwner
  std::vector<Bytes> frames_of(const Session& to, const Forward& message, bool key) override;
  void on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes> frames) override;
  // LedgerPort
  void send(const Session& to, Message message) override { neighbours_.send(to, std::move(message)); }
  bool ask_trainer(Waiting message) override;
  bool send_gradient(const Session& to, Gradient message, EntrySerial serial) override;
  void refuse_frames(const Session& from, TransferId transfer) override;
  void discard(EntrySerial serial) override { kept_.erase(serial); }
  void write(const EventRecord& event) override;  // serves LedgerPort too
  void job_done(const Job& job);
  void check_window(WindowSlot slot);

  StageId stage_;
  Windows windows_;
  EntryCredits credits_;
  Ledger ledger_;
  std::set<EntrySerial> kept_;  // entries whose tensors are kept
  std::map<TransferId, EntrySerial> inputs_;
  std::map<Lease, HopPhase> told_;
  TimePoint next_beat_;
  bool busy_ = false;
};

class TrainerActor final : public Actor {
 public:
  // Replays the world's log and what the authority decided.
  TrainerActor(World& world, Session self);
  void start();
  void on_message(const Session& from, Message& message, TransferId transfer) override;
  void on_frames(const Session&, TransferId, bool) override {}
  void on_link_down(const Session& session) override;
  void on_members(const MemberList& list) override;
  void tick() override;
  void on_round_commit(const RoundCommit& commit);
  void on_session_over(const Session& session, std::string_view cause);

  CommitBook& book() { return book_; }
  bool settled() const;  // every microbatch of the run is logged and durable
  std::vector<Bytes> unsynced() const;

 private:
  // HopOwner
  void on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes> frames) override;
  void issue();
  void on_durable(const MicrobatchId& microbatch);
  void announce_steps();
  void queue(const std::map<Session, std::vector<CommitItem>>& commits);
  void flush();

  CommitBook book_;
  void append(Bytes record, std::function<void()> durable);
  std::map<std::uint64_t, Bytes> unsynced_;  // in the order of appending
  std::uint64_t appended_ = 0;
  std::set<std::uint64_t> deciding_;
  std::map<Session, std::vector<CommitItem>> commits_;
  TimePoint next_repeat_;
  std::uint64_t announced_ = 0;
};

struct Event {
  TimePoint at;
  Session who;
  std::string name;
  MicrobatchId microbatch;
  std::string cause;
};

}  // namespace shoal::hop
