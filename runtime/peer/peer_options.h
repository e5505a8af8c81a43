#pragma once
// What a peer is given: its identity and bounds, and the world around it.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/crypto/sign.h"
#include "common/event_loop.h"
#include "common/rng.h"
#include "common/storage.h"
#include "common/work_queue.h"
#include "dht/peer_directory.h"
#include "events/event_log.h"
#include "runtime/config/config.h"
#include "runtime/plan/memory_fit.h"
#include "runtime/stage_peer/stage_peer.h"
#include "stages/executor.h"
#include "transport/wire.h"

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
  std::uint64_t program_bytes = kProgramBytes;    // this process's on its device, without any stage; on a GPU,
                                                  // what its libraries come to take
  std::string base_folder{};                      // the base of adapters is kept here; empty: nowhere
  std::vector<std::string> checkpoint_folders{};  // each gets every checkpoint; none: none is written
};

struct PeerEnvironment {
  EventLoop& loop;
  Wire& wire;
  WorkQueue& device;
  WorkQueue& aside;  // as in StageSession
  EventLog& events;
  ExecutorFactory factory;
  Rng rng;
  PeerDirectory* directory = nullptr;  // may be absent
  std::function<ExecutorFactory(const RunConfig&)>
      factory_of{};                     // when set: makes `factory` for a stage, of what this peer chose
  std::optional<DeltaCodecs> deltas{};  // as in StageSession
  Storage* storage = nullptr;           // for checkpoints; may be absent
  // Bytes that this process may come to on its device, as things stand now: without --memory a stage must fit in them.
  std::function<std::optional<std::uint64_t>()> memory_free{};  // may be absent
  std::function<void()> free_caches{};  // gives back what the device keeps for later; in a job of it; may be absent
};

}  // namespace shoal
