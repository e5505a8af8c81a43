#pragma once
// A whole swarm in virtual time: one launching process and stages x replicas peers, each the product's own code over a
// simulated host, network, device and disk. Deterministic from its seed. Checkers: sim/checkers.h.
//
// Thread: one.   Bounds: those of the product.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/launch/launch.h"
#include "runtime/launch/standby.h"
#include "runtime/peer/peer.h"
#include "sim/sim_device.h"
#include "sim/sim_directory.h"
#include "sim/sim_loop.h"
#include "sim/sim_network.h"
#include "sim/sim_storage.h"

namespace shoal {

// Bounds of the launching process's logs.
struct SwarmLogBytes {
  std::size_t max = kLogBytesMax, compact = kLogCompactBytes;
};

// Which share of the peers can be dialled, and the relay for the rest.
struct SwarmReach {
  // So many of the peers of each stage, rounded, cannot be dialled; one can unless it is 1. Peers name their stage
  // then.
  double unreachable = 0;
  // Bytes a second of the run's relay (begin_relay()); 0 = it has none.
  double relay_bytes_per_second = 0;
  // The launching process is at a home where nobody dials it: it is called at the relay, which the ticket names.
  // REQUIRES: a relay.
  bool home_launch = false;
};

struct SwarmOptions {
  std::uint64_t seed = 1;
  std::uint16_t stages = 3;
  std::uint16_t replicas = 2;
  RunConfig config;  // integer executor; see small_config()
  SimPace pace;
  double unlike = 1;  // each peer's machine takes so much longer than `pace`, drawn between 1 and this
  SimHostShape shape;
  SwarmReach reach;
  Duration round_budget{0};            // 0 = as [sync] says
  std::size_t credits = 16;            // of every peer
  PeerDirectory* directory = nullptr;  // of every peer; borrowed
  bool on_processor = false;           // of every peer: as in PeerOptions
  bool dht = false;                    // instead, each process has its own directory over dht()
  std::optional<DeltaCodecs> deltas;   // of every peer: as in StageSession
  ExecutorFactory factory;             // of every peer; empty: the integer executor
  // What a peer speaks through, made of its network's wire: for a member that lies. Empty: that wire.
  std::function<std::unique_ptr<Wire>(const PeerId&, std::unique_ptr<Wire>)> wires;
  const TextCode* code = nullptr;      // borrowed: for [report] sample_every
  const FirstStates* first = nullptr;  // borrowed: what config.model.weights are the digests of
  bool finish_at_once = false;         // as with a Ctrl-C before the launching process is ready
  SwarmLogBytes log_bytes;
  bool keep_events = true;   // events() has them
  std::string base_folder;   // each peer keeps the base of adapters in a folder of its own in it; empty: nowhere
  bool standby = false;      // beside every launching process one waits for its run
  bool checkpoints = false;  // each peer has a disk of its own, which outlives its processes
  bool save = false;         // fetch the states at the end; answer_save() says what becomes of them
  std::map<std::string, std::string>* evidence = nullptr;  // borrowed: the event files by process, as of --events
  EventLevel evidence_level = EventLevel::kFull;
};

inline constexpr const char* kSimLaunchAddress = "launch:1";
// Where the run's relay listens: as part of the launching process, or on a host of its own where that is at home.
Address relay_of(const SwarmOptions& options);
std::vector<RelayPlace> relays_of(const SwarmOptions& options);  // that the run names
Address launch_contact(const SwarmOptions& options);             // where the ticket says that it is
// Where the options have one that does not live: it begins.
void begin_relay(SimNetwork& network, const SwarmOptions& options);
inline constexpr double kSimRelayBytesPerSecond = 10e6 / 8;  // what `shoal launch` gives away unasked

// A run of the integer executor, small enough for hundreds of seeds. Swarm(SwarmOptions{.config = small_config(...)})
// is what other projects name setup_swarm(n, ...).
RunConfig small_config(RuleId rule, std::uint16_t stages, std::uint64_t microbatches);

// What a process wrote with --events; survives it.
struct SimEvent : EventRecord {
  TimePoint at;
  Session writer;
  std::optional<WeightStamp> stamp{};  // counted: of the weights that the gradient was made at, by the peer's ledger
};

class Swarm {
 public:
  explicit Swarm(SwarmOptions options);
  // The peer `index` of a swarm with this seed, for [admission].
  static KeyPair peer_key(std::uint64_t seed, std::size_t index);
  ~Swarm();

  // ---- faults ----
  std::size_t add_peer();                                   // index
  void kill_peer(std::size_t index, bool machine = false);  // with `machine` the others see silence
  void freeze_peer(std::size_t index);
  void resume_peer(std::size_t index);
  void restart_peer(std::size_t index);  // a new process with the same key
  // Its machine loses power: with it goes what was not synced. With `machine` the peers see silence.
  void kill_launch(bool machine = false);
  void kill_launch_process();  // kill -9: the next one reads what was not synced
  void freeze_launch(bool frozen);
  void resume_launch();
  void finish_launch(const std::string& reason) { launch_->finish(reason); }
  Status try_resume_launch();  // the error of Launch::open, with which the process ends
  void add_standby();          // on the launching process's machine, with which it dies
  void stop_launch() { launch_->stop("stopped by Ctrl-C"); }
  void cut(std::size_t a, std::size_t b);  // their connections break

