#pragma once
// `--tensorboard DIR`: a run's curves as TensorBoard reads them. A file of records, each a length, an Event of its
// protobuf schema (time, step, values by name), and masked CRC-32C sums of both.
// What is written, by the newest step: loss, tokens, tokens_per_second with each step; validation_loss with each
// estimate and at the end; version/stage_N with each round; faults, when a session was over without having left. What
// comes before the first step that the process made, of a resumed one too, is written with it, as it then is.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "events/event_log.h"

namespace shoal {

using Scalars = std::vector<std::pair<std::string, double>>;

// One record. Pure; thread-safe.
std::string scalar_record(WallTime time, std::uint64_t step, const Scalars& values);
// The one that a file begins with.
std::string scalar_file_begin(WallTime time);

// An event log that passes all on to `inner` and writes curves to a file of its own below `folder`, which is made where
// it is not there; whatever else is there stays, and TensorBoard shows it as the same run. A write that fails is
// reported once. Borrows the clock. ERRORS: kIo, kMissing.
Result<std::unique_ptr<EventLog>> open_scalar_log(const std::string& folder, const Clock& clock,
                                                  std::unique_ptr<EventLog> inner);

}  // namespace shoal
