#pragma once
// The wire of a launching process: a new run's at any free port, a resumed one's where its peers look for it.
#include <memory>

#include "cli/launch_arguments.h"
#include "common/crypto/sign.h"
#include "common/event_loop.h"
#include "transport/zmq/zmq_wire.h"

namespace shoal {

// For a resumed run: waits while somebody else holds its port. Ctrl-C ends the wait and the process, before StopSignals
// listen. ERRORS: make_zmq_wire's; kBusy also when another process goes on with the run.
Result<std::unique_ptr<ZmqWire>> open_launch_wire(EventLoop& loop, const LaunchArguments& arguments,
                                                  const RunConfig& config, const KeyPair& key);

}  // namespace shoal
