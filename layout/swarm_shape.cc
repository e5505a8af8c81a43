#include "layout/swarm_shape.h"

namespace shoal {

std::vector<std::size_t> kinds_of(const SwarmShape& shape) {
  const auto alike = [](const ShapePeer& a, const ShapePeer& b) {
    return a.region == b.region && a.speed == b.speed && a.up == b.up && a.down == b.down && a.fits == b.fits;
  };
  std::vector<std::size_t> kinds;
  for (std::size_t peer = 0; peer < shape.peers.size(); ++peer) {
    std::size_t first = 0;
    while (!alike(shape.peers[first], shape.peers[peer])) ++first;
    kinds.push_back(first);
  }
  return kinds;
}

}  // namespace shoal
