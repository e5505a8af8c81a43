#pragma once
// How many bulk bytes a link may have under way: what fills its line and little more. So no queue of ours stands in
// front of control, whose connection shares the line, and what is not sent yet can still be withdrawn. Pure: time is
// given. Byte credits (inbox.h) bound what the receiver holds; this is nearly always less.
//
// The *time* of a chunk is that from its send to the credit that names it. Its least is the way alone, and what the
// chunks of a round take beyond that stood in a queue: behind each other, or behind what others send there. The queue
// is held at a target that all links of a line share, least / 2 + 10 ms, as in delay-based congestion control (Jin,
// Wei, Low, "FAST TCP", 2004):
//   start     twice what came within the least time, until a round brings no more and has a queue
//   then      half of the way to bound x (least + target) / (least + queue), and 4 KiB, so that links that share a line
//             come to equal parts; half as much more where half of the target is free, since another link may have
//             fallen silent; at least a quarter of what it was when the period began. Only behind rounds that used the
//             whole bound: a sender with little to say learns nothing about the line
//   least     of this period of 10 s and the one before. A period whose chunks were all sent behind others begins with
//             a *drain*: a quarter of what the way alone holds is under way, until a chunk came through. Periods follow
//             the clock, so that links that share a line drain together
//
// Thread: loop only.   Bounds: one record a chunk under way, at most kByteCreditsMax / kChunkBytesMin.
#include <cstdint>
#include <deque>
#include <optional>

#include "common/time.h"

namespace shoal {

class LineFill {
 public:
  static constexpr Duration kSlack = 10ms;  // of the queue's target: for loops that are late
  static constexpr Duration kPeriod = 10s;  // of the least time
  LineFill();
  // Payload bytes that may be sent now. Less than a chunk is followed by a delivery.
  std::uint64_t room() const;
  // The next chunk has a sixteenth of the bound, so that credits tell of it often, and the line does not wait for them.
  std::uint64_t chunk_bytes() const;
  void on_sent(TimePoint now, std::uint64_t bytes);  // a chunk
  void on_held() { held_ = true; }                   // there was more to send than room()
  void on_delivered(TimePoint now, std::uint64_t bytes);

  std::uint64_t bound() const;
  std::uint64_t under_way() const { return sent_ - delivered_; }

 private:
  struct Chunk {
    std::uint64_t end = 0;  // bytes sent up to its last
    TimePoint at;
    std::uint64_t delivered = 0;  // when it was sent
    bool alone = false;           // nothing was under way
  };
  void take_time(const Chunk& chunk, Duration time);
  void end_round(const Chunk& newest, TimePoint now);
  void follow_period(TimePoint now);
  void drain();
  Duration least() const;   // max(): none yet
  Duration target() const;  // of the queue

  std::deque<Chunk> chunks_;
  std::uint64_t sent_ = 0, delivered_ = 0;
  double bound_;
  double floor_ = 0;  // of bound_, in this period
  double rate_ = 0;   // bytes a second, of the last round

  std::uint64_t round_end_ = 0;  // delivered bytes
  Duration round_least_ = Duration::max();
  bool held_ = false;  // in this round
  bool starting_ = true;
  double rate_before_ = 0;  // bytes a second, of the round before, while starting

  std::int64_t period_ = 0;
  Duration least_now_ = Duration::max(), least_before_ = Duration::max();
  bool alone_ = false;  // in this period
  bool draining_ = false;
  bool refilling_ = false;                   // this round began on a line that a drain had left empty
  std::optional<std::uint64_t> drained_at_;  // sent bytes: what is sent behind them sees no queue of ours
};

}  // namespace shoal
