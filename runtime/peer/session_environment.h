#pragma once
// What a session of a peer is given by the peer that it belongs to, which has it from session to session, and which it
// asks to end it.   Thread: loop only.
#include "runtime/peer/absence.h"
#include "runtime/peer/announcing.h"
#include "runtime/peer/authority_link.h"
#include "runtime/peer/checkpointing.h"
#include "runtime/peer/device_watch.h"
#include "runtime/peer/kept_state.h"
#include "runtime/peer/known_run.h"
#include "runtime/peer/peer_options.h"
#include "runtime/peer/peer_state.h"
#include "runtime/peer/reachability.h"
#include "runtime/peer/session_events.h"
#include "runtime/peer/traffic.h"

namespace shoal {

class Peer;

struct PeerSessionEnvironment {
  Peer& owner;
  PeerEnvironment& process;
  const PeerOptions& options;
  SessionEvents& events;
  const OuterRules& rules;  // roles only
  PeerState& state;
  AuthorityLink& link;
  Reachability& reachability;
  Absence& absence;
  KeptState& kept;  // of the session before
  Checkpointing& checkpointing;
  DeviceWatch& device;
  Announcing& announcing;
  KnownRun& run;
  const TrafficBook& traffic;
};

}  // namespace shoal
