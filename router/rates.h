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
  // A word of a queue counts e times less against their mean after so long; the mean holds for so long after the newest
  // word, and then halves each time.
  static constexpr Duration kWordFades = 100ms, kWordsHold = 2s, kWordsHalve = 1s;
  // How a peer's predictions failed is half forgotten after so long without a new time, and so is what it said of its
  // speed after twice as long: it is tried again.
  static constexpr Duration kErrorHalves = 10s;
  static constexpr double kRelayedShare = 0.2;
  // No deadline is longer than both of these: kDeadlineCapMin, and kDeadlineCapFactor times what the peers that are not
  // suspected need at worst (their 99th percentile).
  static constexpr Duration kDeadlineCapMin = 2s;
  static constexpr double kDeadlineCapFactor = 4.0;

  // A finished part of a hop. `healthy`: nobody suspects the peer.
  void observe(const Session& peer, HopKind kind, Duration took, bool healthy = true);
  // A hop that brought its gradient. `took`: its parts together, without the wait for later stages. `predicted`: what
  // predicted_seconds() said when it was asked.
  void finished(const Session& peer, Duration took, double predicted, TimePoint now);
  // From a gradient's header to the last of its frames.
  void observe_back(const Session& peer, Duration took);
  // Reported by the peer itself with its gradients: what the two jobs took it. What no newer word follows goes to the
  // mean of the others' words: a first one may be of a device that was cold.
  void report(const Session& peer, Duration forward, Duration backward, TimePoint now);
  // The peer reports with its progress, or with why it is busy, the work that waits for its device: ours and that of
  // others. Where many senders choose, a word is soon out of date, and the next one is likely to be as the mean of
  // those before: so what is taken to wait goes from the one to the other. A peer of which nothing more is heard is not
  // avoided for good: in the end nothing waits there.
  void report_queue(const Session& peer, Duration queue, TimePoint now);
  // Whether its device works at a job, as its newest progress says.
  void report_working(const Session& peer, bool working) { peers_[peer].working = working; }
  void set_link(const Session& peer, double bytes_per_second, Duration rtt);
  // Whether its link goes over a relay: then it weighs kRelayedShare of what it would until a hop there finished.
  void set_relayed(const Session& peer, bool relayed);

  void sent(const Session& peer);   // one more in flight to it
  void ended(const Session& peer);  // one less
  std::uint32_t in_flight(const Session& peer) const;

  // max(kDeadlineMin, factor x 95th percentile of what was observed of this peer; of all healthy peers when it is new),
  // and at most max(kDeadlineCapMin, cap factor x 99th percentile of healthy peers). What a suspected peer delivers
  // late does not move the deadlines of others.
  Duration deadline(const Session& peer, HopKind kind) const;
  // Seconds until a microbatch of `bytes` given to it now would be done there, by the peer's own word and the line:
  // those of ours in flight, each as long as the slowest of transfer there, compute and transfer back (they overlap),
  // this one's three, what it reported to wait beyond ours, and a round trip. 0: it said nothing yet, or its line was
  // not measured yet.
  double predicted_seconds(const Session& peer, std::uint64_t bytes, TimePoint now) const;
  // The same, corrected by what predictions of it were worth: a peer that lies about its speed or its queue, in either
  // direction, is known by its times after a few microbatches. Without new times that goes to the mean of the peers, as
  // far as that is below 1: a prediction counts all in flight there and the lines behind it, which a hop's time does
  // not, so that times stay the further below the more a peer has, and its twin that had nothing for a while would be
  // the worse one for ever.
  double expected_seconds(const Session& peer, std::uint64_t bytes, TimePoint now) const;
  // Relative speed for the weights of rendezvous hashing: 1 / (forward + backward), by its word as far as its times
  // bear it out; 1 when nothing is known of anybody.
  double weight(const Session& peer, TimePoint now) const;
  // What policies choose by beside that, in seconds; 0: not known.
  double hop_seconds(const Session& peer) const;  // of the newest ten or so that finished
  double compute_seconds(const Session& peer,
                         TimePoint now) const;  // forward and backward, by its word or as the others
  double transfer_seconds(const Session& peer, std::uint64_t bytes) const;  // there and back
  double rtt_seconds(const Session& peer) const;
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
    double forward = 0, backward = 0;    // seconds, by its own word; EMA
    double back = 0;                     // seconds of a gradient's frames; EMA
    double hop_sum = 0, hop_weight = 0;  // of what hops took: EMA without the weight of what was never measured
    double log_error = 0;                // of what hops took over what was predicted; EMA
    std::uint32_t errors = 0, reports = 0;
    TimePoint error_at{}, said_at{};
    double of_others = 0, of_others_mean = 0;  // seconds, of what it reported to wait, beyond ours: newest word, EMA
    std::uint32_t words = 0;
    TimePoint word_at{};
    double bytes_per_second = 0, rtt = 0;
    std::uint32_t in_flight = 0;
    bool working = false, relayed = false;
    double compute() const { return forward + backward; }
    double there(std::uint64_t bytes) const {  // seconds of the line; 0: not measured
      return bytes_per_second > 0 ? static_cast<double>(bytes) / bytes_per_second : 0;
    }
  };
  const Peer* find(const Session& peer) const;
  double error(const Peer& peer, TimePoint now) const;  // a factor
  static double of_others(const Peer& peer, TimePoint now);
  double completion(const Peer& peer, double compute, std::uint64_t bytes, TimePoint now) const;
  double known_compute(TimePoint now) const;  // mean over peers that said it, by how new their words are; 0: none did
  double compute_of(const Peer* peer, TimePoint now) const;
  static double word_left(const Peer& peer, TimePoint now);  // 1: its word counts; 0: the others' do

  std::unordered_map<Session, Peer> peers_;
  Samples all_[kHopKinds];  // of healthy peers
};

}  // namespace shoal
