#include "sim/sim_host_shape.h"

#include <vector>

namespace shoal {

Duration delay_of(const SimHostShape& shape, Rng& rng, ConnectionId id, int side, Lane lane) {
  Duration more{};
  if (shape.jitter > 0ms) more += Duration(rng.below(static_cast<std::uint64_t>(shape.jitter.count())));
  if (shape.lag > 0ms)
    more += Duration(mix64(id, static_cast<std::uint64_t>(side) * 2 + static_cast<std::uint64_t>(lane)) %
                     static_cast<std::uint64_t>(shape.lag.count()));
  if (shape.late_share > 0 && rng.chance(shape.late_share)) more += shape.late;
  return more;
}

Bytes disturbed(const SimHostShape& shape, Rng& rng, Bytes message) {
  if (shape.flip_share <= 0 || message.size() == 0 || !rng.chance(shape.flip_share)) return message;
  const ByteView bytes = message;
  std::vector<std::uint8_t> other(bytes.data(), bytes.data() + bytes.size());
  other[rng.below(other.size())] ^= static_cast<std::uint8_t>(1u << rng.below(8));
  return Bytes::from_vector(std::move(other));
}

}  // namespace shoal
