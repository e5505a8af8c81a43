#pragma once
// How a relay's rate is shared: one token bucket over all that it carries, and behind it deficit round robin over the
// flows that have bytes (Shreedhar and Varghese, 1995). Control goes before bulk, up to kControlRun at a time: a flow
// that calls its tensors control starves nobody. Pure: time is given.
//
// Thread: one.   Bounds: the flows that want.
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "common/time.h"
#include "transport/wire.h"

namespace shoal {

class ByteShares {
 public:
  using Flow = std::uint64_t;
  static constexpr std::size_t kQuantum = 32u << 10;        // of a flow's turn; bulk is carried in no less
  static constexpr std::size_t kControlRun = 4 * kQuantum;  // while bulk waits, which then has a quarter of that
  static constexpr std::size_t kControlLeast = 1u << 10;    // control is not kept waiting for more
  static constexpr double kBurstMin = 4 * kQuantum;         // or kBurst of the rate
  static constexpr Duration kBurst = 20ms;

  // 0: no cap.
  explicit ByteShares(double bytes_per_second);
  void want(Flow flow, Lane lane);  // it has bytes. No-op while it wants
  void rest(Flow flow);             // it has none. No-op while it rests
  struct Turn {
    Flow flow;
    std::size_t bytes_max;  // above 0
  };
  // The next to carry; none: nobody wants, or the bucket is empty (turn_at()). Time never goes back.
  std::optional<Turn> next(TimePoint now);
  // What the flow whose turn it was did carry. REQUIRES: at most bytes_max; it wants.
  void carried(Flow flow, std::size_t bytes);
  // When the bucket has enough for whoever wants. Never: nobody does.
  std::optional<TimePoint> turn_at() const;

 private:
  struct Share {
    Lane lane = Lane::kControl;
    std::size_t deficit = 0;  // left of its turn
  };
  std::deque<Flow>& turns_of(Lane lane) { return turns_[static_cast<std::size_t>(lane)]; }
  const std::deque<Flow>& turns_of(Lane lane) const { return turns_[static_cast<std::size_t>(lane)]; }
  Flow first() const;     // REQUIRES: one wants
  double needed() const;  // in the bucket, so that it may carry
  bool wants(Lane lane) const { return !turns_of(lane).empty(); }

  double rate_, burst_, tokens_;
  TimePoint filled_at_{};
  std::size_t control_run_ = 0;
  std::array<std::deque<Flow>, 2> turns_;
  std::unordered_map<Flow, Share> shares_;  // of those that want
};

}  // namespace shoal
