#pragma once
// The life of a peer: finds the authority, reads the manifest, joins, gets its stage's state, serves, leaves; and
// begins again as a new session when one is over (fenced, or its state differs). What serves is
// runtime/stage_peer/stage_peer.h; here is what comes before and after.
//
// Thread: loop only. Borrows what Environment refers to. The same class runs in `shoal join` and in the simulator.
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/event_loop.h"
#include "common/rng.h"
#include "common/sign.h"
#include "dht/peer_directory.h"
#include "dht/record.h"
#include "events/event_log.h"
#include "runtime/config/config.h"
#include "runtime/peer/announce_pace.h"
#include "runtime/stage_peer/device_queue.h"
#include "runtime/stage_peer/stage_peer.h"
#include "stages/executor.h"
#include "sync/membership.h"
#include "sync/state_image.h"
#include "sync/state_transfer.h"
#include "transport/transport.h"

namespace shoal {

struct PeerOptions {
  KeyPair key;
  RunId run;  // also the authority's PeerId
  std::vector<std::string> authority_addresses;
  std::vector<std::string> addresses;  // our own, for others to dial
  std::optional<StageId> wish;
  std::string device;  // for people
  std::size_t credits = 16;
  std::uint64_t memory_bytes =
      0;  // for the stage and its entries: sets the credits (runtime/stage_peer/stage_memory.h); 0: `credits` as given
  // Without any link to the authority, or with nobody who can dial us, for so long at the start: give up.
  Duration contact_time = 60s;
  Duration absence_time = std::chrono::hours(1);  // and when it was there and went: the state is kept so long
  bool once = false;                              // a session that is over ends the peer
  PlantedBugs planted;
};

struct PeerEnvironment {
  EventLoop& loop;
  Wire& wire;
  DeviceQueue& device;
  EventLog& events;
  ExecutorFactory factory;
  Rng rng;
  PeerDirectory* directory = nullptr;  // may be absent
  std::function<ExecutorFactory(const RunConfig&)>
      factory_of{};             // when set: makes `factory` once the manifest is there
  FrameCoder* coder = nullptr;  // may be absent
};

enum class PeerPhase : std::uint8_t { kConnecting, kJoining, kFetching, kServing, kLeaving, kOver };
std::string_view name_of(PeerPhase phase);

struct PeerReport {  // for the line every few seconds
  PeerPhase phase = PeerPhase::kConnecting;
  std::string reason;
  std::optional<StageId> stage;
  StagePeerStatus status;
  std::uint64_t sent_bytes = 0, received_bytes = 0;
  std::uint64_t fp32_bytes = 0, payload_bytes = 0;  // of activations and gradients encoded; of their frames
  std::uint64_t fetched_bytes = 0, fetch_total = 0;
  std::uint64_t run_targets = 0, run_step = 0;
  double run_loss = 0;
  std::uint64_t sessions = 1;  // lives so far
};

class Peer final : private Transport::Listener,
                   private MembershipPort,
                   private StagePeer::Owner,
                   private DonorHost,
                   private FetcherHost {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
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
  PeerReport report() const;
  const StagePeer* stage_peer() const { return stage_peer_.get(); }  // null before the state is here
  StageExecutor* executor() const { return executor_.get(); }        // simulation's checkers only
  const Session& session() const { return session_; }
  // The stage and version of the anchor that this process holds, serving or between two sessions.
  std::optional<std::pair<StageId, Version>> held_state() const;

 private:
  struct Held {
    StageId stage;
    Version version;
    Digest digest;
    Bytes image;
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
  void on_members(const MemberList& list) override;
  void on_fenced(const std::string& reason) override;
  void on_goodbye() override;
  void on_end(const std::string& reason) override;
  void on_status(const BeatAck& status) override;
  // StagePeer::Owner
  void on_session_lost(const std::string& why) override;
  void on_version(Version version) override;
  void on_inner_step() override;
  void on_behind(Version version, const Digest& digest) override;
  // DonorHost
  void make_image(std::function<void(Result<StateImage>)> done) override;
  Version version() const override;
  void send(const PeerId& to, Message message, std::vector<Bytes> frames) override;
  // FetcherHost
  void send(const PeerId& to, Message message) override;
  void on_progress(std::uint64_t bytes, std::uint64_t total) override;
  void on_fetched(Bytes image) override;
  void on_waiting(const std::string& why) override;

  void begin_session();
  void end_session(const std::string& why);  // keeps the anchor; a new session follows
  void start_membership();
  void on_manifest(const Manifest& manifest);
  Status close_to_strangers();  // a run with keys: its keys and the launching process alone may dial us
  void build_stage(StageId stage);
  void get_state();
  void load(Bytes image);
  // Turns the fetch of a session that is behind to the stage's newest version, as the list or a commit says.
  void fetch_missed();
  void aim_missed(Version version, const Digest& digest);
  void check_missed(TimePoint now);
  void serve(Version version);
  void announce();  // where we are, once stage and session are known
  void look_up_authority();
  void check_absence(TimePoint now);
  void check_reachable(TimePoint now);
  void finish(const std::string& reason, std::optional<Error> error);
  void check_leaving();
  void ask_to_go(TimePoint now);
  std::string leaving_reason() const;
  void exchange_peers(TimePoint now);
  void on_chunk(const Remote& remote, const Chunk& chunk, TransferId transfer, std::uint64_t frame_bytes);
  void tick();
  bool is_authority(const PeerId& peer) const { return peer == as_peer(options_.run); }
  const std::shared_ptr<const OuterRule>& rule(RuleId id) const {
    return id == RuleId::kAllreduce ? allreduce_ : diloco_;
  }
  void write_bytes();

  PeerOptions options_;
  PeerEnvironment env_;
  Owner& owner_;
  const std::shared_ptr<const OuterRule> allreduce_, diloco_;  // roles only; shared with device jobs
  Session session_;
  std::unique_ptr<Transport> transport_;
  std::shared_ptr<const RunConfig> config_;  // null before the manifest is here
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<StagePeer> stage_peer_;
  std::unique_ptr<StateDonor> donor_;
  std::unique_ptr<StateFetcher> fetcher_;
  std::shared_ptr<StageExecutor> executor_;
  std::optional<StageSpec> spec_;
  std::optional<JoinAnswer> answer_;
  struct Missed {  // of a serving session: the newest version, committed without it
    Version version;
    Digest digest;
    std::uint32_t overtaken = 0;  // times that a newer one was committed while this one was on its way
    bool flows = false;           // chunks of this one came
    TimePoint until{};            // moves with every chunk; never, once the image is here
  };
  std::optional<Missed> missed_;
  std::vector<Held> held_;  // of the session before: the anchor, and a candidate that may have been committed
  RuleId state_rule_ = RuleId::kAllreduce;  // whose roles belong to the anchor now
  struct Inbound {
    PeerId peer;
    TransferId transfer;
    auto operator<=>(const Inbound&) const = default;
  };
  std::map<Inbound, Chunk> inbound_chunks_;
  PeerPhase phase_ = PeerPhase::kConnecting;
  std::string reason_;
  bool loading_ = false, leaving_ = false, asked_to_go_ = false, over_ = false, ever_up_ = false, ever_joined_ = false,
       restarting_ = false, looking_up_ = false, told_last_ = false;
  TimePoint started_{}, leave_by_{}, next_dial_{}, next_look_up_{}, next_step_beat_{}, next_exchange_{};
  int refusals_ = 0;            // by the authority's addresses, in a row
  std::uint64_t sequence_ = 0;  // of our newest record
  std::uint64_t sessions_ = 0, fetched_ = 0, fetch_total_ = 0;
  std::uint64_t bytes_before_[4] = {0, 0, 0, 0};  // of earlier sessions: sent, received, fp32, payload
  std::array<std::uint64_t, 4> bytes_written_{};  // of these, what stands in events already
  TimePoint next_bytes_{}, absence_told_{};
  std::optional<TimePoint> away_since_;       // of the authority
  std::optional<TimePoint> undialled_since_;  // the authority cannot dial us
  TimePoint undialled_told_{};
  AnnouncePace announce_pace_;  // of this session
  BeatAck run_status_;
  TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // of this object
  std::shared_ptr<bool> session_alive_;                         // of this session
};

}  // namespace shoal
