#include "transport/mapping/map_talk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "common/rng.h"
#include "tests/mapping/router_answers.h"

namespace shoal {
namespace {

using namespace std::chrono_literals;
using test::Datagram;

class MapTalkTest : public testing::Test {
 protected:
  static constexpr std::uint16_t kPort = 4700, kBulk = 4701;

  // What is sent within `time`, with `answer` given to each: empty is silence.
  template <class Answer>
  std::vector<Datagram> run(Duration time, Answer answer) {
    std::vector<Datagram> sent;
    const TimePoint end = now + time;
    while (!talk.over() && talk.wake_at() <= end) {
      now = std::max(now, talk.wake_at());
      for (const Bytes& word : talk.turn(now)) {
        sent.emplace_back(word.view().begin(), word.view().end());
        if (const Datagram back = answer(word); !back.empty()) talk.take(back, now);
      }
    }
    now = end;
    return sent;
  }
  std::vector<Datagram> run_silent(Duration time) {
    return run(time, [](const Bytes&) { return Datagram(); });
  }
  // A router that maps to other numbers.
  static Datagram pcp_router(const Bytes& request) {
    if (!test::is_pcp_map(request)) return {};
    return test::pcp_answer(request, 0, test::inner_port_of(request) + 1000, "198.51.100.9",
                            test::lifetime_of(request));
  }
  static Datagram pmp_router(const Bytes& request) {
    if (test::is_pcp_map(request)) return test::pmp_version_answer();
    if (test::is_pmp_address(request)) return test::pmp_address_answer("198.51.100.9");
    return test::pmp_answer(request, 0, test::inner_port_of(request) + 1000, test::lifetime_of(request));
  }

