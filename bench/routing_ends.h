#pragma once
// The two kinds of processes of a contest (routing_world.h): what runtime/ does around a courier and a ledger, without
// tensors. Thread: the simulation's.   Borrows: loop, net, world; they outlive it.
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "bench/routing_world.h"
#include "common/rng.h"
#include "router/courier.h"
#include "router/ledger.h"

namespace shoal {

// Both stages of a contest, as the members know them.
inline constexpr std::uint16_t kSendersStage = 0, kPeersStage = 1;

struct RoutingStage {
  SimLoop& loop;
  RoutingNet& net;
  const RoutingWorld& world;
};

struct RoutingWin {
  std::size_t sender = 0;
  Session peer;
  EntrySerial serial = 0;  // of the entry that won
  Duration took{0};
  std::optional<bool> base_hit;  // none: nobody had a base of its sample
};

// Keeps its part of the microbatches under way, and settles what comes back.
class RoutingSender final : public RoutingEnd, private HopOwner {
 public:
  RoutingSender(const RoutingStage& stage, std::size_t place, const Session& self, std::size_t in_flight,
                std::unique_ptr<RoutingPolicy> policy, std::function<void(const RoutingWin&)> won);

  const Session& self() const { return self_; }
  void on_members(const MemberList& list);
  void start(Duration first_tick);  // REQUIRES: it knows the members
  const CourierCounters& counters() const { return courier_.counters(); }
  std::set<MicrobatchId> open() const;

  void on_message(const Remote& from, Message& message, TransferId transfer) override;
  void on_frames(const Remote& from, TransferId transfer, bool whole) override;

 private:
  struct Issued {
    TimePoint at{};
    SampleId sample;
    std::optional<Session> base;
  };
  std::vector<Bytes> frames_of(const Session& to, const Forward& message, bool key) override;
  void on_branch(const MicrobatchId&, const Session&, const Lease&, BranchEnd) override {}
  void on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes> frames) override;
  void on_parked(const MicrobatchId&, StageId, bool) override {}
  void write(const EventRecord&) override {}
  void issue();
  void tick();

  RoutingStage stage_;
  std::size_t place_, in_flight_;
  Session self_;
  std::function<void(const RoutingWin&)> won_;
  RoutingLinks links_;
  Neighbours neighbours_;
  Courier courier_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Issued> open_;              // by serial
  std::unordered_map<std::uint64_t, Session> bases_;  // by sample: the peer that computed it last
  bool issuing_ = false, started_ = false;
};

// Serves the last stage: one device, which does one job at a time.
class RoutingPeer final : public RoutingEnd, private HopOwner, private LedgerPort {
 public:
  RoutingPeer(const RoutingStage& stage, std::size_t place, const Session& self, Rng rng);

  const Session& self() const { return self_; }
  std::size_t place() const { return place_; }
  RoutingNet::Index index() const { return index_; }
  void on_members(const MemberList& list);
  void start(Duration first_tick);
  void strike();
  void end();                                  // its machine is gone
  Duration worked() const { return worked_; }  // its device, in all
  Duration worked_on(EntrySerial serial) const;
  Duration worked_on(const std::set<MicrobatchId>& microbatches) const;  // that are not decided

  void on_message(const Remote& from, Message& message, TransferId transfer) override;
  void on_frames(const Remote& from, TransferId transfer, bool whole) override;

 private:
  // HopOwner: it holds nothing for a later stage
  std::vector<Bytes> frames_of(const Session&, const Forward&, bool) override { return {}; }
  void on_branch(const MicrobatchId&, const Session&, const Lease&, BranchEnd) override {}
  void on_won(const MicrobatchId&, const Gradient&, std::vector<Bytes>) override {}
  void on_parked(const MicrobatchId&, StageId, bool) override {}
  // LedgerPort
  void send(const Session& to, Message message) override;
  bool ask_trainer(Waiting) override { return true; }
  bool send_gradient(const Session& to, Gradient message, EntrySerial serial) override;
  void refuse_frames(const Session& from, TransferId transfer) override;
  void discard(EntrySerial) override {}
  void write(const EventRecord&) override {}  // serves HopOwner too

  void pump();
  void job_done(const Job& job, Duration took);
  void step(const Job& job);
  Duration duration_of(const Job& job);
  void tick();
  void tell_progress(bool beat);
  std::uint32_t queue_word();  // what it says of its queue, in ms

  RoutingStage stage_;
  std::size_t place_;
  Session self_;
  RoutingPeerShape shape_;
  Rng rng_;
  RoutingLinks links_;
  Neighbours neighbours_;
  Courier courier_;
  Windows windows_;
  EntryCredits credits_;
  Ledger ledger_;
  RoutingNet::Index index_;
  std::unordered_map<TransferId, EntrySerial> inputs_;
  std::map<Lease, HopPhase> told_;
  TimePoint next_beat_{}, word_until_{}, job_began_{};
  std::uint32_t word_ = 0;
  bool busy_ = false, struck_ = false, over_ = false;
  Duration worked_{0};
  struct Worked {
    MicrobatchId microbatch;
    Duration time{0};
    double factor = 1;
  };
  std::unordered_map<EntrySerial, Worked> entries_;
};

}  // namespace shoal
