#pragma once
// Whether a tensor that came over an edge between two stages has the size that tensors of this edge have: its root mean
// square against the running mean of those before it. The mean is one of logarithms, so that few large ones hardly move
// it. One that is refused counts as much as the limit: an edge whose tensors really grew is not refused for ever.
//
// A peer whose tensors are refused rests: 30 s at first and twice as long each time, 10 min at most. By key, not by
// session.
//
// State machine without I/O, threads or clock. Thread: loop only. Bounds: kSendersMax peers that sent what was refused.
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "common/ids.h"
#include "common/time.h"

namespace shoal {

class NormGuard {
 public:
  static constexpr double kFactor = 64;             // times the running mean
  static constexpr double kAlwaysMax = 1e6;         // whatever the mean is, and before there is one
  static constexpr std::uint64_t kLearntFrom = 8;   // tensors: before them there is no mean
  static constexpr double kNewest = 1.0 / 32;       // what one tensor counts in the mean
  static constexpr std::uint32_t kRefusalsMax = 3;  // of a peer: then it rests, and after a rest one is enough
  static constexpr std::uint32_t kForgivenBy = 64;  // tensors of a peer that were used: one refusal is forgotten
  static constexpr Duration kRestFirst = 30s, kRestMax = 600s;
  static constexpr std::size_t kSendersMax = 1024;

  // The largest root mean square that may be used now.
  double limit() const;
  // The mean of those that were used; 0: not known yet.
  double mean() const;
  // `rms` was not above limit().
  void used(const Session& from, double rms);
  // `rms` was above it. Returns for how long the sender rests from now on; none: it does not.
  std::optional<Duration> refused(const Session& from, double rms, TimePoint now);
  bool rests(const Session& from, TimePoint now) const;

 private:
  struct Sender {
    std::uint32_t refusals = 0, used = 0;
    Duration rest{0};
    TimePoint refused_at{}, until{};
  };
  void learn(double rms);
  void make_room();

  double mean_log_ = 0;
  std::uint64_t learnt_ = 0;
  std::map<std::uint64_t, Sender> senders_;  // by Session::peer_tag
};

// 0 of none. Finite for finite values.
double root_mean_square(std::span<const float> values);

}  // namespace shoal
