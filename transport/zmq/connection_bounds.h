#pragma once
// How many connections a wire keeps, by the descriptors that its process may have open. Strangers never get all of
// them: what is reserved serves files, logs and children, and a part of the rest is left to members and to dials.
// Thread: any.
#include <cstddef>
#include <cstdint>

namespace shoal {

struct ConnectionBounds {
  std::uint64_t descriptors;                     // of all connections together
  std::size_t accepted;                          // of one listener; a connection has a lane at each
  std::size_t ungreeted, ungreeted_per_address;  // of one listener
  std::size_t strangers, strangers_per_address;  // whose peers are not favoured (transport/wire.h)
  std::size_t called;                            // pipes of calls at relays
};

// limits::k...Max where the descriptors allow it, else shares of what they do; never 0.
ConnectionBounds connection_bounds(std::uint64_t descriptors_max);

}  // namespace shoal
