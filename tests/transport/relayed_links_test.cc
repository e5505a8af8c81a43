// Relays as a transport uses them: when one is dialled, and which link of two stays.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/transport/sim_lab.h"
#include "tests/transport/transport_lab.h"
#include "transport/dial_plan.h"
#include "transport/limits.h"

namespace shoal {
namespace {

PeerId peer_of(std::uint8_t number) {
  PeerId peer;
  peer.bytes[0] = number;
  return peer;
}

TEST(DialPlanTest, HomesComeBehindAllAddressesAndWhatWorkedComesFirstAmongItsOwn) {
  DialPlan plan(peer_of(1), peer_of(2));
  plan.follow({{"a:1", "b:1"}, Reach::kNone, {"r:1", "s:1"}});
  const auto attempt = [&](bool by_relay, std::size_t works) {
    std::string all;
    plan.begin(by_relay);
    for (std::size_t i = 0; plan.has_next(); ++i) {
      all += plan.next() + " ";
      if (i == works) plan.worked();
    }
    return all;
  };
  EXPECT_EQ(attempt(true, 3), "a:1 b:1 via/r:1 via/s:1 ");
  EXPECT_EQ(attempt(true, 1), "a:1 b:1 via/s:1 via/r:1 ");
  EXPECT_EQ(attempt(false, 9), "b:1 a:1 ");
  plan.follow({{}, Reach::kNone, {"r:1"}});
  EXPECT_TRUE(plan.reachable());
  EXPECT_FALSE(plan.dialable());
  EXPECT_EQ(attempt(true, 0), "via/r:1 ");
}

// Two ends; nobody dials the second one. Both are called at the relay.
class RelayedLinksTest : public testing::Test {
 protected:
  static constexpr const char* kRelay = "203.0.113.1:443";

  void begin(double bytes_per_second = 0) {
    lab.network().relays().add(kRelay, "relay:1", bytes_per_second);
    lab.network().nats().set(host(1), sim_firewall());
    for (int i : {0, 1}) {
      start_transport(end[i], lab, i);
      lab.wire(i).be_called_at({kRelay});
    }
    lab.run_for(1s);
  }
  // End 0 chooses between two links of the pair, since its PeerId is the smaller one.
  void meet_over_relay() {
    learn(0, {{}, Reach::kNone, {kRelay}});
    end[0].transport->dial(lab.peer(1));
    ASSERT_TRUE(lab.run_until([&] { return is_up(); }, 20s));
    ASSERT_TRUE(relayed(0) && relayed(1));
  }
  void learn(int at, Whereabouts whereabouts) { end[at].transport->learn(lab.peer(1 - at), std::move(whereabouts)); }
  void open_up() { lab.network().nats().set(host(1), {}); }
  bool is_up() const { return !end[0].log.ups.empty() && !end[1].log.ups.empty(); }
  bool relayed(int at) const { return end[at].transport->stats(lab_peer(1 - at)).relayed; }
  PeerId lab_peer(int i) const { return const_cast<SimLab&>(lab).peer(i); }
  static Address host(int i) { return "host" + std::to_string(i) + ":1"; }
  Result<TransferId> send(Message message, std::vector<Bytes> frames = {}) {
    return end[0].transport->send(lab.peer(1), std::move(message), std::move(frames));
  }

