// The virtual network's faults, and a link under them.
#include "sim/sim_network.h"

#include <gtest/gtest.h>

#include "common/bulk_bytes.h"
#include "tests/transport/sim_lab.h"
#include "tests/transport/transport_lab.h"
#include "transport/envelope.h"
#include "transport/limits.h"

namespace shoal {
namespace {

class SimNetworkTest : public testing::Test {
 protected:
  void link() {
    // On the hosts' own loops, so that freezing a host freezes its transport.
    for (int i : {0, 1}) {
      end[i].transport =
          std::make_unique<Transport>(lab.wire(i), lab.network().host(host(i)).loop(), test_options(lab, i));
      end[i].transport->set_listener(&end[i].log);
    }
    end[0].transport->learn(lab.peer(1), {{host(1)}});
    end[0].transport->dial(lab.peer(1));
    ASSERT_TRUE(until([&] { return end[0].log.ups.size() == 1 && end[1].log.ups.size() == 1; }));
  }
  static Address host(int i) { return "host" + std::to_string(i) + ":1"; }
  bool until(const std::function<bool()>& done, Duration limit = 60s) { return lab.run_until(done, limit); }
  Result<TransferId> send(int from, Message message, std::vector<Bytes> frames = {}) {
    return end[from].transport->send(lab.peer(1 - from), std::move(message), std::move(frames));
  }

  std::size_t count_frames_ok() const {
    std::size_t whole = 0;
    for (const TransportLog::Frames& got : end[1].log.frames) whole += got.frames.ok() ? 1 : 0;
    return whole;
  }

