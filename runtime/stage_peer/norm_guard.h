#pragma once
// Whether a tensor that came over an edge between two stages has the size that tensors of this edge have: its root mean
// square against the running mean of those before it. The mean is one of logarithms, begins with a median, and one
// tensor counts as kFactor times the mean at most and as its kFactor-th part at least: few that are huge or tiny hardly
// move it. One that is refused counts as much as the limit: an edge whose tensors really grew is not refused for ever.
//
// A microbatch whose tensor was refused kRefusedTwice times is so large itself: what comes of it then is scaled to the
// limit and used, so that no microbatch is asked for without end.
//
// A peer rests for kPeerRest when its tensors are refused. By key, not by session.
//
// State machine without I/O, threads or clock. Thread: loop only. Bounds: kSendersMax peers that sent what was refused,
// kMicrobatchesMax microbatches of which something was.
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "common/backoff.h"
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
  static constexpr std::size_t kSendersMax = 1024, kMicrobatchesMax = 1024;
  static constexpr int kRefusedTwice = 2;

  struct Bound {
    double limit = 0;    // the largest root mean square that may be used now
    bool scale = false;  // what is above it is scaled down to it, and used
  };
  Bound bound_of(const MicrobatchId& microbatch) const;
  // The largest root mean square that may be used now.
  double limit() const;
  // The mean of those that were used; 0: not known yet.
  double mean() const;
  // `rms` was not above limit().
  void used(const Session& from, double rms);
  // It was above the limit and scaled down.
  void scaled(const MicrobatchId& microbatch);
  // `rms` was above it. Returns for how long the sender rests from now on; none: it does not.
  std::optional<Duration> refused(const Session& from, const MicrobatchId& microbatch, double rms, TimePoint now);
  bool rests(const Session& from, TimePoint now) const;

 private:
  struct Sender {
    std::uint32_t refusals = 0, used = 0;
    Backoff rest = kPeerRest;
    TimePoint refused_at{}, until{};
  };
  bool knows() const { return learnt_ >= kLearntFrom; }
  void learn(double rms);
  void note(const MicrobatchId& microbatch);
  void make_room();

  double mean_log_ = 0;
  std::array<double, kLearntFrom> first_logs_{};
  std::uint64_t learnt_ = 0;
  std::map<std::uint64_t, Sender> senders_;  // by Session::peer_tag
  std::map<MicrobatchId, int> refusals_;
  std::deque<MicrobatchId> refused_order_;  // the keys of refusals_, the oldest first
};

}  // namespace shoal
