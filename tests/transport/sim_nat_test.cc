// Hosts of the virtual network that cannot be dialled: who reaches them, and what becomes of what they dialled.
#include "sim/sim_nat.h"

#include <gtest/gtest.h>

#include "tests/transport/sim_lab.h"
#include "tests/transport/transport_lab.h"
#include "transport/limits.h"

namespace shoal {
namespace {

class SimNatTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int i : {0, 1, 2}) lab.wire(i).set_listener(&log[i]);
  }
  void TearDown() override {
    for (const SimDial& dial : nats().answered()) EXPECT_EQ(broken_by(dial), "");
  }
  static Address host(int i) { return "host" + std::to_string(i) + ":1"; }
  SimNats& nats() { return lab.network().nats(); }
  bool until(const std::function<bool()>& done, Duration limit = 60s) { return lab.run_until(done, limit); }
  // What the dialler is told; none: it stands.
  std::optional<ErrorCode> outcome(int from, int to, const Address& address) {
    log[from] = WireLog{};
    (void)lab.wire(from).connect(lab.peer(to), address);
    EXPECT_TRUE(until([&] { return log[from].events > 0; }));
    if (log[from].downs.empty()) return std::nullopt;
    return log[from].downs[0].cause.code;
  }

  SimLab lab;
  WireLog log[3];
};

TEST_F(SimNatTest, NoDialFromOutsideIsAnsweredAndWhatItDialledItselfStandsBothWays) {
  for (const bool resets : {false, true}) {
    nats().set(host(0), sim_home("home", "192.168.1.2:1", resets));
    const ErrorCode told = resets ? ErrorCode::kUnreachable : ErrorCode::kTimeout;
    EXPECT_EQ(outcome(1, 0, host(0)), told);
    EXPECT_EQ(outcome(1, 0, "home:1"), told) << "its router";
    EXPECT_EQ(outcome(1, 0, "192.168.1.2:1"), ErrorCode::kTimeout) << "nobody of another home's";
    EXPECT_EQ(lab.network().connections(), 0u) << "nothing of a dial that failed stays";
    EXPECT_EQ(outcome(0, 1, host(1)), std::nullopt);
    const ConnectionId back = log[1].ups.back().connection;
    EXPECT_EQ(lab.wire(1).other_host(back), "home") << "others see the router";
    EXPECT_EQ(lab.wire(0).other_host(log[0].ups[0].connection), "host1");
    ASSERT_TRUE(lab.wire(1).send(back, Lane::kControl, numbered_bytes(8, 1)).ok());
    ASSERT_TRUE(until([&] { return log[0].messages.size() == 1; }));
    lab.wire(1).disconnect(back);
    ASSERT_TRUE(until([&] { return lab.network().connections() == 0; }));
  }
}

TEST_F(SimNatTest, HostsOfOneHomeReachEachOtherThereAndThoseOfAnotherOneNot) {
  nats().set(host(0), sim_home("one", "192.168.1.2:1"));
  nats().set(host(1), sim_home("one", "192.168.1.3:1"));
  nats().set(host(2), sim_home("two", "192.168.1.2:1"));
  EXPECT_EQ(outcome(1, 0, "192.168.1.2:1"), std::nullopt);
  EXPECT_EQ(lab.wire(0).other_host(log[0].ups.back().connection), "192.168.1.3");
  EXPECT_EQ(nats().answered().size(), 1u);
  EXPECT_EQ(outcome(1, 0, "one:1"), ErrorCode::kTimeout) << "its own router from within";
  EXPECT_EQ(outcome(1, 0, host(0)), ErrorCode::kTimeout);
  EXPECT_EQ(outcome(2, 1, "192.168.1.3:1"), ErrorCode::kTimeout);
  EXPECT_EQ(outcome(1, 2, "192.168.1.2:1"), ErrorCode::kRefused) << "another one answers there";
}

TEST_F(SimNatTest, APortThatIsForwardedIsDialledAtTheRoutersAddressWhichMayBeAnotherOneLater) {
  SimNat forwarded = sim_home("home", "192.168.1.2:1");
  forwarded.kind = NatKind::kOpen;
  nats().set(host(0), forwarded);
  EXPECT_EQ(outcome(1, 0, "home:1"), std::nullopt);
  EXPECT_EQ(outcome(1, 0, "home:2"), ErrorCode::kTimeout);
  EXPECT_TRUE(lab.network().renumber(host(0)));
  EXPECT_EQ(outcome(1, 0, "home-1:1"), std::nullopt);
  EXPECT_EQ(outcome(1, 0, "home:1"), ErrorCode::kUnreachable) << "nobody has it now";
  EXPECT_FALSE(lab.network().renumber(host(1))) << "it has no router";
}

