#pragma once
// The life of a peer: finds the authority, reads the manifest, joins, gets its stage's state, serves, leaves; and
// begins again as a new session when one is over (fenced, or its state differs). What serves is
// runtime/stage_peer/stage_peer.h; here is what comes before and after.
//
// Composed of small values that know no I/O, and of one Life, which is taken down with its session:
//   PeerState      where it stands
//   AuthorityLink  whether the authority is there, and how long it is not
//   Reachability   whether others can dial us
//   StagePlace     its stage: executor, state, what serves it
//   KeptState      the stage's state between two sessions
//   Checkpointing  the stage's state on its own disk
//   Absence        why it goes or is away, and what comes next: leave, move, pause
//   Announcing     its record in the directory
//   TrafficBook    bytes over all sessions
//
// Thread: loop only. Borrows what Environment refers to. The same class runs in `shoal join` and in the simulator.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "authority/membership.h"
#include "common/crypto/sign.h"
#include "common/event_loop.h"
#include "common/lifetime.h"
#include "common/log_throttle.h"
#include "common/rng.h"
#include "common/work_queue.h"
#include "dht/peer_directory.h"
#include "events/event_log.h"
#include "runtime/config/config.h"
#include "runtime/peer/absence.h"
#include "runtime/peer/announcing.h"
#include "runtime/peer/authority_link.h"
#include "runtime/peer/checkpointing.h"
#include "runtime/peer/device_watch.h"
#include "runtime/peer/kept_state.h"
#include "runtime/peer/peer_state.h"
#include "runtime/peer/reachability.h"
#include "runtime/peer/session_events.h"
#include "runtime/peer/stage_place.h"
#include "runtime/peer/traffic.h"
#include "runtime/plan/memory_fit.h"
#include "runtime/stage_peer/stage_peer.h"
#include "stages/executor.h"
#include "state/state_image.h"
#include "state/state_transfer.h"
#include "transport/transport.h"

namespace shoal {

struct PeerOptions {
  KeyPair key;
  RunId run;  // also the authority's PeerId
  Whereabouts authority;
  Whereabouts whereabouts;  // our own, for others to dial
  std::optional<StageId> wish;
  std::string device;  // for people
  std::string name{};  // for people, by its owner (common/peer_name.h); empty: none
  // The device is this machine's processor. A job that does not end there is another program's doing or a bug, and no
  // new process would have another processor: this one waits for it, and joins again. Else the process ends, so that
  // what restarts it gets the device anew.
  bool on_processor = false;
  // Microbatches at a time (runtime/plan/stage_memory.h): as many as fit in this memory beside the stage, when it
  // is not 0; else so many; else what the run asks of one replica.
  std::uint64_t memory_bytes = 0;
  std::optional<std::size_t> credits{};
  // Without any link to the authority, or with nobody who can dial us, for so long at the start: give up.
  Duration contact_time = 60s;
  Duration absence_time = std::chrono::hours(1);  // and when it was there and went: the state is kept so long
  bool once = false;                              // a session that is over ends the peer
  std::optional<std::uint64_t> device_memory{};   // bytes, for the authority; none: not known
  std::uint64_t program_bytes = kProgramBytes;    // this process's on its device, without any stage; on a GPU,
                                                  // what its libraries come to take
  std::string base_folder{};                      // the base of adapters is kept here; empty: nowhere
  std::vector<std::string> checkpoint_folders{};  // each gets every checkpoint; none: none is written
};

struct PeerEnvironment {
  EventLoop& loop;
  Wire& wire;
  WorkQueue& device;
  WorkQueue& aside;  // as in StagePeerEnvironment
  EventLog& events;
  ExecutorFactory factory;
  Rng rng;
  PeerDirectory* directory = nullptr;  // may be absent
  std::function<ExecutorFactory(const RunConfig&)>
      factory_of{};                     // when set: makes `factory` for a stage, of what this peer chose
  std::optional<DeltaCodecs> deltas{};  // as in StagePeerEnvironment
  Storage* storage = nullptr;           // for checkpoints; may be absent
  // Bytes that this process may come to on its device, as things stand now: without --memory a stage must fit in them.
  std::function<std::optional<std::uint64_t>()> memory_free{};  // may be absent
  std::function<std::optional<std::uint64_t>()> memory_used{};  // by this process, bytes of its device; may be absent
  std::function<void()> free_caches{};  // gives back what the device keeps for later; in a job of it; may be absent
};

struct PeerReport {                          // for the line every few seconds
  PeerPhase phase = PeerPhase::kConnecting;  // kLeaving from the wish on
  std::string reason;
  std::optional<StageId> stage;
  StagePeerStatus status;
  Traffic traffic;  // of all sessions
  std::uint64_t fetched_bytes = 0, fetch_total = 0;
  BeatAck run{};                              // as last heard
  const MemberList* list = nullptr;           // the newest, until the next callback; null: none in this session
  std::shared_ptr<const RunConfig> config{};  // null before the manifest is here
  std::uint64_t sessions = 1;                 // lives so far
  std::optional<DiskState> on_disk{};
  std::uint64_t memory_needed =
      0;  // bytes: estimated for the stage and its microbatches (stage_memory.h); 0: not known
  std::optional<PeerPause> pause{};
  bool job_under_way = false;  // at the device, whatever it is for; its thread cannot be joined before the job ends
};

class Peer final : private Transport::Listener, private MembershipPort, private StagePlaceOwner {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // Paused, and the device is free.
    virtual void on_paused(const PeerPause&) {}
    // The run is over, we left, or we cannot take part: the process ends. `error` is set for the last of these.
    virtual void on_finished(const std::string& reason, std::optional<Error> error) = 0;
    virtual void on_notice(const std::string& line) = 0;  // one line for people: stage, why, progress
    virtual void on_warning(const std::string& line) {
      on_notice(line);
    }  // one that asks somebody to act: cause, object, remedy
  };