  TimePoint now{1s};
  MapTalk talk{*ip_bytes("192.168.1.7"), {kPort, kBulk}, 3};
};

TEST_F(MapTalkTest, BothPortsAreMappedByPcp) {
  EXPECT_EQ(run(0s, pcp_router).size(), 2u);
  EXPECT_EQ(talk.mapping(), (Mapping{"PCP", "198.51.100.9", {{kPort, 5700}, {kBulk, 5701}}, ""}));
}

TEST_F(MapTalkTest, ARouterThatSpeaksTheOlderProtocolIsAskedInIt) {
  run(0s, pmp_router);
  EXPECT_EQ(talk.mapping(), (Mapping{"NAT-PMP", "198.51.100.9", {{kPort, 5700}, {kBulk, 5701}}, ""}));
}

TEST_F(MapTalkTest, ARouterThatIsSilentToPcpIsAskedInTheOlderOne) {
  run(3s, [](const Bytes& request) { return test::is_pcp_map(request) ? Datagram() : pmp_router(request); });
  EXPECT_EQ(talk.mapping().by, "NAT-PMP");
}

TEST_F(MapTalkTest, SilenceEndsIt) {
  const auto sent = run_silent(60s);
  EXPECT_TRUE(talk.over());
  EXPECT_EQ(talk.mapping().why, "the router answers neither PCP nor NAT-PMP");
  EXPECT_EQ(sent.size(), 2u * 2 + 3u) << "twice each, then one word thrice in the older protocol";
}

TEST_F(MapTalkTest, ALostAnswerIsAskedForAgain) {
  int heard = 0;
  run(1s, [&](const Bytes& request) { return ++heard <= 2 ? Datagram() : pcp_router(request); });
  EXPECT_EQ(talk.mapping().by, "PCP");
}

TEST_F(MapTalkTest, ARefusalIsSaid) {
  run(0s, [](const Bytes& request) { return test::pcp_answer(request, 2, 0, "0.0.0.0", 30); });
  EXPECT_TRUE(talk.over());
  EXPECT_EQ(talk.mapping().why, "the router refuses to map ports (PCP code 2)");
  EXPECT_TRUE(talk.mapping().ports.empty());
}

TEST_F(MapTalkTest, WhoeverIsNotAskedMapsNothing) {
  const auto forged = [](const Bytes& request) {  // does not know the nonce
    Datagram answer = pcp_router(request);
    answer[24] ^= 1;
    return answer;
  };
  run(100ms, forged);
  EXPECT_FALSE(talk.mapping().settled());
  run(100ms, [](const Bytes& request) {
    Datagram refusal = test::pcp_answer(request, 2, 0, "0.0.0.0", 30);
    refusal[24] ^= 1;
    return refusal;
  });
  EXPECT_FALSE(talk.over());
  run(1s, pcp_router);
  EXPECT_EQ(talk.mapping().by, "PCP") << "the router's own answer counts all the same";
}

TEST_F(MapTalkTest, ItIsRenewedAtHalfOfTheLifetimeWithTheSameNonces) {
  const auto first = run(0s, pcp_router);
  const auto lasting = Duration(std::chrono::seconds(MapTalk::kLifetimeSeconds));
  EXPECT_TRUE(run(lasting / 2 - 1s, pcp_router).empty());
  const auto again = run(1s, pcp_router);
  ASSERT_EQ(again.size(), 2u);
  EXPECT_TRUE(std::equal(again[0].begin() + 24, again[0].begin() + 36, first[0].begin() + 24));
  EXPECT_EQ(again[0][42] << 8 | again[0][43], 5700) << "what was granted is wished for";
  run(10 * lasting, pcp_router);
  EXPECT_EQ(talk.mapping().by, "PCP");
}

TEST_F(MapTalkTest, ARouterOfAnotherAddressIsFollowed) {
  run(0s, pcp_router);
  run(1000s, [](const Bytes& request) { return test::pcp_answer(request, 0, 5900, "198.51.100.77", 1200); });
  EXPECT_EQ(talk.mapping().host, "198.51.100.77");
  EXPECT_EQ(talk.mapping().ports.at(kPort), 5900);
}

TEST_F(MapTalkTest, ARouterThatFellSilentIsBelievedUntilTheLifetimeIsOver) {
  run(0s, pcp_router);
  const auto lasting = Duration(std::chrono::seconds(MapTalk::kLifetimeSeconds));
  run_silent(lasting - 10s);
  EXPECT_EQ(talk.mapping().by, "PCP");
  run_silent(15s);
  EXPECT_TRUE(talk.over());
  EXPECT_EQ(talk.mapping().why, "the router does not answer any more");
}

TEST_F(MapTalkTest, ARouterBehindAnotherOneIsOfNoUse) {
  const auto sent = run(1s, [](const Bytes& request) {
    return test::pcp_answer(request, 0, test::inner_port_of(request), "100.64.3.4", test::lifetime_of(request));
  });
  EXPECT_TRUE(talk.over());
  EXPECT_EQ(talk.mapping().why, "the router's own address, 100.64.3.4, is private");
  EXPECT_EQ(sent.size(), 4u) << "and what it mapped is given back";
  EXPECT_EQ(test::lifetime_of(sent.back()), 0u);
}

TEST_F(MapTalkTest, ItIsGivenBackAtTheEnd) {
  for (const bool pcp : {true, false}) {
    SCOPED_TRACE(pcp);
    const auto router = pcp ? pcp_router : pmp_router;
    talk = MapTalk(*ip_bytes("192.168.1.7"), {kPort, kBulk}, 4);
    run(0s, router);
    talk.leave(now);
    const auto sent = run(0s, router);
    ASSERT_EQ(sent.size(), 2u);
    for (const Datagram& word : sent) EXPECT_EQ(test::lifetime_of(word), 0u);
    EXPECT_TRUE(talk.over());
  }
}

TEST_F(MapTalkTest, WhatWasNeverMappedIsNotGivenBack) {
  run_silent(100ms);
  talk.leave(now);
  EXPECT_TRUE(talk.over());
}

TEST_F(MapTalkTest, NobodyThereEndsItAtOnce) {
  run_silent(0s);
  talk.on_refused();
  EXPECT_TRUE(talk.over());
  EXPECT_EQ(talk.mapping().why, "the router speaks neither PCP nor NAT-PMP");
}

TEST_F(MapTalkTest, ALaterTalkAsksWithTheSameNonces) {
  const auto first = run(0s, pcp_router);
  talk = MapTalk(*ip_bytes("192.168.1.7"), {kPort, kBulk}, 3);
  EXPECT_EQ(run(0s, pcp_router), first) << "else a router refuses to change what it has (RFC 6887, 11.3)";
}

TEST_F(MapTalkTest, AnErrorAtARenewalTakesNothingBack) {
  run(0s, pcp_router);
  const auto lasting = Duration(std::chrono::seconds(MapTalk::kLifetimeSeconds));
  run(lasting * 3 / 4, [](const Bytes& request) { return test::pcp_answer(request, 7, 0, "0.0.0.0", 30); });
  EXPECT_EQ(talk.mapping().by, "PCP");
  run(lasting / 4 - 5s, pcp_router);
  EXPECT_EQ(talk.mapping().by, "PCP");
  run(lasting, [](const Bytes& request) {
    return test::pcp_answer(request, 0, test::inner_port_of(request), "100.64.1.1", test::lifetime_of(request));
  });
  EXPECT_NE(talk.mapping().host, "100.64.1.1") << "it has lost its line";
}

TEST_F(MapTalkTest, WhatWasGrantedInPartIsGivenBack) {
  const auto sent = run(1s, [this](const Bytes& request) {
    if (test::inner_port_of(request) == kBulk) return test::pcp_answer(request, 8, 0, "0.0.0.0", 30);
    return pcp_router(request);
  });
  EXPECT_TRUE(talk.over());
  EXPECT_EQ(talk.mapping().why, "the router has no port left (PCP code 8)");
  const auto given_back = [](const Datagram& word) { return test::lifetime_of(word) == 0; };
  EXPECT_TRUE(std::ranges::any_of(sent, given_back));
}

TEST_F(MapTalkTest, ALateGrantIsNoAnswerToAFarewell) {
  run(0s, pcp_router);
  talk.leave(now);
  bool late = true;
  const auto sent = run(2s, [&](const Bytes& request) {
    if (!std::exchange(late, false)) return pcp_router(request);
    return test::pcp_answer(request, 0, 5700, "198.51.100.9", 1200);
  });
  EXPECT_EQ(sent.size(), 3u) << "it is asked again";
}

TEST_F(MapTalkTest, NonsenseIsDropped) {
  Rng rng(7);
  run(3s, [&](const Bytes& request) {
    Datagram noise(rng.below(80));
    for (auto& byte : noise) byte = static_cast<std::uint8_t>(rng.below(256));
    talk.take(noise, now);
    talk.take(request, now);
    return Datagram();
  });
  EXPECT_TRUE(talk.mapping().by.empty());
}

}  // namespace
}  // namespace shoal
