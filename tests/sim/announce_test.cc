// What the directory is told of a peer that joined, and when.
#include <gtest/gtest.h>

#include "runtime/peer/announcing.h"
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
  std::vector<std::pair<TimePoint, std::string>> withdrawn;

  void announce(std::string signed_record, std::string) override {
    announced.push_back({loop->now(), std::move(signed_record)});
  }
  void withdraw(const std::string& key) override { withdrawn.emplace_back(loop->now(), key); }
  void look_up_stage(StageId, Duration, std::function<void(std::vector<PeerRecord>)>) override {}
  void look_up_run(Duration, std::function<void(Result<RunRecord>)>) override {}
  void look_up_standing(std::uint16_t, Duration, std::function<void(Result<StandingRecord>)>) override {}
  void offer(const std::vector<std::string>&) override {}
  std::vector<std::string> known(std::size_t) const override { return {}; }
  bool alive() const override { return true; }
};

std::vector<PeerRecord> records_of(const RecordingDirectory& directory, const Swarm& swarm, const PeerId& peer) {
  std::vector<PeerRecord> records;
  for (const auto& one : directory.announced) {
    auto record = parse_peer_record(one.text, swarm.launch()->authority().members().run);
    EXPECT_TRUE(record.ok());
    if (record.ok() && record->peer == peer) records.push_back(*std::move(record));
  }
  return records;
}

TEST(AnnounceTest, APeerIsThereBeforeItServesAndItsLastRecordSaysThatItGoes) {
  RecordingDirectory directory;
  SwarmOptions options;
  options.directory = &directory;
  options.config = small_config(RuleId::kDiloco, options.stages, 100'000);
  Swarm swarm(std::move(options));
  directory.loop = &swarm.loop();
  swarm.run_for(10s);
  const auto& peer = *swarm.peers()[0];
  auto records = records_of(directory, swarm, peer.key.id());
  ASSERT_GT(records.size(), 1u);
  EXPECT_FALSE(records.front().serving);
  EXPECT_TRUE(records.back().serving);
  peer.peer->leave();
  peer.peer->leave();
  swarm.run_for(1s);
  records = records_of(directory, swarm, peer.key.id());
  EXPECT_FALSE(records.back().serving);
  const auto last = std::find_if(directory.announced.rbegin(), directory.announced.rend(), [&](const auto& one) {
    return parse_peer_record(one.text, records.back().run)->sequence == records.back().sequence &&
           parse_peer_record(one.text, records.back().run)->peer == peer.key.id();
  });
  ASSERT_EQ(directory.withdrawn.size(), 1u);
  EXPECT_GT(directory.withdrawn[0].first, last->when) << "the last record must get there first";
}

TEST(AnnounceTest, ARestartedProcessIsBelievedAtOnce) {
  RecordingDirectory directory;
  SwarmOptions options;
  options.directory = &directory;
  options.config = small_config(RuleId::kDiloco, options.stages, 100'000);
  Swarm swarm(std::move(options));
  directory.loop = &swarm.loop();
  const PeerId peer = swarm.peers()[0]->key.id();
  std::size_t before = 0;
  for (int life = 0; life < 4; ++life) {
    while (records_of(directory, swarm, peer).size() < before + 3 && swarm.loop().now() < TimePoint{} + 120s)
      swarm.run_for(100ms);
    const auto records = records_of(directory, swarm, peer);
    ASSERT_GE(records.size(), before + 3);
    for (std::size_t i = std::max<std::size_t>(1, before); i < records.size(); ++i)
      EXPECT_GT(records[i].sequence, records[i - 1].sequence) << "life " << life;
    before = records.size();
    swarm.restart_peer(0);
  }
}

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
    if (!first_rate && peer.peer->report().figures.rate > 0) first_rate = swarm.loop().now();
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
  EXPECT_LE(told([](const PeerRecord& record) { return record.figures.rate > 0; }), *first_rate + 200ms);
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
