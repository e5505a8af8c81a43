#include "transport/zmq/connection_bounds.h"

#include <algorithm>

#include "transport/limits.h"

namespace shoal {

ConnectionBounds connection_bounds(std::uint64_t descriptors_max) {
  const auto share = [](std::uint64_t of, std::uint64_t parts, std::size_t most) {
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(of / parts, 1, most));
  };
  ConnectionBounds bounds{};
  bounds.descriptors = descriptors_max - std::min<std::uint64_t>(limits::kDescriptorsReserved, descriptors_max / 4);
  bounds.accepted = share(bounds.descriptors, 3, limits::kAcceptedMax);
  bounds.ungreeted = share(bounds.accepted, 4, limits::kUngreetedMax);
  bounds.ungreeted_per_address = share(bounds.ungreeted, 2, limits::kUngreetedPerAddressMax);
  bounds.strangers = share(bounds.accepted, 2, limits::kStrangersMax);
  bounds.strangers_per_address = share(bounds.strangers, 2, limits::kStrangersPerAddressMax);
  bounds.called = share(bounds.accepted, 2, limits::kCalledPipesMax);
  return bounds;
}

}  // namespace shoal
