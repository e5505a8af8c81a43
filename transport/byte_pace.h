#pragma once
// So many bytes a second in the long run, and which of those that wait is next. Pure: time is given. Thread: one.
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "common/bytes.h"
#include "common/time.h"
#include "transport/wire.h"

namespace shoal {

// A message passes when its time on a line of that rate is over, as on a real one: a link that takes the time between
// two of them finds the rate. What may not wait is paid for as well: the next waits longer.
class BytePace {
 public:
  static constexpr Duration kBurst = 20ms;  // of the line's time, or one message: what a late loop may catch up with
  // From one message that waited until the next one's own time begins, at most, however much is paid in between: what
  // is paid beyond that is given.
  static constexpr Duration kDebtMax = 10s;
  explicit BytePace(double bytes_per_second) : rate_(bytes_per_second) {}
  TimePoint passes_at(std::uint64_t bytes) const { return free_at_ + time_of(bytes); }
  void pass(TimePoint now, std::uint64_t bytes);  // that waited until passes_at()
  void pay(std::uint64_t bytes);                  // that could not wait

 private:
  Duration time_of(std::uint64_t bytes) const { return from_seconds(static_cast<double>(bytes) / rate_); }
  double rate_;
  TimePoint free_at_{}, passed_at_{};
};

// Messages of several connections in equal parts by their bytes, those of each in order: start-time fair queueing
// (Goyal, Vin, Cheng, 1996). Bounds: its owner's.
class FairQueue {
 public:
  void push(ConnectionId connection, Bytes message);
  // None that waits may be taken.
  bool empty() const { return turns_.empty(); }
  // REQUIRES: !empty().
  ConnectionId next() const { return turns_.begin()->second; }
  const Bytes& front() const { return shares_.at(next()).waiting.front(); }
  void pop();
  void hold();                            // the next connection's are not taken until release()
  void release(ConnectionId connection);  // no-op for one that is not held
  void forget(ConnectionId connection);
  // What waits of it, and of all, each message with `kMessageCost`.
  std::uint64_t cost_of(ConnectionId connection) const;
  std::uint64_t cost() const { return cost_; }
  // The one of which most waits: each is looked at. REQUIRES: some message waits.
  ConnectionId largest() const;

  static constexpr std::uint64_t kMessageCost = 512;  // about what holding one takes beside its bytes

 private:
  struct Share {
    std::deque<Bytes> waiting;
    std::uint64_t cost = 0;
    std::uint64_t start = 0;  // of its next message, by the clock of `now_`
    bool held = false;
  };
  std::map<ConnectionId, Share> shares_;
  std::set<std::pair<std::uint64_t, ConnectionId>> turns_;  // the starts of those that may be taken
  std::uint64_t now_ = 0;                                   // the start of what was taken last
  std::uint64_t cost_ = 0;
};

}  // namespace shoal
