#include "runtime/peer/announcing.h"

#include <gtest/gtest.h>

#include <utility>

#include "dht/record.h"
#include "sim/sim_loop.h"

namespace shoal {
namespace {

class RecordingDirectory final : public PeerDirectory {
 public:
  std::vector<std::pair<std::string, std::string>> announced;  // record, key
  std::vector<std::string> withdrawn, offered;

  void announce(std::string signed_record, std::string key) override {
    announced.emplace_back(std::move(signed_record), std::move(key));
  }
  void withdraw(const std::string& key) override { withdrawn.push_back(key); }
  void look_up_stage(StageId, Duration, std::function<void(std::vector<PeerRecord>)>) override {}
  void look_up_run(Duration, std::function<void(Result<RunRecord>)>) override {}
  void look_up_standing(std::uint16_t, Duration, std::function<void(Result<StandingRecord>)>) override {}
  void offer(const std::vector<std::string>& records) override { offered = records; }
  std::vector<std::string> known(std::size_t limit) const override { return {std::to_string(limit)}; }
  bool alive() const override { return true; }
};

class AnnouncingTest : public testing::Test {
 protected:
  KeyPair key_ = KeyPair::from_seed({1});
  RunId run_ = RunId{KeyPair::from_seed({2}).id().bytes};
  SimLoop loop_;
  RecordingDirectory directory_;
  Announcing announcing_{&directory_, loop_, key_, run_, Whereabouts{{"192.0.2.1:4700"}}};
  Announcing::Facts facts_{.session = Session::of(key_.id(), 5), .stage = StageId(2), .version = Version(3)};

  PeerRecord newest() const { return parse_peer_record(directory_.announced.back().first, run_).value(); }
};

TEST_F(AnnouncingTest, ARecordSaysWhereWeAreAndIsSignedByOurKey) {
  facts_.figures.rate = 80;
  facts_.figures.queue_seconds = 0.5;
  facts_.serving = true;
  announcing_.announce(facts_);
  ASSERT_EQ(directory_.announced.size(), 1u);
  const PeerRecord record = newest();
  EXPECT_EQ(record.peer, key_.id());
  EXPECT_EQ(record.session, facts_.session);
  EXPECT_EQ(record.stage, StageId(2));
  EXPECT_EQ(record.version, Version(3));
  EXPECT_EQ(record.whereabouts.addresses, std::vector<std::string>{"192.0.2.1:4700"});
  EXPECT_TRUE(record.serving);
  EXPECT_EQ(directory_.announced.back().second, stage_key(run_, StageId(2)));
  announcing_.withdraw(StageId(2));
  EXPECT_EQ(directory_.withdrawn, std::vector<std::string>{stage_key(run_, StageId(2))});
}

TEST_F(AnnouncingTest, ARecordSaysWhatThisMachineLendsAndHowMuchItSends) {
  facts_.figures.device = "cuda:0";
  facts_.figures.memory_bytes = 3ull << 30;
  facts_.figures.activation_codec = "int8";
  facts_.figures.rtt_ms = 35;
  facts_.figures.sent_bytes = 5'000'000;
  announcing_.announce(facts_);
  EXPECT_EQ(newest().figures.sent_rate, 0u) << "since when is not known yet";
  loop_.run_for(10s);
  facts_.figures.sent_bytes += 1'000'000;
  facts_.figures.received_bytes += 2'000'000;
  announcing_.announce(facts_);
  EXPECT_EQ(newest().figures.device, "cuda:0");
  EXPECT_EQ(newest().figures.memory_bytes, 3ull << 30);
  EXPECT_EQ(newest().figures.activation_codec, "int8");
  EXPECT_EQ(newest().figures.gradient_codec, "") << "it sends none";
  EXPECT_DOUBLE_EQ(newest().figures.rtt_ms, 35);
  EXPECT_EQ(newest().figures.sent_rate, 100'000u);
  EXPECT_EQ(newest().figures.got_rate, 200'000u);
}

TEST_F(AnnouncingTest, EachRecordReplacesTheOneBeforeAlsoWithinAMillisecond) {
  announcing_.announce(facts_);
  const std::uint64_t first = newest().sequence;
  announcing_.announce(facts_);
  EXPECT_GT(newest().sequence, first);
}

TEST_F(AnnouncingTest, KeepsItsPaceAndANewSessionBeginsItAnew) {
  announcing_.announce_if_due(facts_);
  announcing_.announce_if_due(facts_);
  EXPECT_EQ(directory_.announced.size(), 1u);
  announcing_.begin_session();
  announcing_.announce_if_due(facts_);
  EXPECT_EQ(directory_.announced.size(), 2u);
  loop_.run_for(AnnouncePace::kPeriod);
  announcing_.announce_if_due(facts_);
  EXPECT_EQ(directory_.announced.size(), 3u);
}

TEST_F(AnnouncingTest, PeersAreAskedForRecordsEveryTwentySecondsAndAtOnceOverANewLink) {
  EXPECT_TRUE(announcing_.take_exchange());
  EXPECT_FALSE(announcing_.take_exchange());
  announcing_.exchange_soon();
  EXPECT_TRUE(announcing_.take_exchange());
  loop_.run_for(Announcing::kExchangePeriod - 1ms);
  EXPECT_FALSE(announcing_.take_exchange());
  loop_.run_for(1ms);
  EXPECT_TRUE(announcing_.take_exchange());
  EXPECT_EQ(announcing_.known(), std::vector<std::string>{"64"});
  announcing_.offer({"a", "b"});
  EXPECT_EQ(directory_.offered, (std::vector<std::string>{"a", "b"}));
}

TEST_F(AnnouncingTest, WithoutADirectoryNothingIsDoneAndNobodyIsAsked) {
  Announcing alone(nullptr, loop_, key_, run_, Whereabouts{{"192.0.2.1:4700"}});
  alone.announce(facts_);
  alone.announce_if_due(facts_);
  alone.withdraw(StageId(2));
  alone.offer({"a"});
  EXPECT_FALSE(alone.take_exchange());
  EXPECT_FALSE(alone.known().has_value());
}

}  // namespace
}  // namespace shoal
