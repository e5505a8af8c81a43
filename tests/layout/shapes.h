#pragma once
// Small swarms that tests lay out.
#include <cmath>

#include "common/rng.h"
#include "layout/swarm_shape.h"

namespace shoal {

// So many stages of equal work, peers of these speeds in one region without delay.
inline SwarmShape shape_of(std::size_t stages, const std::vector<double>& speeds) {
  SwarmShape shape;
  shape.stages.assign(stages, ShapeStage());
  for (const double speed : speeds)
    shape.peers.push_back({.name = "p" + std::to_string(shape.peers.size()), .speed = speed});
  return shape;
}

// Peers of unlike speed over regions of unlike distance.
inline SwarmShape drawn_shape(std::size_t stages, std::size_t peers, std::size_t regions, std::uint64_t seed) {
  Rng rng(seed);
  SwarmShape shape;
  shape.stages.assign(stages, {.forward_bytes = 1e6, .backward_bytes = 1e6, .round_bytes = 1e7});
  shape.round_microbatches = 100;
  shape.regions = regions;
  shape.lines.assign(regions * regions, {.delay = 0.005, .rate = 250e6});
  for (std::size_t a = 0; a < regions; ++a)
    for (std::size_t b = 0; b < a; ++b)
      shape.lines[a * regions + b] =
          shape.lines[b * regions + a] = {0.01 + 0.2 * rng.uniform(), 5e6 + 100e6 * rng.uniform()};
  for (std::size_t peer = 0; peer < peers; ++peer)
    shape.peers.push_back(
        {.name = "p" + std::to_string(peer), .region = peer % regions, .speed = 10 * std::exp(0.5 * rng.normal())});
  return shape;
}

}  // namespace shoal
