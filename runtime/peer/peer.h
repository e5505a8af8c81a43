#pragma once
// The life of a peer: finds the authority, reads the manifest, joins, gets its stage's state, serves, leaves; and
// begins again as a new session when one is over (fenced, or its state differs). What serves is
// runtime/stage_peer/stage_peer.h; here is what comes before and after.
//
// Composed of small values that know no I/O, and of one PeerSession, which is taken down before the next begins:
//   PeerState      where it stands
//   AuthorityLink  whether the authority is there, and how long it is not
//   Reachability   whether others can dial us
//   Absence        why it goes or is away, and what comes next: leave, move, pause
//   KeptState      the stage's state between two sessions
//   Checkpointing  the stage's state on its own disk
//   Announcing     its record in the directory
//   TrafficBook    bytes over all sessions
//
// Thread: loop only. Borrows what Environment refers to. The same class runs in `shoal join` and in the simulator.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/peer/peer_session.h"

namespace shoal {

struct PeerReport {                          // for the line every few seconds
  PeerPhase phase = PeerPhase::kConnecting;  // kLeaving from the wish on
  std::string reason{};
  std::optional<StageId> stage{};
  StagePeerStatus status{};
  PeerFigures figures{};
  std::uint64_t fetched_bytes = 0, fetch_total = 0;
  BeatAck run{};                              // as last heard
  const MemberList* list = nullptr;           // the newest, until the next callback; null: none in this session
  std::shared_ptr<const RunConfig> config{};  // null before the manifest is here
  std::uint64_t sessions = 1;                 // lives so far
  std::optional<DiskState> on_disk{};
  std::optional<PeerPause> pause{};
  bool job_under_way = false;  // at the device, whatever it is for; its thread cannot be joined before the job ends
};

class Peer final {
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
  ~Peer();

  void start();
  // Serve no new forwards, settle, secure, go. Twice: at once.
  void leave();
  // With a reason it leaves the run, in order if that takes no longer than Absence::kPauseTime, frees the device and
  // stays so. Without one it joins again. What is so already changes nothing; a peer that leaves for good goes on to.
  void set_pause(const std::optional<std::string>& why);
  // From now on others are told these addresses, of which the router maps `mapped` to this process, as `mapping` says
  // for people (transport/mapping/port_mapping.h); the authority dials them.
  void be_told_at(Whereabouts whereabouts, std::vector<std::string> mapped, const std::string& mapping);
  PeerReport report() const;
  // The longest of the process's loop since the last call.
  std::optional<LongestCallback> take_longest_callback() { return std::exchange(longest_callback_, std::nullopt); }
  // Null before the state is here.
  const StagePeer* stage_peer() const { return session_ ? session_->stage_peer() : nullptr; }
  // The simulation's checkers alone ask for it.
  StageExecutor* executor() const {
    return session_ && session_->stage() ? session_->stage()->executor().get() : nullptr;
  }
  Session session() const { return session_ ? session_->self() : Session{}; }
  // The stage and version of the anchor that this process holds, serving or between two sessions.
  std::optional<std::pair<StageId, Version>> held_state() const {
    return session_ ? session_->held_state() : kept_.newest();
  }

  // ---- from its session ----
  void end_session(const std::string& why);                            // keeps the state; a new session follows
  void finish(const std::string& reason, std::optional<Error> error);  // none follows
  void on_notice(const std::string& line) { owner_.on_notice(line); }
  void on_warning(const std::string& line) { owner_.on_warning(line); }

 private:
  void begin_session();
  void keep_state();  // on the device, then restarts
  void restart(KeptState::Images images);
  void tick();
  void check_patience(TimePoint now);
  bool check_device();  // false: it hangs, and this is over
  Duration device_hung() const;
  void tell_of_processor();  // once a session each: it starves; a session that is over waits for it
  void look_up_authority();
  void write_bytes();
  StagePeerStatus status() const { return session_ ? session_->status() : StagePeerStatus{}; }
  Traffic session_traffic() const { return session_ ? session_->traffic() : Traffic{}; }

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
  KnownRun run_;
  std::unique_ptr<PeerSession> session_;  // null before start() and while it is paused
  std::uint64_t sessions_ = 0;
  bool starving_told_ = false, waiting_told_ = false;  // in this session
  TimePoint next_bytes_{};
  std::optional<LongestCallback> longest_callback_;  // not taken yet
  TimerId timer_ = 0;
  Lifetime lifetime_;  // of callbacks that are about this object, whatever session it is in
};

}  // namespace shoal
