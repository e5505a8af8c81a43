#pragma once
// What a layout is made of: the stages of a run, the peers that are there for it, and the lines between them. Values.
// Thread: any.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace shoal {

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

struct ShapeStage {
  double work = 1;            // of a microbatch's forward and backward, > 0; in any unit, the same for all stages
  double forward_bytes = 0;   // of a microbatch to the next stage; the last one sends none
  double backward_bytes = 0;  // of its gradient, which comes back
  double round_bytes = 0;     // what a member brings to a round
};

struct ShapePeer {
  std::string name{};
  std::size_t region = 0;
  double speed = 1;                           // work a second, > 0
  double up = kUnbounded, down = kUnbounded;  // bytes a second, of its own line
  std::vector<bool> fits{};                   // by stage, whether its memory has room; empty: wherever
};

// Between each two peers of two regions, or of one.
struct ShapeLine {
  double delay = 0;          // seconds, one way
  double rate = kUnbounded;  // bytes a second, each way
};

struct SwarmShape {
  std::vector<ShapeStage> stages{};
  std::vector<ShapePeer> peers{};
  std::size_t regions = 1;
  std::vector<ShapeLine> lines{ShapeLine()};  // regions x regions, symmetric
  std::optional<std::size_t> trainer{};       // its region; none: at stage 0
  // Microbatches between two rounds of a stage, 0: there are none. With `every_step` those of all its replicas, and the
  // step behind the next waits for the round (allreduce); else those of each (diloco).
  double round_microbatches = 0;
  bool every_step = false;

  const ShapeLine& line(std::size_t a, std::size_t b) const { return lines[a * regions + b]; }
};

// By peer: the stage that it serves.
using Layout = std::vector<std::uint16_t>;

// By peer, the first one that is as it is: two of a kind may change places, and nothing changes.
std::vector<std::size_t> kinds_of(const SwarmShape& shape);

}  // namespace shoal
