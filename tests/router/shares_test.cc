// Equal replicas of a stage get equal parts, whatever their first words are: the product's rates and policy, over a
// stage of devices and uplinks in virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "common/rng.h"
#include "names.h"
#include "router/policy.h"
#include "router/rates.h"

namespace shoal {
namespace {

using namespace naming;

struct SharesWorld {
  const char* name;
  double up = 0;                                                // bytes a second of each uplink; 0: any
  std::uint64_t there_bytes = 0, on_bytes = 0, back_bytes = 0;  // to the stage, from it to the next one, back
  Duration forward = 20ms, backward = 40ms, below = 500ms;      // below: what later stages take
  std::size_t peers = 2, in_flight = 12;
};

// One holder, and a stage of equal replicas. A replica says its first word of `first` times its time.
class SharesStage {
 public:
  SharesStage(const SharesWorld& world, std::uint64_t seed, std::vector<double> first)
      : world_(world), rng_(seed), samples_(seed << 32), peers_(world.peers) {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      peers_[i].factor = first[i];
      rates_.set_link(session(i + 1), world.up, 40ms);
    }
  }

  // The last one cannot be asked.
  void set_away(bool away) { away_ = away; }
  // How many of so many microbatches each gets.
  std::vector<int> shares(int microbatches) {
    std::vector<int> counts(peers_.size());
    while (open_ < world_.in_flight) ask(counts);
    while (std::accumulate(counts.begin(), counts.end(), 0) < microbatches) {
      const auto next = events_.begin();
      now_ = next->first;
      const auto event = std::move(next->second);
      events_.erase(next);
      event();
      while (open_ < world_.in_flight) ask(counts);
    }
    return counts;
  }

 private:
  struct Server {
    TimePoint free_at{};
    TimePoint after(TimePoint now, Duration time) { return free_at = std::max(free_at, now) + time; }
  };
  struct Peer {
    Server device, up;
    double factor = 1;  // of its next microbatch's time
    TimePoint back_at{};
  };
  struct Microbatch {
    std::size_t peer = 0;
    TimePoint since;
    Duration took{0}, forward{0}, backward{0};
    double predicted = 0;
  };

  void at_time(TimePoint when, std::function<void()> event) { events_.emplace(when, std::move(event)); }
  Duration line(std::uint64_t bytes) const {
    return world_.up > 0 ? from_seconds(static_cast<double>(bytes) / world_.up) : Duration{0};
  }
  Duration jittered(Duration time) { return from_seconds(seconds_of(time) * (0.9 + 0.2 * rng_.uniform())); }

  void ask(std::vector<int>& counts) {
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < peers_.size() - away_; ++i) {
      const Session peer = session(i + 1);
      candidates.push_back({peer, rates_.weight(peer, now_), rates_.expected_seconds(peer, world_.there_bytes, now_),
                            rates_.in_flight(peer)});
    }
    const Session chosen = *policy_->pick(SampleId(mix64(samples_, next_++ % 64)), candidates);
    Microbatch m;
    m.peer = chosen.peer_tag - 1;
    m.since = now_;
    m.predicted = rates_.predicted_seconds(chosen, world_.there_bytes, now_);
    rates_.sent(chosen);
    ++counts[m.peer];
    ++open_;
    const double factor = std::exchange(peers_[m.peer].factor, 1);
    m.forward = from_seconds(seconds_of(jittered(world_.forward)) * factor);
    m.backward = from_seconds(seconds_of(jittered(world_.backward)) * factor);
    at_time(our_up_.after(now_, line(world_.there_bytes)) + 20ms, [this, m] { arrived(m); });
  }
  void arrived(Microbatch m) {
    at_time(peers_[m.peer].device.after(now_, m.forward), [this, m] { forward_done(m); });
  }
  void forward_done(Microbatch m) {
    at_time(now_ + 20ms, [this, m]() mutable {  // its word
      m.took += now_ - m.since;
      rates_.report_queue(session(m.peer + 1), std::max(peers_[m.peer].device.free_at - now_, Duration{0}), now_);
      m.since = now_;
      const TimePoint out = peers_[m.peer].up.after(now_, line(world_.on_bytes));
      at_time(out + jittered(world_.below), [this, m] { gradient_came(m); });
    });
  }
  void gradient_came(Microbatch m) {
    m.since = now_;
    at_time(peers_[m.peer].device.after(now_, m.backward), [this, m] { backward_done(m); });
  }
  void backward_done(Microbatch m) {
    const TimePoint came = now_ + 20ms;  // its header
    at_time(peers_[m.peer].up.after(now_, line(world_.back_bytes)) + 20ms, [this, m, came]() { won(m, came); });
  }
  void won(Microbatch m, TimePoint came) {
    const Session peer = session(m.peer + 1);
    if (world_.back_bytes > 0) rates_.observe_back(peer, now_ - came);
    rates_.finished(peer, m.took + (now_ - m.since), m.predicted, now_);
    // As a stage peer says it: the slowest of its device and its lines.
    const double factor = std::max(
        1.0, seconds_of(line(std::max(world_.on_bytes, world_.back_bytes))) / seconds_of(m.forward + m.backward));
    rates_.report(peer, from_seconds(seconds_of(m.forward) * factor), from_seconds(seconds_of(m.backward) * factor),
                  now_);
    rates_.ended(peer);
    --open_;
  }