  SimLab lab;
  TransportEnd end[2];
};

TEST_F(SimNetworkTest, LatencyAndRateAreWhatWasAskedFor) {
  SimHostShape shape;
  shape.latency = 50ms;
  shape.up_bytes_per_second = 1e6;
  for (int i : {0, 1}) lab.network().add_host(host(i), shape);
  link();
  ASSERT_TRUE(until([&] { return end[0].transport->stats(lab.peer(1)).rtt > 0ms; }));
  EXPECT_NEAR(seconds_of(end[0].transport->stats(lab.peer(1)).rtt), 0.100, 0.002);
  const TimePoint start = lab.loop().now();
  ASSERT_TRUE(send(0, Have{}, {numbered_bytes(5000000, 1)}).ok());
  ASSERT_TRUE(until([&] { return end[1].log.frames.size() == 1; }));
  EXPECT_NEAR(seconds_of(lab.loop().now() - start), 5.05, 0.3) << "the line is drained once, to see its way alone";
  lab.run_for(1s);
  EXPECT_NEAR(end[0].transport->stats(lab.peer(1)).bytes_per_second, 1e6, 5e4);
  EXPECT_LT(end[0].transport->stats(lab.peer(1)).rtt, 120ms) << "control must not wait behind bulk";
}

TEST_F(SimNetworkTest, ALargeFrameIsSentInPiecesBetweenOtherCallbacks) {
  link();
  const Bytes frame = numbered_bytes(16u << 20, 1).summed();
  lab.sim_loop().forget_bulk_bytes();
  lab.loop().post([&] { EXPECT_TRUE(send(0, Have{}, {frame}).ok()); });
  ASSERT_TRUE(until([&] { return end[1].log.frames.size() == 1; }));
  ASSERT_TRUE(end[1].log.frames[0].frames.ok());
  EXPECT_TRUE(same_bytes(end[1].log.frames[0].frames->front(), frame));
  EXPECT_LE(lab.sim_loop().most_bulk_bytes(), kBulkBytesMax / 2) << "the credit alone would let 4 MiB go at once";
}

// 20 Mbit/s and 100 ms: 4 MiB of credit would be 1.7 s of queue, of which nothing could be withdrawn.
TEST_F(SimNetworkTest, OnlyWhatFillsTheLineIsUnderWayAndTheRestCanBeWithdrawn) {
  constexpr double kRate = 2.5e6;
  SimHostShape shape;
  shape.latency = 50ms;
  shape.up_bytes_per_second = kRate;
  for (int i : {0, 1}) lab.network().add_host(host(i), shape);
  link();
  lab.run_for(2s);
  std::uint64_t handed = 0;
  lab.network().set_watch([&](const Address& from, Lane lane, const Bytes& message) {
    if (from == host(0) && lane == Lane::kBulk) handed += message.size();
  });
  const Bytes frame = numbered_bytes(4u << 20, 1).summed();
  const TimePoint start = lab.loop().now();
  std::vector<TransferId> transfers;
  for (int i = 0; i < 3; ++i) transfers.push_back(*send(0, Have{}, {frame}));
  std::uint64_t most_ahead = 0;
  for (int tenths = 1; tenths <= 30; ++tenths) {
    lab.run_for(100ms);
    const double left = kRate * seconds_of(lab.loop().now() - start);
    most_ahead = std::max(most_ahead, static_cast<std::uint64_t>(std::max(0.0, static_cast<double>(handed) - left)));
  }
  EXPECT_LE(most_ahead, static_cast<std::uint64_t>(kRate * 0.2)) << "in front of the uplink";
  EXPECT_GE(static_cast<double>(handed), 0.9 * 3 * kRate) << "the line is full all the same";
  EXPECT_GT(end[0].transport->ahead_of(lab.peer(1), transfers[2]), 2u << 20);
  end[0].transport->drop(lab.peer(1), transfers[2]);
  lab.run_for(5s);
  EXPECT_LE(handed, 2 * frame.size() + (frame.size() >> 4)) << "of the third, which nobody wants, next to nothing";
  EXPECT_EQ(count_frames_ok(), 2u);
  lab.network().set_watch(nullptr);
}

TEST_F(SimNetworkTest, WhatOneCallbackSendsToManyIsPackedInLaterOnes) {
  constexpr int kPeers = 12;
  TransportEnd sender, others[kPeers];
  start_transport(sender, lab, 0);
  for (int i = 0; i < kPeers; ++i) {
    start_transport(others[i], lab, 1 + i);
    sender.transport->learn(lab.peer(1 + i), {{lab.address(1 + i)}});
    sender.transport->dial(lab.peer(1 + i));
  }
  ASSERT_TRUE(until([&] { return sender.log.ups.size() == kPeers; }));
  const Bytes part = numbered_bytes(2u << 20, 1).summed();
  lab.sim_loop().forget_bulk_bytes();
  lab.loop().post([&] {
    for (int i = 0; i < kPeers; ++i) EXPECT_TRUE(sender.transport->send(lab.peer(1 + i), Have{}, {part}).ok());
  });
  for (const TransportEnd& other : others) ASSERT_TRUE(until([&] { return other.log.frames.size() == 1; }));
  EXPECT_LE(lab.sim_loop().most_bulk_bytes(), kBulkBytesMax) << "24 MiB, and the credits let them all go at once";
}

// A loop that is late answers pings late: were that taken for a long way, ever more would wait for it at once.
TEST_F(SimNetworkTest, ALateLoopLetsNoMoreComeAtOnceThanItsWayNeeds) {
  SimHostShape shape;
  shape.latency = 1ms;
  for (int i : {0, 1}) lab.network().add_host(host(i), shape);
  link();
  lab.run_for(3s);
  std::uint64_t granted = limits::kByteCreditsInitial, window = 0;
  lab.network().set_watch([&](const Address& from, Lane lane, const Bytes& message) {
    if (from != host(1) || lane != Lane::kControl) return;
    const auto envelope = parse_envelope(message);
    if (!envelope.ok() || !std::holds_alternative<ByteCredit>(envelope->message)) return;
    const auto& credit = std::get<ByteCredit>(envelope->message);
    granted += credit.bytes;
    window = std::max(window, granted - credit.consumed);
  });
  ASSERT_TRUE(send(0, Have{}, {numbered_bytes(160u << 20, 1)}).ok());
  for (int i = 0; i < 40; ++i) {
    lab.network().freeze(host(1));
    lab.run_for(300ms);
    lab.network().resume(host(1));
    lab.run_for(1ms);
  }
  EXPECT_GT(window, 0u);
  EXPECT_LE(window, limits::kByteCreditsInitial);
  ASSERT_TRUE(until([&] { return end[1].log.frames.size() == 1; }));
  EXPECT_TRUE(end[1].log.frames[0].frames.ok());
  lab.network().set_watch(nullptr);
}

TEST_F(SimNetworkTest, TheDownlinkIsSharedByTwoSenders) {
  SimHostShape slow;
  slow.down_bytes_per_second = 1e6;
  lab.network().add_host(host(1), slow);
  WireLog log[3];
  for (int i : {0, 1, 2}) lab.wire(i).set_listener(&log[i]);
  const ConnectionId a = lab.wire(0).connect(lab.peer(1), host(1));
  const ConnectionId b = lab.wire(2).connect(lab.peer(1), host(1));
  ASSERT_TRUE(until([&] { return log[1].ups.size() == 2; }));
  const TimePoint start = lab.loop().now();
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(lab.wire(0).send(a, Lane::kBulk, numbered_bytes(250000, 1)).ok());
    ASSERT_TRUE(lab.wire(2).send(b, Lane::kBulk, numbered_bytes(250000, 1)).ok());
  }
  ASSERT_TRUE(until([&] { return log[1].messages.size() == 8; }));
  EXPECT_NEAR(seconds_of(lab.loop().now() - start), 2.01, 0.02);
}

TEST_F(SimNetworkTest, AFrozenHostDoesNothingAndGoesOnWhereItWas) {
  link();
  lab.network().freeze(host(1));
  ASSERT_TRUE(send(0, Goodbye{}).ok());
  lab.run_for(3s);
  EXPECT_EQ(end[1].log.messages.size(), 0u);
  EXPECT_TRUE(end[0].log.downs.empty()) << "3 s of silence are not the end";
  lab.network().resume(host(1));
  ASSERT_TRUE(until([&] { return end[1].log.messages.size() == 1; }));
  lab.run_for(10s);
  EXPECT_TRUE(end[0].log.downs.empty());
  EXPECT_TRUE(end[1].log.downs.empty());
}

TEST_F(SimNetworkTest, AFreezeBeyondTheSilenceLimitEndsTheLinkAtBothEnds) {
  link();
  lab.network().freeze(host(1));
  ASSERT_TRUE(until([&] { return end[0].log.downs.size() == 1; }));
  EXPECT_EQ(end[0].log.downs[0].second.code, ErrorCode::kTimeout);
  EXPECT_TRUE(end[1].log.downs.empty());
  lab.network().resume(host(1));
  ASSERT_TRUE(until([&] { return end[1].log.downs.size() == 1; }));
  ASSERT_TRUE(until([&] { return send(0, Goodbye{}).ok(); }));
  ASSERT_TRUE(until([&] { return count_of<Goodbye>(end[1].log) == 1; }));
}

TEST_F(SimNetworkTest, ALongFreezeIsNotTakenForTheSilenceOfOthers) {
  link();
  // End 0 does not notice: its own loop stands still as well.
  lab.network().freeze(host(0));
  lab.network().freeze(host(1));
  lab.run_for(60s);
  lab.network().resume(host(0));
  lab.network().resume(host(1));
  lab.run_for(10s);
  EXPECT_TRUE(end[0].log.downs.empty());
  EXPECT_TRUE(end[1].log.downs.empty());
}

TEST_F(SimNetworkTest, AKilledProcessIsNoticedAtOnceAKilledMachineBySilence) {
  for (const bool machine : {false, true}) {
    link();
    const TimePoint start = lab.loop().now();
    lab.network().kill(host(1), machine);
    ASSERT_TRUE(until([&] { return !end[0].log.downs.empty(); }));
    if (machine) {
      EXPECT_GE(lab.loop().now() - start, limits::kLinkSilenceMax - 1s);
    } else {
      EXPECT_LE(lab.loop().now() - start, 100ms);
    }
    EXPECT_TRUE(end[1].log.downs.empty()) << "the dead hear nothing";
    for (int i : {0, 1}) {
      end[i].transport.reset();
      end[i].log = TransportLog{};
      lab.destroy(i);
    }
  }
}

TEST_F(SimNetworkTest, ANewHostComesUpWhereOneWasKilled) {
  link();
  lab.network().kill(host(1));
  ASSERT_TRUE(until([&] { return end[0].log.downs.size() == 1; }));
  SimHost& old = lab.network().host(host(1));
  end[1].transport.reset();
  lab.destroy(1);
  lab.wire(1);
  EXPECT_TRUE(old.killed());
  SimHost& fresh = lab.network().host(host(1));
  EXPECT_FALSE(fresh.killed());
  end[1].log = TransportLog{};
  end[1].transport = std::make_unique<Transport>(lab.wire(1), fresh.loop(), test_options(lab, 1, 2));
  end[1].transport->set_listener(&end[1].log);
  ASSERT_TRUE(until([&] { return send(0, Goodbye{}).ok(); }));
  ASSERT_TRUE(until([&] { return count_of<Goodbye>(end[1].log) == 1; }));
}

TEST_F(SimNetworkTest, ACutIsToldToBothEnds) {
  link();
  lab.network().cut(host(0), host(1));
  ASSERT_TRUE(until([&] { return end[0].log.downs.size() == 1 && end[1].log.downs.size() == 1; }));
  ASSERT_TRUE(until([&] { return send(0, Goodbye{}).ok(); }));
  ASSERT_TRUE(until([&] { return count_of<Goodbye>(end[1].log) == 1; }));
}

TEST_F(SimNetworkTest, AShortPartitionLosesNothingALongOneEndsTheLink) {
  link();
  lab.network().partition(host(0), host(1));
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(send(0, Have{Lease{{}, i}}).ok());
  lab.run_for(3s);
  EXPECT_EQ(end[1].log.messages.size(), 0u);
  lab.network().partition(host(0), host(1), false);
  ASSERT_TRUE(until([&] { return end[1].log.messages.size() == 10; }));
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(std::get<Have>(end[1].log.messages[i].message).lease.serial, i);
  lab.network().partition(host(0), host(1));
  ASSERT_TRUE(until([&] { return end[0].log.downs.size() == 1 && end[1].log.downs.size() == 1; }));
  ASSERT_TRUE(until([&] { return send(0, Goodbye{}).ok(); }));
  ASSERT_TRUE(until([&] { return end[0].log.downs.size() == 2; }));
  EXPECT_EQ(end[0].log.downs[1].second.code, ErrorCode::kTimeout);
  lab.network().partition(host(0), host(1), false);
  ASSERT_TRUE(until([&] { return send(0, Goodbye{}).ok(); }));
  ASSERT_TRUE(until([&] { return count_of<Goodbye>(end[1].log) == 1; }));
}

TEST_F(SimNetworkTest, AnIdleLinkIsPingedSeldomByOneEndAndItsSilenceIsNoticedAsSoon) {
  link();
  const auto messages_in = [&](Duration time) {
    int messages = 0;
    lab.network().set_watch([&](const Address&, Lane, const Bytes&) { ++messages; });
    lab.run_for(time);
    lab.network().set_watch(nullptr);
    return messages;
  };
  EXPECT_GE(messages_in(3s), 2 * 2 * 2) << "a new link: both ends, every second, with answers";
  lab.run_for(limits::kIdleAfter);
  EXPECT_LE(messages_in(60s), 2 * 60 / 2 + 2);
  EXPECT_TRUE(end[0].log.downs.empty() && end[1].log.downs.empty());
  ASSERT_TRUE(send(0, Have{}).ok());
  ASSERT_TRUE(send(1, Have{}).ok());
  lab.run_for(1s);
  EXPECT_GE(messages_in(3s), 2 * 2 * 2) << "in use again";
  lab.run_for(2 * limits::kIdleAfter);
  lab.network().partition(host(0), host(1));
  const TimePoint start = lab.loop().now();
  ASSERT_TRUE(until([&] { return end[0].log.downs.size() == 1 && end[1].log.downs.size() == 1; }));
  EXPECT_LE(lab.loop().now() - start, limits::kLinkSilenceMax + 2 * limits::kPingPeriod);
}

TEST_F(SimNetworkTest, AOneWayPartitionIsNoticedByBothEnds) {
  link();
  lab.network().block(host(0), host(1));
  ASSERT_TRUE(until([&] { return end[1].log.downs.size() == 1; }));
  lab.network().block(host(0), host(1), false);
  ASSERT_TRUE(until([&] { return end[0].log.downs.size() == 1; }));
}

TEST(SimHostTest, FrozenTasksRunInOrderAfterwardsKilledOnesNever) {
  SimLoop loop;
  SimHost host(loop, "h");
  std::vector<int> ran;
  host.freeze();
  host.loop().post([&] { ran.push_back(1); });
  host.loop().after(1s, [&] { ran.push_back(2); });
  const TimerId cancelled = host.loop().after(1s, [&] { ran.push_back(99); });
  host.loop().after(2s, [&] { ran.push_back(3); });
  host.loop().after(20s, [&] { ran.push_back(4); });
  loop.run_for(10s);
  EXPECT_TRUE(ran.empty());
  host.loop().cancel(cancelled);
  host.resume();
  loop.run_for(1s);
  EXPECT_EQ(ran, (std::vector<int>{1, 2, 3}));
  host.kill();
  host.loop().post([&] { ran.push_back(5); });
  loop.run_for(20s);
  EXPECT_EQ(ran, (std::vector<int>{1, 2, 3}));
}

std::uint64_t eventful_run(std::uint64_t seed) {
  SimLab lab(seed);
  SimHostShape shape;
  shape.jitter = 5ms;
  shape.up_bytes_per_second = 3e6;
  for (int i : {0, 1, 2}) lab.network().add_host("host" + std::to_string(i) + ":1", shape);
  TransportEnd end[3];
  for (int i : {0, 1, 2}) start_transport(end[i], lab, i);
  for (int i : {0, 1, 2}) {
    for (int j : {0, 1, 2}) end[i].transport->learn(lab.peer(j), {{"host" + std::to_string(j) + ":1"}});
  }
  Rng rng(seed + 1000);
  for (int turn = 0; turn < 200; ++turn) {
    const int from = static_cast<int>(rng.below(3)), to = static_cast<int>(rng.below(3));
    (void)end[from].transport->send(lab.peer(to), Have{Lease{{}, rng.next()}},
                                    {numbered_bytes(1 + rng.below(300000), 1)});
    if (rng.chance(0.05)) lab.network().cut("host0:1", "host1:1");
    lab.run_for(Duration(rng.below(100'000'000)));
  }
  std::size_t got = 0;
  for (const auto& e : end) got += e.log.frames.size();
  EXPECT_GT(got, 50u);
  const std::uint64_t hash = mix64(lab.network().record().hash(), lab.sim_loop().trace_hash());
  for (auto& e : end) e.transport.reset();
  return hash;
}

TEST(SimNetworkTraceTest, TheSameSeedGivesTheSameTraceAnotherSeedAnother) {
  EXPECT_EQ(eventful_run(1), eventful_run(1));
  EXPECT_NE(eventful_run(1), eventful_run(2));
}

}  // namespace
}  // namespace shoal
