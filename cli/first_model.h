#pragma once
// The model that a launched run begins from, [model] from: opened, and measured stage by stage.
// Owns the folder, and with adapters it is that of their base. Immutable; thread-safe.
#include <memory>

#include "events/headway.h"
#include "runtime/config/config.h"
#include "stages/pretrained/pretrained_folder.h"
#include "state/first_weights.h"

namespace shoal {

class FirstModel {
 public:
  // Null without [model] from, which a resumed run may do without. All weights are read once: the manifest of a new run
  // takes their digests, a resumed one is held to them. ERRORS: PretrainedFolder's; kInput (a resumed run began with
  // other weights, a new one has digests and no folder).
  static Result<std::unique_ptr<FirstModel>> open(RunConfig& config, bool resume, HeadwayMeter& meter);

  const FirstStates& states() const { return states_; }

 private:
  explicit FirstModel(FirstStates states) : states_(std::move(states)) {}
  FirstStates states_;
};

}  // namespace shoal
