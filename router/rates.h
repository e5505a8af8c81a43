#pragma once
// What this process has measured of the peers that it sends to: transfer and compute times, how far behind they are,
// and from that the deadline of a hop and its expected completion. Pure; `now` is passed in. Thread: loop only. Bounds:
// kSamplesMax samples a peer and kind.
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "transport/messages.h"

namespace shoal {

// The timed parts of a hop, as the holder sees them: from sending the input to "below", from "backward" to the
// gradient; and from asking to the first word about the claim, whatever it is.
enum class HopKind : std::uint8_t { kForward = 0, kBackward = 1, kAnswer = 2 };
inline constexpr std::size_t kHopKinds = 3;

class HopRates {
 public:
  static constexpr std::size_t kSamplesMax = 64;
  static constexpr Duration kDeadlineMin =
      1500ms;  // below it stalls of the host are more likely than faults of the peer
  static constexpr Duration kDeadlineUnknown = 20s;  // nothing measured yet
  static constexpr Duration kDeadlineFirst = 300s;   // nothing measured yet, and it says that its device works at a job
  static constexpr double kDeadlineFactor = 3.0;     // times the 95th percentile
  // No deadline is longer than both of these: kDeadlineCapMin, and kDeadlineCapFactor times what the peers that are not
  // suspected need at worst (their 99th percentile).
  static constexpr Duration kDeadlineCapMin = 2s;
  static constexpr double kDeadlineCapFactor = 4.0;

  // A finished part of a hop. `healthy`: nobody suspects the peer.
  void observe(const Session& peer, HopKind kind, Duration took, bool healthy = true);
  // Reported by the peer itself with its gradients: what the two jobs took it.
  void report(const Session& peer, Duration forward, Duration backward);
  // The peer reports with its progress, or with why it is busy, the work that waits for its device: ours and that of
  // others. It is worked off as time passes, so that a peer of which nothing more is heard is not avoided for good.
  void report_queue(const Session& peer, Duration queue, TimePoint now);
  // Whether its device works at a job, as its newest progress says.
  void report_working(const Session& peer, bool working) { peers_[peer].working = working; }
  void set_link(const Session& peer, double bytes_per_second, Duration rtt);

  void sent(const Session& peer);   // one more in flight to it
  void ended(const Session& peer);  // one less
  std::uint32_t in_flight(const Session& peer) const;

  // max(kDeadlineMin, factor x 95th percentile of what was observed of this peer; of all healthy peers when it is new),
  // and at most max(kDeadlineCapMin, cap factor x 99th percentile of healthy peers). What a suspected peer delivers
  // late does not move the deadlines of others.
  Duration deadline(const Session& peer, HopKind kind) const;
  // Seconds until a microbatch of `bytes` given to it now would be done there: those of ours in flight and this one,
  // each as long as the slower of compute and transfer (they overlap), what it reported to wait beyond ours, and a
  // round trip.
  double expected_seconds(const Session& peer, std::uint64_t bytes, TimePoint now) const;
  // Relative speed for the weights of rendezvous hashing: 1 / (forward + backward); 1 when nothing is known of anybody.
  double weight(const Session& peer) const;
  void forget(const Session& peer);

 private:
  struct Samples {
    std::array<float, kSamplesMax> seconds{};
    std::size_t count = 0, next = 0;
    void add(double value);
    double quantile(double q) const;  // 0 when empty
  };
  struct Peer {
    Samples kinds[kHopKinds];
    double compute = 0;       // seconds; forward + backward, EMA
    TimePoint queue_until{};  // when what it reported to wait would be worked off
    double bytes_per_second = 0, rtt = 0;
    std::uint32_t in_flight = 0;
    bool working = false;
  };
  const Peer* find(const Session& peer) const;
  double known_compute() const;  // mean over peers with a measurement; 0 = none

  std::unordered_map<Session, Peer> peers_;
  Samples all_[kHopKinds];  // of healthy peers
};

}  // namespace shoal
