// Activations as differences to what both ends hold, in whole swarms: samples that come again, bases that a receiver
// lacks, peers that die between the question for a key frame and the answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sim/checkers.h"
#include "sim/difference_codec.h"
#include "sim/liveness.h"
#include "sim/swarm.h"
#include "tests/quiet_log.h"

namespace shoal {
namespace {

// Of every other delta the base turns out to be lost, by whomever it is sent to.
class Forgetful final : public DifferenceCodec {
 public:
  Status decode(ByteView frame, const BaseView* base, PlacedBytes out) const override {
    const bool forgets = base != nullptr && base->hash % 2 == 0;
    // The peer that makes a frame reads it first.
    if (forgets && !made_.insert(crc32c(frame)).second) return make_error(ErrorCode::kGone, "forgotten");
    return DifferenceCodec::decode(frame, base, out);
  }

 private:
  mutable std::set<std::uint32_t> made_;
};

SwarmOptions options_with(const DeltaCodecs& deltas, RuleId rule, std::uint64_t microbatches) {
  SwarmOptions options;
  options.seed = 5;
  options.stages = 3;
  options.config = small_config(rule, 3, microbatches);
  options.deltas = deltas;
  return options;
}

std::size_t count(const Swarm& swarm, EventKind event) {
  return static_cast<std::size_t>(std::count_if(swarm.events().begin(), swarm.events().end(),
                                                [&](const EventRecord& record) { return record.event == event; }));
}

BaseCounters bases_of(Swarm& swarm) {
  BaseCounters all;
  for (const auto& process : swarm.peers()) {
    const BaseCounters one = process->peer->report().status.bases;
    all.deltas += one.deltas;
    all.keys += one.keys;
    all.lacking += one.lacking;
    all.no_room += one.no_room;
    all.bytes += one.bytes;
  }
  return all;
}

class KeyFrameTest : public Quiet<testing::TestWithParam<RuleId>> {
 protected:
  static constexpr std::uint64_t kBoundaries = 2, kSamples = 58;  // training samples of the simulated text
};

TEST_P(KeyFrameTest, ASampleThatComesAgainCrossesAsADifference) {
  constexpr std::uint64_t kEpochs = 6;
  Swarm swarm(options_with(exact_deltas(), GetParam(), (kEpochs + 2) * kSamples));
  while (swarm.launch()->summary().committed < kEpochs * kSamples) {
    ASSERT_LT(swarm.loop().now(), TimePoint(600s));
    swarm.run_for(20ms);
  }
  const BaseCounters bases = bases_of(swarm);
  EXPECT_GE(bases.deltas + bases.keys, kEpochs * kSamples * kBoundaries);
  const auto again = static_cast<double>((kEpochs - 1) * kSamples * kBoundaries);
  EXPECT_GT(static_cast<double>(bases.deltas), 0.5 * again) << bases.keys << " key frames";
  EXPECT_LE(static_cast<double>(bases.lacking), 0.02 * again) << "one of a sample that is under way twice";
  ASSERT_TRUE(swarm.run_to_end(600s));
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{}) << "every number arrived as it was sent";
}

TEST_P(KeyFrameTest, AFrameWithoutItsBaseIsSentAgainAsAKeyFrameInTheSameBranch) {
  const Forgetful forgetful;
  Swarm swarm(options_with({&codec_for(CodecId::kRaw), &forgetful}, GetParam(), 4 * kSamples));
  ASSERT_TRUE(swarm.run_to_end(600s));
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
  EXPECT_EQ(swarm.summary().lost, 0u);
  EXPECT_EQ(count(swarm, EventKind::kHopTimer), 0u);
  EXPECT_GT(count(swarm, EventKind::kNeedKeyFrame), 20u);
  EXPECT_EQ(count(swarm, EventKind::kKeyFrame), count(swarm, EventKind::kNeedKeyFrame));
}

TEST_P(KeyFrameTest, CountsOnceThoughPeersDieBetweenTheQuestionAndTheKeyFrame) {
  const Forgetful forgetful;
  Swarm swarm(options_with({&codec_for(CodecId::kRaw), &forgetful}, GetParam(), 900));
  std::size_t asked = 0, killed = 0;
  for (const std::uint16_t stage : {0, 1, 2}) {
    const TimePoint give_up = swarm.loop().now() + 120s;
    for (const std::size_t before = asked; asked == before && !swarm.finished();) {
      swarm.run_for(1ms);
      asked = count(swarm, EventKind::kNeedKeyFrame);
      ASSERT_LT(swarm.loop().now(), give_up) << ::testing::PrintToString(waits_for_graph(swarm));
    }
    if (swarm.finished()) break;
    std::size_t victim = 0;  // of two as a rule: the other one holds the anchor
    while (victim < 5 && swarm.peers()[victim]->peer->report().stage != StageId(stage)) ++victim;
    swarm.kill_peer(victim);
    ++killed;
    swarm.run_for(2s);
    swarm.restart_peer(victim);
    swarm.run_for(1s);
    asked = count(swarm, EventKind::kNeedKeyFrame);
  }
  EXPECT_EQ(killed, 3u);
  ASSERT_TRUE(swarm.run_to_end(900s));
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Rules, KeyFrameTest, testing::Values(RuleId::kAllreduce, RuleId::kDiloco));

}  // namespace
}  // namespace shoal