  Peer(PeerOptions options, PeerEnvironment environment, Owner& owner);
  ~Peer() override;

  void start();
  // Serve no new forwards, settle, secure, go. Twice: at once.
  void leave();
  // With a reason it leaves the run, in order if that takes no longer than Absence::kPauseTime, frees the device and
  // stays so. Without one it joins again. What is so already changes nothing; a peer that leaves for good goes on to.
  void set_pause(const std::optional<std::string>& why);
  PeerReport report() const;
  // The longest of the process's loop since the last call.
  std::optional<LongestCallback> take_longest_callback() { return std::exchange(longest_callback_, std::nullopt); }
  // Null before the state is here.
  const StagePeer* stage_peer() const { return life_ && life_->stage ? life_->stage->peer() : nullptr; }
  // The simulation's checkers alone ask for it.
  StageExecutor* executor() const { return life_ && life_->stage ? life_->stage->executor().get() : nullptr; }
  Session session() const { return life_ ? life_->session : Session{}; }
  // The stage and version of the anchor that this process holds, serving or between two sessions.
  std::optional<std::pair<StageId, Version>> held_state() const;

 private:
  // One session and what it is made of, each from its time on: taken down together, the last first.
  struct Life {
    Session session;
    std::unique_ptr<Transport> transport;
    std::unique_ptr<Membership> membership;  // from the manifest on
    std::optional<JoinAnswer> answer;
    std::unique_ptr<StagePlace> stage;  // from the answer on
    bool starving_told = false, waiting_told = false;
    Lifetime lifetime;  // of callbacks that are about this session; over before a restart and after the end
  };

