#pragma once
// What tests ask of a simulated swarm in more than one file.
#include <algorithm>
#include <string>
#include <vector>

#include "sim/swarm.h"

namespace shoal {

// How many of the launching process's notices hold `part`.
inline std::size_t told(const Swarm& swarm, const std::string& part) {
  return static_cast<std::size_t>(std::count_if(swarm.notices().begin(), swarm.notices().end(), [&](const auto& line) {
    return line.find(part) != std::string::npos;
  }));
}

inline std::size_t sessions_over(const Swarm& swarm) {
  return static_cast<std::size_t>(std::count_if(swarm.events().begin(), swarm.events().end(),
                                                [](const SimEvent& e) { return e.event == EventKind::kSessionOver; }));
}

inline bool run_until_finished(Swarm& swarm, Duration limit) {
  return swarm.loop().run_until_true([&] { return swarm.finished(); }, swarm.loop().now() + limit);
}

// Of what a checker found, for a failure's text.
inline std::string first_broken(const std::vector<std::string>& broken) { return broken.empty() ? "" : broken.front(); }

}  // namespace shoal