  SimLab lab;
  TransportEnd end[2];
};

TEST_F(RelayedLinksTest, AHomeIsDialledWhenNoAddressAnsweredAndItsBytesAreCountedApart) {
  begin();
  learn(0, {{host(1)}, Reach::kDirect, {kRelay}});
  EXPECT_FALSE(end[0].transport->needs_relay(lab.peer(1)));
  ASSERT_TRUE(send(Have{}).ok());
  ASSERT_TRUE(lab.run_until([&] { return end[1].log.messages.size() == 1; }, limits::kBeforeRelayTime + 1s))
      << "a silent address is not waited for as long as where it is the only way";
  EXPECT_TRUE(relayed(0) && relayed(1));
  EXPECT_TRUE(end[0].transport->needs_relay(lab.peer(1)));
  const TransportCounters& counters = end[0].transport->counters();
  EXPECT_EQ(counters.relayed_bytes, counters.sent_bytes);
  EXPECT_GT(counters.relayed_bytes, 0u);
}

TEST_F(RelayedLinksTest, WhoReachedNothingButARelayWaitsShorterForAnAddress) {
  begin();
  TransportEnd third;
  start_transport(third, lab, 2);
  meet_over_relay();
  const auto wait_for_silence = [&](int peer) {
    end[0].transport->learn(lab.peer(peer), {{host(1)}, Reach::kDirect, {}});
    end[0].transport->dial(lab.peer(peer));
    const TimePoint begun = lab.loop().now();
    const auto is_down = [&](const auto& down) { return down.first.peer == lab.peer(peer); };
    EXPECT_TRUE(lab.run_until([&] { return std::ranges::any_of(end[0].log.downs, is_down); }, 20s));
    return lab.loop().now() - begun;
  };
  EXPECT_LE(wait_for_silence(3), limits::kWalledDialTime + 100ms);
  end[0].transport->learn(lab.peer(2), {{host(2)}, Reach::kDirect, {}});
  end[0].transport->dial(lab.peer(2));
  ASSERT_TRUE(lab.run_until([&] { return !third.log.ups.empty(); }, 5s));
  EXPECT_GT(wait_for_silence(4), limits::kWalledDialTime + 1s) << "it reaches others, as has been seen";
}

TEST_F(RelayedLinksTest, OneWhomNoAddressLeadsToNeedsARelayAndIsReached) {
  begin();
  learn(0, {{}, Reach::kNone, {}});
  EXPECT_FALSE(end[0].transport->reaches(lab.peer(1)) || end[0].transport->needs_relay(lab.peer(1)));
  learn(0, {{}, Reach::kNone, {kRelay}});
  EXPECT_TRUE(end[0].transport->reaches(lab.peer(1)) && end[0].transport->needs_relay(lab.peer(1)));
}

TEST_F(RelayedLinksTest, ADirectLinkTakesThePlaceOfARelayedOneThatIsIdle) {
  begin();
  meet_over_relay();
  open_up();
  learn(0, {{host(1)}, Reach::kDirect, {}});
  ASSERT_TRUE(lab.run_until([&] { return !relayed(0) && end[0].log.ups.size() == 2; }, 5s));
  lab.run_for(1s);
  EXPECT_FALSE(relayed(1));
  const std::uint64_t before = end[0].transport->counters().relayed_bytes;
  ASSERT_TRUE(send(Have{}).ok());
  lab.run_for(1s);
  EXPECT_EQ(end[1].log.messages.size(), 1u);
  EXPECT_EQ(end[0].transport->counters().relayed_bytes, before);
}

TEST_F(RelayedLinksTest, WhileSomethingIsUnderWayTheRelayedLinkStaysForTenSeconds) {
  begin(100e3);
  meet_over_relay();
  const TimePoint up = lab.loop().now();
  open_up();
  ASSERT_TRUE(send(Have{}, {numbered_bytes(5'000'000, 1)}).ok());  // 50 s over the relay
  lab.run_for(1s);
  learn(0, {{host(1)}, Reach::kDirect, {}});
  lab.run_for(limits::kRelayedLinkTime - 2s);
  EXPECT_TRUE(relayed(0) && relayed(1));
  EXPECT_EQ(end[0].log.ups.size(), 1u);
  ASSERT_TRUE(lab.run_until([&] { return end[0].log.ups.size() == 2; }, 30s)) << "nobody has to ask again";
  EXPECT_GE(lab.loop().now() - up, limits::kRelayedLinkTime);
  lab.run_for(1s);
  EXPECT_FALSE(relayed(0) || relayed(1));
}

// A network that swallows what is no relay's: a direct attempt is always under way while the relay fails.
TEST_F(RelayedLinksTest, WhereTheRelayedLinkIsLostDuringADirectAttemptTheRelayIsDialledBehindIt) {
  begin();
  lab.network().nats().set(host(0), sim_firewall());
  meet_over_relay();
  learn(0, {{host(1)}, Reach::kDirect, {kRelay}});
  lab.run_for(1s);  // the attempt is under way
  ASSERT_EQ(end[0].log.ups.size(), 1u);
  lab.network().relays().end(kRelay);
  lab.network().relays().add(kRelay, "relay:1", 0);
  ASSERT_TRUE(lab.run_until([&] { return end[0].log.ups.size() == 2; }, limits::kDialTime + 1s));
  EXPECT_TRUE(relayed(0));
}

TEST_F(RelayedLinksTest, ARelayedLinkNeverTakesThePlaceOfADirectOne) {
  begin();
  open_up();
  learn(0, {{host(1)}, Reach::kDirect, {}});
  end[0].transport->dial(lab.peer(1));
  ASSERT_TRUE(lab.run_until([&] { return is_up(); }, 5s));
  lab.run_for(limits::kHandshakeTime);
  (void)lab.wire(1).connect(lab.peer(0), "via/" + std::string(kRelay));
  lab.run_for(3s);
  EXPECT_FALSE(relayed(0) || relayed(1));
  EXPECT_TRUE(end[0].log.downs.empty() && end[1].log.downs.empty());
}

TEST_F(RelayedLinksTest, ARelayIsDialledOnATicketsWordAndTheRunsAndOnNobodysHello) {
  const Whereabouts told{{"via/" + std::string(kRelay)}};
  begin();
  for (const bool is_run : {false, true}) {
    TransportEnd one, other;
    const RunId run = is_run ? RunId{lab.peer(2).bytes} : test_run();
    start_transport(one, lab, 3, 1, run);
    Transport::Options options = test_options(lab, 2, is_run ? 2 : 1, run);
    options.whereabouts = told;
    other.transport = std::make_unique<Transport>(lab.wire(2), lab.loop(), options);
    other.transport->set_listener(&other.log);
    other.transport->hear(lab.peer(3), {{lab.address(3)}});
    other.transport->dial(lab.peer(3));
    ASSERT_TRUE(lab.run_until([&] { return one.log.ups.size() == 1; }, 5s));
    other.transport->close(lab.peer(3), "test");
    ASSERT_TRUE(lab.run_until([&] { return one.log.downs.size() == 1; }, 20s));
    EXPECT_EQ(one.transport->reaches(lab.peer(2)), is_run);
    one.transport->hear(lab.peer(2), told);
    EXPECT_TRUE(one.transport->reaches(lab.peer(2)));
  }
}

}  // namespace
}  // namespace shoal