  // Transport::Listener
  void on_link_up(const Remote& remote) override;
  void on_link_down(const Remote& remote, const Error& cause) override;
  void on_message(const Remote& remote, Message message, TransferId transfer, std::uint64_t frame_bytes) override;
  void on_frames(const Remote& remote, TransferId transfer, Result<std::vector<Bytes>> frames) override;
  // MembershipPort
  void send_to_authority(Message message) override;
  Beat make_beat() override;
  void on_joined(const JoinAnswer& answer) override;
  void on_refused(const std::string& reason) override;
  void on_unreachable(const std::string& reason) override;
  void on_later(const std::string& reason) override;
  void on_members(const MemberList& list) override;
  void on_fenced(const std::string& reason) override;
  void on_goodbye() override;
  void on_end(const std::string& reason) override;
  void on_status(const BeatAck& status) override;
  // StagePlaceOwner
  void on_serving(Version version) override;
  void on_stage_lost(const std::string& why) override { end_session(why); }
  void on_stage_failed(Error error) override;
  void on_notice(const std::string& line) override { owner_.on_notice(line); }

  // ---- sessions ----
  void begin_session();
  void end_session(const std::string& why);  // keeps the state; a new session follows
  void keep_state();                         // on the device, then restarts
  void restart(KeptState::Images images);
  void finish(const std::string& reason, std::optional<Error> error);
  void tick();
  void check_patience(TimePoint now);
  bool check_device();  // false: it hangs, and this is over
  Duration device_hung() const;
  void tell_of_processor();  // once a session each: it starves; a session that is over waits for it
  void write_bytes();
  Traffic session_traffic() const;
  StagePeerStatus status() const;  // zeros before the state is here

  // ---- to a place (peer_place.cc) ----
  void look_up_authority();
  void on_manifest(const Manifest& manifest);
  Status close_to_strangers();  // a run with keys: its keys and the launching process alone may dial us
  void start_membership();
  bool holds_alone() const;  // the stage's state, as far as the list says. REQUIRES: a session
  bool authority_is_linked() const { return life_->transport->remote(authority()).has_value(); }
  PeerId authority() const { return as_peer(options_.run); }

  void build_stage(StageId stage);
  Result<Room> room_for_stage(const StageSpec& spec);  // ERRORS: kTooLarge

  // ---- leaving, and what others are told ----
  // absence_.goes() from now on. For people: `line`, what is to settle first, `hint`.
  void begin_going(const std::string& line, const std::string& hint);
  void check_going();
  std::string going_reason() const;
  Announcing::Facts facts() const;  // REQUIRES: spec_
  void announce();                  // once the stage is known
  void exchange_peers();

  // ---- messages (peer_place.cc) ----
  bool to_membership(const Remote& remote, const MembershipMessage& message);  // false: it ended the session
  void send(const PeerId& to, Message message, std::vector<Bytes> frames = {});
  void on_end_message(const Remote& remote, const End& end);

  PeerOptions options_;
  PeerEnvironment env_;
  SessionEvents events_;
  Owner& owner_;
  const OuterRules rules_;  // roles only
  PeerState state_;
  AuthorityLink link_;
  Reachability reachability_;
  Absence absence_;
  KeptState kept_;  // of the session before
  Checkpointing checkpointing_;
  DeviceWatch device_;
  std::optional<TimePoint> over_at_;  // the end of the session before, in the device's time
  Announcing announcing_;
  TrafficBook traffic_;
  LogThrottle said_;
  std::shared_ptr<const RunConfig> config_;  // null before the manifest is here
  std::shared_ptr<const RunConfig> served_;  // the same with [compute] recompute as this peer chose; from then on
  std::size_t credits_ = 0;                  // from when the stage is known
  std::optional<StageSpec> spec_;            // of this session, before that of the one before
  std::unique_ptr<Life> life_;               // null before start()
  std::uint64_t sessions_ = 0;
  BeatAck run_status_;
  std::optional<End> end_;  // heard, with the run's signature: passed on to neighbours
  TimePoint next_bytes_{};
  std::optional<LongestCallback> longest_callback_;  // not taken yet
  TimerId timer_ = 0;
  Lifetime lifetime_;  // of callbacks that are about this object, whatever session it is in
};

}  // namespace shoal
