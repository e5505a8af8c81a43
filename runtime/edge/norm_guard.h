#pragma once
// Whether a tensor that came over an edge between two stages has the size that tensors of this edge have: its root mean
// square against what is normal there. What is normal is a median over senders, each worth one however much it sends:
// each sender has a running mean of its own, and of an even number of senders the larger of the two middle ones counts.
// So one sender among three or more moves nothing, and one of two cannot make the other's tensors too large.
//
// A sender's mean is one of logarithms, begins with a median, and one tensor counts as kFactor times the mean at most
// and as its kFactor-th part at least: few that are huge or tiny hardly move it. One that is refused tells nothing.
//
// clang-format off
// senders known | a tensor above the limit
// none          | is refused when it is above kAlwaysMax
// one           | is scaled to the limit and used: the word of one sender refuses nothing, and rests nobody
// more          | is refused; a sender of kRefusalsMax is due to rest
// clang-format on
// A microbatch whose tensor was refused kRefusedTwice times is so large itself: what comes of it then is scaled to the
// limit and used, so that no microbatch is asked for without end. It counts in its sender's mean: an edge whose tensors
// really grew is not refused for ever.
//
// A peer that is due rests for kPeerRest, if its stage has another one (the caller knows). By key, not by session; what
// its tensors are like is kept while its session is a member.
//
// State machine without I/O, threads or clock. Thread: loop only. Bounds: kSendersMax senders, as many peers that sent
// what was refused, kMicrobatchesMax microbatches of which something was.
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>

#include "common/backoff.h"
#include "common/ids.h"
#include "common/time.h"

namespace shoal {

class NormGuard {
 public:
  static constexpr double kFactor = 64;             // times what is normal
  static constexpr double kAlwaysMax = 1e6;         // whatever is normal, and before that is known
  static constexpr std::uint64_t kLearntFrom = 8;   // tensors of a sender: before them it has no mean
  static constexpr double kNewest = 1.0 / 32;       // what one tensor counts in its sender's mean
  static constexpr std::uint32_t kRefusalsMax = 3;  // of a peer: then it rests, and after a rest one is enough
  static constexpr std::uint32_t kForgivenBy = 64;  // tensors of a peer that were used: one refusal is forgotten
  static constexpr std::size_t kSendersMax = 1024, kMicrobatchesMax = 1024;
  static constexpr int kRefusedTwice = 2;

  struct Bound {
    double limit = 0;        // the largest root mean square that is used as it is
    double scaled_from = 0;  // what is above the limit and at most this is scaled down to the limit, and used
  };
  Bound bound_of(const MicrobatchId& microbatch) const;
  // The largest root mean square that is used as it is.
  double limit() const;
  // The median of the senders' means; 0: not known yet.
  double normal() const;
  // `rms` was not above limit().
  void used(const Session& from, double rms);
  // It was above the limit and scaled down.
  void scaled(const Session& from, const MicrobatchId& microbatch, double rms);
  // It was above what is used or scaled. Returns whether the sender is due to rest, and does not rest already.
  bool refused(const Session& from, const MicrobatchId& microbatch, TimePoint now);
  // The sender rests from now on. Returns for how long.
  Duration rest(const Session& from, TimePoint now);
  bool rests(const Session& from, TimePoint now) const;
  // The session is over: what it sent says nothing more of what is normal.
  void forget(const Session& from);

 private:
  // What a sender's tensors are like.
  struct Sender {
    std::uint64_t incarnation = 0;
    double mean_log = 0;
    std::array<double, kLearntFrom> first_logs{};
    std::uint64_t learnt = 0;
    bool known() const { return learnt >= kLearntFrom; }
    void learn(double rms);
  };
  // What was refused of a peer.
  struct Culprit {
    std::uint32_t refusals = 0, used = 0;
    Backoff rest = kPeerRest;
    TimePoint refused_at{}, until{};
  };
  void learn(const Session& from, double rms);
  void find_normal();
  void note(const MicrobatchId& microbatch);
  void make_room();

  std::map<std::uint64_t, Sender> senders_;  // by Session::peer_tag
  std::size_t known_ = 0;                    // of these
  double normal_log_ = 0;
  std::map<std::uint64_t, Culprit> culprits_;  // by Session::peer_tag
  std::map<MicrobatchId, int> refusals_;
  std::deque<MicrobatchId> refused_order_;  // the keys of refusals_, the oldest first
};

}  // namespace shoal
