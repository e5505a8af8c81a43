// A joiner whose fetch takes longer than many rounds gets in, whatever becomes of those it fetches from.
#include <gtest/gtest.h>

#include "sim/checkers.h"
#include "sim/swarm.h"
#include "stages/paced_executor.h"
#include "tests/quiet_log.h"

namespace shoal {
namespace {

constexpr std::size_t kFloats = 2u << 20;  // 8 MiB an array: 16 MiB of state under diloco, 24 under allreduce

class JoiningTest : public Quiet<testing::TestWithParam<RuleId>> {
 protected:
  // One stage; a round takes about a second.
  static SwarmOptions options(std::uint16_t replicas) {
    SwarmOptions options;
    options.stages = 1;
    options.replicas = replicas;
    options.config = small_config(GetParam(), 1, 1'000'000);
    options.config.executor = {.kind = ExecutorKind::kPaced, .state_mib = (kFloats * sizeof(float)) >> 20};
    options.config.pipeline.in_flight = 12;
    options.pace.forward = 60ms;
    options.pace.backward = 90ms;
    options.factory = [](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
      return {std::make_unique<PacedExecutor>(spec, Pace{}, Wait{}, kFloats)};
    };
    return options;
  }
  static std::uint64_t image_bytes() { return (1 + traits_of(GetParam()).shared_arrays) * kFloats * sizeof(float); }
  static PeerReport report(const Swarm& swarm, std::size_t peer) { return swarm.peers()[peer]->peer->report(); }
  static std::uint64_t version_of(const Swarm& swarm, std::size_t peer) {
    return report(swarm, peer).status.version.value;
  }
  static bool serves(const Swarm& swarm, std::size_t peer) { return report(swarm, peer).phase == PeerPhase::kServing; }
  static bool run_until(Swarm& swarm, Duration limit, const std::function<bool()>& holds) {
    for (const TimePoint end = swarm.loop().now() + limit; swarm.loop().now() < end; swarm.run_for(50ms))
      if (holds()) return true;
    return holds();
  }
  static void boot(Swarm& swarm) {
    ASSERT_TRUE(run_until(swarm, 60s, [&] { return version_of(swarm, 0) >= 2; }));
  }
  // Its line carries the state in so many seconds.
  static std::size_t add_slow(Swarm& swarm, double seconds) {
    const std::size_t peer = swarm.add_peer();
    SimHostShape slow = swarm.options().shape;
    slow.down_bytes_per_second = static_cast<double>(image_bytes()) / seconds;
    swarm.network().set_shape(swarm.peers()[peer]->address, slow);
    return peer;
  }
  static std::size_t told(const Swarm& swarm, std::size_t peer, std::string_view words) {
    const auto& notices = swarm.peers()[peer]->notices;
    return static_cast<std::size_t>(std::count_if(notices.begin(), notices.end(), [&](const std::string& line) {
      return line.find(words) != std::string::npos;
    }));
  }
  static std::string story(const Swarm& swarm, std::size_t peer) {
    std::string text = "phase " + std::string(name_of(report(swarm, peer).phase)) + ", " + report(swarm, peer).reason;
    for (const std::string& line : swarm.peers()[peer]->notices) text += "\n" + line;
    return text;
  }
  static bool counted(const Swarm& swarm, std::size_t peer) {
    const Session session = swarm.peers()[peer]->peer->session();
    return std::any_of(swarm.events().begin(), swarm.events().end(),
                       [&](const SimEvent& e) { return e.event == EventKind::kCounted && e.writer == session; });
  }
  // It works, and everything is counted once. Rounds of whole numbers travel uncoded, and the line that carries a state
  // in ten of them carries none of them in time: it is a better one from now on.
  static void end_well(Swarm& swarm, std::size_t peer) {
    for (const auto& each : swarm.peers()) swarm.network().set_shape(each->address, swarm.options().shape);
    EXPECT_TRUE(run_until(swarm, 120s, [&] { return counted(swarm, peer); })) << story(swarm, peer);
    EXPECT_EQ(report(swarm, peer).sessions, 1u) << story(swarm, peer);
    EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
    swarm.finish_launch("enough");
    ASSERT_TRUE(swarm.run_to_end(300s));
    EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
  }
};

TEST_P(JoiningTest, AJoinerWhoseFetchTakesTenRoundsGetsIn) {
  Swarm swarm(options(2));
  boot(swarm);
  const std::size_t joiner = add_slow(swarm, 16);
  const std::uint64_t before = version_of(swarm, 0);
  ASSERT_TRUE(run_until(swarm, 60s, [&] { return told(swarm, joiner, "is here, and version") > 0; }))
      << story(swarm, joiner);
  EXPECT_GE(version_of(swarm, 0), before + 10) << "rounds went on meanwhile";
  ASSERT_TRUE(run_until(swarm, 60s, [&] { return serves(swarm, joiner); })) << story(swarm, joiner);
  EXPECT_EQ(told(swarm, joiner, "is here, and version"), 1u) << "the stage's next round waited for the second fetch";
  end_well(swarm, joiner);
}

// A state of 4 GiB, a line of 20 Mbit/s and a round a minute are such a ratio.
TEST_P(JoiningTest, AndSoDoesOneWhoseFetchTakesThirty) {
  Swarm swarm(options(2));
  boot(swarm);
  const std::size_t joiner = add_slow(swarm, 36);
  const std::uint64_t before = version_of(swarm, 0);
  ASSERT_TRUE(run_until(swarm, 300s, [&] { return serves(swarm, joiner); })) << story(swarm, joiner);
  EXPECT_GE(version_of(swarm, 0), before + 25);
  end_well(swarm, joiner);
}

// A chunk takes longer than the membership time.
TEST_P(JoiningTest, AndSoDoesOneWhoseLineIsLongAboutAChunk) {
  static constexpr std::size_t kFew = 1u << 18;  // an array is a chunk
  SwarmOptions few = options(2);
  few.config.executor.state_mib = 1;
  few.factory = [](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
    return {std::make_unique<PacedExecutor>(spec, Pace{}, Wait{}, kFew)};
  };
  Swarm swarm(few);
  boot(swarm);
  const std::size_t joiner = swarm.add_peer();
  SimHostShape slow = few.shape;
  slow.down_bytes_per_second = (1 << 20) / (1.2 * seconds_of(few.config.membership()));
  swarm.network().set_shape(swarm.peers()[joiner]->address, slow);
  ASSERT_TRUE(run_until(swarm, 60s, [&] { return told(swarm, joiner, "is here, and version") > 0; }))
      << story(swarm, joiner);
  ASSERT_TRUE(run_until(swarm, 60s, [&] { return serves(swarm, joiner); })) << story(swarm, joiner);
  end_well(swarm, joiner);
}

TEST_P(JoiningTest, WhatIsHereStaysWhenADonorDiesHalfWay) {
  Swarm swarm(options(3));
  boot(swarm);
  const std::size_t joiner = add_slow(swarm, 16);
  ASSERT_TRUE(run_until(swarm, 60s, [&] { return report(swarm, joiner).fetched_bytes >= image_bytes() / 2; }))
      << story(swarm, joiner);
  const std::uint64_t here = report(swarm, joiner).fetched_bytes;
  swarm.kill_peer(0);
  while (told(swarm, joiner, "is here, and version") == 0 && !serves(swarm, joiner)) {
    ASSERT_GE(report(swarm, joiner).fetched_bytes, here) << "nothing of it is fetched again";
    swarm.run_for(50ms);
  }
  ASSERT_TRUE(run_until(swarm, 120s, [&] { return serves(swarm, joiner); })) << story(swarm, joiner);
  end_well(swarm, joiner);
}

// Nobody keeps an image for a fetcher that does not ask.
TEST_P(JoiningTest, AnImageThatIsGoneIsFollowedByTheNewest) {
  Swarm swarm(options(2));
  boot(swarm);
  const std::size_t joiner = add_slow(swarm, 16);
  ASSERT_TRUE(run_until(swarm, 60s, [&] { return report(swarm, joiner).fetched_bytes >= image_bytes() / 2; }));
  for (const std::size_t donor : {0u, 1u})
    swarm.network().partition(swarm.peers()[donor]->address, swarm.peers()[joiner]->address);
  swarm.run_for(20s);
  for (const std::size_t donor : {0u, 1u})
    swarm.network().partition(swarm.peers()[donor]->address, swarm.peers()[joiner]->address, false);
  ASSERT_TRUE(run_until(swarm, 200s, [&] { return serves(swarm, joiner); })) << story(swarm, joiner);
  end_well(swarm, joiner);
}

TEST_P(JoiningTest, TwoThatJoinAtATimeShareAnImage) {
  Swarm swarm(options(2));
  boot(swarm);
  const std::size_t one = add_slow(swarm, 16), other = add_slow(swarm, 16);
  ASSERT_TRUE(run_until(swarm, 200s, [&] { return serves(swarm, one) && serves(swarm, other); }))
      << story(swarm, one) << "\n"
      << story(swarm, other);
  EXPECT_EQ(report(swarm, other).sessions, 1u);
  end_well(swarm, one);
}

INSTANTIATE_TEST_SUITE_P(Rules, JoiningTest, testing::Values(RuleId::kAllreduce, RuleId::kDiloco),
                         [](const auto& rule) { return rule.param == RuleId::kDiloco ? "diloco" : "allreduce"; });

}  // namespace
}  // namespace shoal