  const SharesWorld world_;
  Rng rng_;
  std::uint64_t samples_, next_ = 0;
  TimePoint now_ = at(0s);
  HopRates rates_;
  std::unique_ptr<RoutingPolicy> policy_ = make_rendezvous_policy();
  std::multimap<TimePoint, std::function<void()>> events_;
  Server our_up_;
  std::vector<Peer> peers_;
  std::size_t open_ = 0;
  bool away_ = false;
};

const std::vector<SharesWorld> kSharesWorlds = {
    {.name = "first stage, 1 Mbit/s", .up = 125e3, .there_bytes = 2048, .on_bytes = 65536, .below = 2s},
    {.name = "inner stage, 1 Mbit/s",
     .up = 125e3,
     .there_bytes = 65536,
     .on_bytes = 65536,
     .back_bytes = 65536,
     .below = 2s},
    {.name = "last stage, 1 Mbit/s", .up = 125e3, .there_bytes = 65536, .back_bytes = 65536, .below = 0s},
    {.name = "first stage, 512 KiB over 1 Mbit/s",
     .up = 125e3,
     .there_bytes = 2048,
     .on_bytes = 512 << 10,
     .below = 8s},
    {.name = "inner stage, 512 KiB over 1 Mbit/s",
     .up = 125e3,
     .there_bytes = 512 << 10,
     .on_bytes = 512 << 10,
     .back_bytes = 512 << 10,
     .below = 8s},
    {.name = "first stage", .there_bytes = 2048, .on_bytes = 65536},
    {.name = "inner stage", .there_bytes = 65536, .on_bytes = 65536, .back_bytes = 65536},
    {.name = "last stage", .there_bytes = 65536, .back_bytes = 65536, .below = 0s},
};

int least_of(const std::vector<int>& counts) { return *std::min_element(counts.begin(), counts.end()); }

void expect_shares(SharesWorld world, double first) {
  for (const std::size_t in_flight : {4, 12, 24})
    for (const std::size_t peers : {2, 3}) {
      world.in_flight = in_flight;
      world.peers = peers;
      int least = 1000;
      std::string worst;
      for (std::uint64_t seed = 1; seed <= 40; ++seed)
        for (std::size_t place = 0; place < peers; ++place) {
          std::vector<double> factors(peers, 1.0);
          factors[place] = first;
          const int now = least_of(SharesStage(world, seed, factors).shares(200));
          if (now >= least) continue;
          least = now;
          worst = "seed " + std::to_string(seed) + ", of replica " + std::to_string(place);
        }
      EXPECT_GE(least, 200 / static_cast<int>(peers) / 2)
          << world.name << ", " << peers << " replicas, " << in_flight << " in flight, a first word of " << first
          << " times its time: " << worst;
    }
}

TEST(SharesTest, OfEqualReplicasNoneGetsLessThanHalfOfItsShareWhateverTheirFirstWords) {
  for (const SharesWorld& world : kSharesWorlds)
    for (const double first : {0.5, 1.0, 2.0}) expect_shares(world, first);
}

// No other word would follow, were it not tried again.
TEST(SharesTest, AReplicaWhoseFirstWordWasOfAColdDeviceGetsItsShare) {
  for (SharesWorld world : kSharesWorlds) {
    world.forward *= 20, world.backward *= 20, world.below *= 4;
    expect_shares(world, 4);
  }
}

TEST(SharesTest, AReplicaThatWasAwayGetsItsShareAgain) {
  for (SharesWorld world : kSharesWorlds)
    for (const std::size_t in_flight : {4, 12, 24}) {
      world.in_flight = in_flight;
      for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        SharesStage stage(world, seed, {1, 1});
        stage.shares(16);
        stage.set_away(true);
        stage.shares(60);
        stage.set_away(false);
        EXPECT_GE(least_of(stage.shares(200)), 50) << world.name << ", " << in_flight << " in flight, seed " << seed;
      }
    }
}

}  // namespace
}  // namespace shoal