TEST_F(SimNatTest, WhereOnlyPort443IsLetOutNothingElseIsDialled) {
  const PeerId web = lab.peer(7);
  const auto server = lab.network().make_wire(web, "web:443");
  WireLog heard;
  server->set_listener(&heard);
  nats().set(host(0), {.kind = NatKind::kOnly443});
  EXPECT_EQ(outcome(0, 1, host(1)), ErrorCode::kTimeout);
  EXPECT_EQ(outcome(0, 7, "web:443"), std::nullopt);
  EXPECT_EQ(outcome(1, 0, host(0)), ErrorCode::kTimeout);
}

TEST_F(SimNatTest, AFlushByRstClosesBothEndsAtOnceAndSparesTheHome) {
  nats().set(host(0), sim_home("one", "192.168.1.2:1"));
  nats().set(host(1), sim_home("one", "192.168.1.3:1"));
  EXPECT_EQ(outcome(0, 1, "192.168.1.3:1"), std::nullopt);
  EXPECT_EQ(outcome(0, 2, host(2)), std::nullopt);
  lab.network().flush(host(0), true);
  lab.run_for(1ms);
  EXPECT_EQ(log[0].downs.size(), 1u);
  EXPECT_EQ(log[2].downs.size(), 1u);
  EXPECT_EQ(lab.network().connections(), 1u);
}

TEST_F(SimNatTest, WhatARouterForgotSilentlyTakesBytesUntilItIsFullAndItsEndIsHeardByNobody) {
  nats().set(host(0), sim_firewall());
  EXPECT_EQ(outcome(0, 1, host(1)), std::nullopt);
  const ConnectionId ours = log[0].ups[0].connection, theirs = log[1].ups[0].connection;
  ASSERT_TRUE(lab.wire(0).send(ours, Lane::kControl, numbered_bytes(8, 1)).ok());
  lab.network().flush(host(0));
  Status status = Status::success();
  for (int i = 0; i < 64 && status.ok(); ++i)
    status = lab.wire(1).send(theirs, Lane::kBulk, numbered_bytes(limits::kChunkBytes, 1));
  EXPECT_EQ(status.code(), ErrorCode::kBusy);
  lab.run_for(60s);
  EXPECT_TRUE(log[0].messages.empty() && log[1].messages.empty()) << "also what was under way";
  EXPECT_TRUE(log[0].downs.empty() && log[1].downs.empty());
  lab.wire(0).disconnect(ours);
  lab.run_for(60s);
  EXPECT_TRUE(log[1].downs.empty());
  lab.wire(1).disconnect(theirs);
  EXPECT_EQ(lab.network().connections(), 0u);
}

TEST_F(SimNatTest, EachEndOfALinkThatWasForgottenNoticesByItself) {
  TransportEnd end[2];
  for (int i : {0, 1}) start_transport(end[i], lab, i);
  nats().set(host(0), sim_firewall());
  end[0].transport->learn(lab.peer(1), {{host(1)}});
  end[0].transport->dial(lab.peer(1));
  ASSERT_TRUE(until([&] { return end[0].log.ups.size() == 1 && end[1].log.ups.size() == 1; }));
  const TimePoint begun = lab.loop().now();
  lab.network().flush(host(0));
  ASSERT_TRUE(until([&] { return end[0].log.downs.size() == 1 && end[1].log.downs.size() == 1; }));
  EXPECT_GE(lab.loop().now() - begun, limits::kLinkSilenceMax - 1s);
  for (int i : {0, 1}) EXPECT_EQ(end[i].log.downs[0].second.code, ErrorCode::kTimeout);
}

TEST(SimDialTest, ADialThatCameThroughAFirewallOrIntoAnotherHomeIsTold) {
  const SimNat open, wall = sim_firewall(), one = sim_home("one", "192.168.1.2:1"),
                     two = sim_home("two", "192.168.1.2:1");
  EXPECT_EQ(broken_by({"a:1", "b:1", one, open}), "");
  EXPECT_EQ(broken_by({"a:1", "b:1", one, one}), "");
  for (const SimDial& dial : {SimDial{"a:1", "b:1", open, wall}, SimDial{"a:1", "b:1", wall, wall},
                              SimDial{"a:1", "b:1", one, two}, SimDial{"a:1", "b:1", wall, one}})
    EXPECT_EQ(broken_by(dial), "a:1 dialled b:1, which answers nobody outside its home");
}

}  // namespace
}  // namespace shoal
