#pragma once
// What the launching process (runtime/launch/launch.h) is given, and what it tells the program that it lives in.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/crypto/sign.h"
#include "common/event_loop.h"
#include "common/record_log.h"
#include "common/rng.h"
#include "common/storage.h"
#include "dht/peer_directory.h"
#include "events/event_log.h"
#include "events/headway.h"
#include "events/train_line.h"
#include "runtime/config/config.h"
#include "runtime/data/samples.h"
#include "runtime/generate/text_code.h"
#include "runtime/launch/log_space.h"
#include "runtime/launch/run_summary.h"
#include "state/first_weights.h"
#include "transport/messages_membership.h"
#include "transport/wire.h"

namespace shoal {

// Locked by the process that feeds the run.
inline std::string trainer_log_path(const std::string& folder) { return folder + "/trainer.log"; }
inline std::string authority_log_path(const std::string& folder) { return folder + "/authority.log"; }

struct LaunchOptions {
  RunConfig config;
  KeyPair key;                         // the run's
  std::string folder;                  // with the logs
  bool resume = false;                 // false: the folder must hold no logs
  Whereabouts whereabouts;             // told to peers and the directory
  std::vector<RelayPlace> relays{};    // of the run, for its member list
  std::map<PeerId, StageId> layout{};  // where a plan has peers (authority/authority_port.h)
  bool save = false;                   // fetch every stage's state at the end
  // With resume and save, for a run that ended in an earlier life: why its model is not there. Empty: it is.
  std::string not_saved_before = "no model of it was saved";
  Duration round_budget{0};  // for the reduction of a round; 0 = as [sync] round_budget_s says
  // A new run: called once its folder is found empty and its logs are locked, before anything is written to them, to
  // keep what a resumed process needs besides. An error of it is open()'s.
  std::function<Status()> keep{};
  // stop(): how long a stage may be without a peer that holds its state before the run ends without it.
  Duration stop_patience = 30s;
  std::size_t log_bytes_max = kLogBytesMax;  // of each log: warned at half of it
  // Each log is compacted at so many, or at twice what its last compaction left.
  std::size_t log_compact_bytes = kLogCompactBytes;
};

struct LaunchEnvironment {
  EventLoop& loop;
  Wire& wire;
  Storage& storage;
  EventLog& events;
  const Samples& samples;
  Rng rng;
  PeerDirectory* directory = nullptr;
  // As in FetcherHost. REQUIRED with LaunchOptions::save.
  std::function<void(std::function<void()> job, std::function<void()> done)> run_aside{};
  const TextCode* code = nullptr;  // of the run's ids, for [report] sample_every; null: no texts are shown
  // What the manifest's digests of first weights are of, with run_aside. Null though there are some: peers have newer
  // states.
  const FirstStates* first = nullptr;
};

class LaunchOwner {
 public:
  virtual ~LaunchOwner() = default;
  virtual void on_train_line(const TrainLine& line) = 0;
  virtual void on_members(const MemberList&) {}  // each new list, before anybody else is told it
  virtual void on_parked_for(Duration) {}        // often, while the run stands still for want of peers
  virtual void on_headway(const Headway&) {}     // of validation and of states that are fetched: often
  virtual void on_notice(const std::string& line) = 0;
  // A notice that asks somebody to act: cause, object, remedy.
  virtual void on_warning(const std::string& line) { on_notice(line); }
  // With `save`: the state images of all stages, before the run is logged as ended and the peers hear END. `saved` is
  // called on the loop, once. On an error the run does not end: the peers keep their states, and a resumed process
  // fetches and saves again.
  virtual void on_states(std::map<std::uint16_t, Bytes> states, std::function<void(Status)> saved) = 0;
  // END was sent. `error`: the run could not go on (log failure, states not saved), or a stage had nothing to save.
  virtual void on_finished(const RunSummary& summary, std::optional<Error> error) = 0;
};

}  // namespace shoal
