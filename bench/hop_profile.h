#pragma once
// Where the time of a measured swarm went: cores by thread, and a microbatch's way by the event files.
// Pure apart from reading the files; thread-safe.
#include <string>
#include <vector>

#include "bench/hop_run.h"
#include "bench/hop_setting.h"

namespace shoal {

// Means over the microbatches whose events lie within the measure, milliseconds.
struct StageWay {
  double forward = 0;   // admitted until forward is computed: frames on the way, queue, compute
  double above = 0;     // forward computed until gradient added: the stages above, queue, compute
  double hop_down = 0;  // forward computed here until admitted above (its header has arrived); 0 at the last stage
  double hop_up = 0;    // gradient added above until added here: gradient on the way, queue, compute; 0 at the last
};
Result<std::vector<StageWay>> stage_ways(const HopFigures& figures, std::uint16_t stages);

// Tables for people.
std::string profile_text(const HopFigures& figures, const HopSetting& setting);

}  // namespace shoal
