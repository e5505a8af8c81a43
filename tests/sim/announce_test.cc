// What the directory is told of a peer that joined, and when.
#include <gtest/gtest.h>

#include "runtime/announce_pace.h"
#include "sim/swarm.h"

namespace shoal {
namespace {

// Keeps what is announced, with the time.
class RecordingDirectory final : public PeerDirectory {
 public:
  struct Announced {
    TimePoint when;
    std::string text;
  };
  const SimLoop* loop = nullptr;
  std::vector<Announced> announced;

  void announce(std::string signed_record, std::string) override {
    announced.push_back({loop->now(), std::move(signed_record)});
  }
  void withdraw(const std::string&) override {}
  void look_up_stage(StageId, Duration, std::function<void(std::vector<PeerRecord>)>) override {}
  void look_up_run(Duration, std::function<void(Result<RunRecord>)>) override {}
  void offer(const std::vector<std::string>&) override {}
  std::vector<std::string> known(std::size_t) const override { return {}; }
  bool alive() const override { return true; }
};

TEST(AnnounceTest, VersionAndRateOfANewPeerStandThereAsSoonAsItHasThem) {
  RecordingDirectory directory;
  SwarmOptions options;
  options.directory = &directory;
  options.config = small_config(RuleId::kDiloco, options.stages, 100'000);
  Swarm swarm(std::move(options));
  directory.loop = &swarm.loop();
  std::optional<TimePoint> first_version, first_rate;
  const auto& peer = *swarm.peers()[0];
  while (!(first_version && first_rate) && swarm.loop().now() < TimePoint{} + 60s) {
    swarm.run_for(10ms);
    const StagePeerStatus status = peer.peer->report().status;
    if (!first_version && status.version.value > 0) first_version = swarm.loop().now();
    if (!first_rate && status.rate > 0) first_rate = swarm.loop().now();
  }
  ASSERT_TRUE(first_version && first_rate);
  const TimePoint measured = swarm.loop().now();
  swarm.run_for(60s);
  std::vector<std::pair<TimePoint, PeerRecord>> records;
  for (const auto& one : directory.announced) {
    const auto record = parse_peer_record(one.text, swarm.launch()->authority().members().run);
    ASSERT_TRUE(record.ok()) << record.error().message;
    if (record->peer == peer.key.id()) records.emplace_back(one.when, *record);
  }
  ASSERT_GT(records.size(), 2u);
  EXPECT_EQ(records.front().second.version, Version(0));
  const auto told = [&](auto says) {
    for (const auto& [when, record] : records)
      if (says(record)) return when;
    return TimePoint::max();
  };
  EXPECT_LE(told([](const PeerRecord& record) { return record.version.value > 0; }), *first_version + 200ms);
  EXPECT_LE(told([](const PeerRecord& record) { return record.rate > 0; }), *first_rate + 200ms);
  // After that no more often than it should be.
  std::optional<TimePoint> before;
  for (const auto& [when, record] : records) {
    if (before) {
      EXPECT_GE(when - *before, AnnouncePace::kPause);
    }
    if (when > measured + 200ms) before = when;
  }
  EXPECT_TRUE(before.has_value());
}

}  // namespace
}  // namespace shoal