  // ---- running ----
  void run_for(Duration duration) { loop_.run_for(duration); }
  // Until END was sent and every living peer went; false: not within `limit`.
  bool run_to_end(Duration limit);
  SimLoop& loop() { return loop_; }
  const SimLoop& loop() const { return loop_; }
  SimNetwork& network() { return network_; }
  const SimNetwork& network() const { return network_; }
  SimDht& dht() { return dht_; }
  std::uint64_t trace_hash() const { return loop_.trace_hash() ^ network_.record().hash(); }

  // ---- look ----
  // A peer and what its host gives it.
  struct HostedPeer {
    KeyPair key;
    std::string address;
    SimPace pace{};
    Address told{};  // where it says that it can be dialled: at home, an address of that home
    std::optional<StageId> wish{};
    bool alive = false, frozen = false, finished = false;
    std::optional<Error> error{};
    std::unique_ptr<Wire> wire{};
    std::unique_ptr<SimDevice> device{};
    std::unique_ptr<SimDevice> aside{};
    std::unique_ptr<EventLog> events{};
    std::unique_ptr<SimDisk> disk{};
    std::unique_ptr<SimStorage> storage{};
    std::unique_ptr<PeerDirectory> directory{};
    std::unique_ptr<Peer::Owner> owner{};
    std::unique_ptr<Peer> peer{};
    std::vector<std::string> notices{};
    std::vector<PeerPause> pauses{};  // that freed the device
  };
  const std::vector<std::unique_ptr<HostedPeer>>& peers() const { return peers_; }
  // A process that waits beside the launching process for its run.
  struct HostedStandby {
    std::unique_ptr<SimStorage> storage{};
    std::unique_ptr<Standby::Owner> owner{};
    std::unique_ptr<Standby> standby{};
    std::string waits{};  // what it said when it began to wait
    std::vector<std::string> warnings{};
    bool had_turn = false;
    std::optional<Error> error{};  // with which it ended: that of Launch::open, kStale (the run had a living process)
  };
  const std::vector<std::unique_ptr<HostedStandby>>& standbys() const { return standbys_; }
  std::uint64_t takeovers() const { return takeovers_; }  // by standbys, also of machines that died since
  const Launch* launch() const { return launch_.get(); }
  SimPace pace_of(std::size_t index) const;  // of that peer's machine while nothing slows it
  bool finished() const { return summary_.has_value(); }
  const RunSummary& summary() const { return *summary_; }
  const std::optional<Error>& launch_error() const { return launch_error_; }
  // With options.save: what the owner answers, and what it was handed last.
  void answer_save(std::function<Status()> answer) { save_answer_ = std::move(answer); }
  const std::map<std::uint16_t, Bytes>& states() const { return states_; }
  SimDisk& disk() { return disk_; }                                    // of the launching process
  const std::vector<SimEvent>& events() const { return all_events_; }  // of all processes, in order of writing
  const KeyPair& run_key() const { return run_key_; }                  // for a test's false launching process
  const SwarmOptions& options() const { return options_; }
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  class LaunchOwner;
  class PeerOwner;
  class StandbyOwner;
  class Recorder;
  // `process`: whose events these are; null: the launching process's.
  std::unique_ptr<EventLog> make_recorder(const std::string& role, const PeerId& peer, const HostedPeer* process);
  void start_peer(HostedPeer& process);
  // `lock`: of the run's folder; none: this process takes it.
  Status start_launch(bool resume, std::optional<RunLock> lock = {});
  void take_turn(HostedStandby& process, RunLock lock);
  void end_launch_process(bool silent);  // `silent`: peers hear nothing, not even that its connections ended
  std::unique_ptr<PeerDirectory> make_directory(EventLoop& loop);

  SwarmOptions options_;
  SimLoop loop_;
  Rng rng_;
  SimNetwork network_;
  SimDht dht_;
  SimDisk disk_;
  KeyPair run_key_;
  std::unique_ptr<Samples> samples_;
  std::unique_ptr<SimStorage> storage_;
  std::optional<RunLock> lock_;
  std::unique_ptr<Wire> launch_wire_;
  std::unique_ptr<PeerDirectory> launch_directory_;
  std::unique_ptr<SimDevice> launch_aside_;
  std::unique_ptr<EventLog> launch_events_;
  std::unique_ptr<LaunchOwner> launch_owner_;
  std::unique_ptr<Launch> launch_;
  std::vector<std::unique_ptr<HostedPeer>> peers_;
  std::vector<std::unique_ptr<HostedStandby>> standbys_;
  std::uint64_t takeovers_ = 0;
  std::vector<SimEvent> all_events_;
  std::optional<RunSummary> summary_;
  std::optional<Error> launch_error_;
  std::function<Status()> save_answer_ = [] { return Status::success(); };
  std::map<std::uint16_t, Bytes> states_;
  std::vector<std::string> notices_;
  std::uint64_t starts_ = 0;
};

// What a peer is behind while its reach is neither lost nor won.
SimNat nat_of(const SwarmOptions& options, std::size_t index);
// Whether the run's relay joins (caller, callee): by the newest list that it was told of. `swarm` is borrowed.
std::function<bool(const PeerId&, const PeerId&)> joined_by_list(const Swarm& swarm);

}  // namespace shoal
