#include "dht/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/sim_directory.h"
#include "sim/sim_loop.h"
#include "tests/dht/records.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;

class InspectTest : public ::testing::Test {
 protected:
  std::unique_ptr<DhtDirectory> make(std::uint64_t seed) {
    DhtDirectoryOptions options;
    options.run = run_of(run_);
    options.seed = seed;
    return make_sim_directory(dht_, loop_, nullptr, std::move(options));
  }
  void announce(const KeyPair& peer, std::uint16_t stage, double rate, bool serving = true) {
    PeerRecord record = peer_record(run_, peer, stage, 1, loop_.wall());
    record.rate = rate;
    record.serving = serving;
    source_->announce(packed(record, peer), stage_key(record.run, record.stage));
    sources_.push_back(std::move(source_));
    source_ = make(sources_.size() + 10);
    loop_.run_for(1s);
  }
  void announce_run() { announce_run(run_record(run_, 1, loop_.wall())); }
  void announce_run(const RunRecord& record) {
    source_->announce(packed(record, run_), run_key_name(run_of(run_)));
    loop_.run_for(1s);
  }
  RunReport report() {
    auto directory = make(99);
    std::optional<RunReport> out;
    InspectOptions options;
    options.run = run_of(run_);
    options.network = 1397;
    options.counters = [&] { return directory->counters(); };
    inspect_run(*directory, loop_, options, [&](RunReport r) { out = std::move(r); });
    EXPECT_TRUE(loop_.run_until_true([&] { return out.has_value(); }, loop_.now() + 11s));
    return out.value_or(RunReport());
  }
  const KeyPair run_ = key_of_number(1), ann_ = key_of_number(2), ben_ = key_of_number(3), cid_ = key_of_number(4);
  SimLoop loop_{kTestWall};
  SimDht dht_{loop_, 1};
  std::unique_ptr<DhtDirectory> source_ = make(10);
  std::vector<std::unique_ptr<DhtDirectory>> sources_;
};

TEST_F(InspectTest, JsonSaysWhatTheRecordsSay) {
  announce(ann_, 0, 100);
  announce(ben_, 1, 50);
  announce_run();
  const auto json = nlohmann::json::parse(json_of(report()));
  EXPECT_EQ(json["schema"], "shoal.inspect/1");
  EXPECT_EQ(json["run"], hex_of(run_of(run_)));
  EXPECT_EQ(json["record"]["name"], "tide pool");
  EXPECT_EQ(json["record"]["signature"], "ok");
  ASSERT_EQ(json["stages"].size(), 4u);
  const auto& peer = json["stages"][0]["peers"][0];
  EXPECT_EQ(peer["peer"], hex_of(ann_.id()));
  EXPECT_EQ(peer["addresses"][0], "198.51.100.7:7741");
  EXPECT_EQ(peer["rate"], 100.0);
  EXPECT_EQ(peer["version"], 18);
  EXPECT_EQ(peer["incarnation"], "0123456789abcdef");
  EXPECT_EQ(peer["state"], "serving");
  EXPECT_EQ(peer["signature"], "ok");
  EXPECT_NEAR(peer["age_s"].get<double>(), 3.0, 1.5);
  EXPECT_EQ(json["stages"][2]["peers"].size(), 0u);
  EXPECT_EQ(json["weakest_stage"], 2);
}

TEST_F(InspectTest, TheWeakestStageHasFewestServingPeersThenLeastRate) {
  announce_run();
  for (std::uint16_t k = 0; k < 4; ++k)
    announce(key_of_number(static_cast<std::uint8_t>(20 + k)), k, k == 2 ? 10 : 100);
  EXPECT_EQ(report().weakest, StageId(2));
  announce(ann_, 2, 10);
  announce(ben_, 0, 10);
  announce(cid_, 1, 10, false);  // joining: does not count
  EXPECT_EQ(report().weakest, StageId(1));
}

TEST_F(InspectTest, TheTableNamesWhatAPersonMustKnow) {
  announce(ann_, 0, 6100);
  announce_run();
  const std::string table = table_of(report());
  EXPECT_THAT(table, HasSubstr(short_name(ann_.id())));
  EXPECT_THAT(table, HasSubstr("198.51.100.7:7741"));
  EXPECT_THAT(table, HasSubstr("serving"));
  EXPECT_THAT(table, HasSubstr("6100"));
  EXPECT_THAT(table, HasSubstr("v18"));
  EXPECT_THAT(table, HasSubstr("DHT network 1397"));
  EXPECT_THAT(table, HasSubstr("stage 1 has no serving peer: the run is parked"));
}

// The only peer of a stage dies: its record says for a minute that it serves.
TEST_F(InspectTest, AStageWhoseOnlyPeerDiedIsParkedAsSoonAsTheLaunchingProcessTellsIt) {
  for (std::uint16_t k = 0; k < 4; ++k) announce(key_of_number(static_cast<std::uint8_t>(20 + k)), k, 100);
  RunRecord record = run_record(run_, 1, loop_.wall());
  record.serving = {1, 1, 0, 1};
  record.parked_since = loop_.wall() - 4s;
  announce_run(record);
  const RunReport found = report();
  EXPECT_EQ(found.weakest, StageId(2));
  EXPECT_EQ(found.stages[2].serving, 0u);
  const std::string table = table_of(found);
  EXPECT_THAT(table, HasSubstr("silent"));
  EXPECT_THAT(table, testing::ContainsRegex("stage 2 has no serving peer since [0-9]+ s: the run is parked"));
  EXPECT_EQ(nlohmann::json::parse(json_of(found))["stages"][2]["peers"][0]["state"], "silent");
}

TEST_F(InspectTest, AStageThatCannotReachTheNextIsNamedWithBothSides) {
  announce(ann_, 0, 100);
  announce(ben_, 1, 100);
  for (std::uint16_t k = 2; k < 4; ++k) announce(key_of_number(static_cast<std::uint8_t>(20 + k)), k, 100);
  RunRecord record = run_record(run_, 1, loop_.wall());
  record.serving = {1, 1, 1, 1};
  record.parked_since = loop_.wall() - 4s;
  record.stranded = StageId(0);
  announce_run(record);
  const RunReport found = report();
  EXPECT_THAT(table_of(found),
              testing::ContainsRegex("health: stage 0 \\(" + short_name(ann_.id()) + "\\) cannot reach stage 1 \\(" +
                                     short_name(ben_.id()) + "\\) since [0-9]+ s: the run is parked"));
  EXPECT_EQ(nlohmann::json::parse(json_of(found))["record"]["stranded_stage"], 0);
}

// Records are made anew every 20 s and expire after 60.
TEST_F(InspectTest, APeerThatMissedTwoOfItsOwnRecordsIsSilentAndNotServing) {
  announce(ann_, 0, 100);
  announce_run();
  sources_.clear();
  source_.reset();
  loop_.run_for(46s);
  const RunReport found = report();
  ASSERT_EQ(found.stages[0].peers.size(), 1u);
  EXPECT_EQ(found.stages[0].serving, 0u);
  EXPECT_THAT(table_of(found), HasSubstr("silent"));
  EXPECT_THAT(table_of(found), HasSubstr("the launching process has been silent for"));
}

TEST_F(InspectTest, ARunThatHasEndedSaysSoWithItsReason) {
  announce(ann_, 0, 100);
  RunRecord record = run_record(run_, 1, loop_.wall());
  record.ended = "all tokens are committed";
  announce_run(record);
  EXPECT_THAT(table_of(report()), HasSubstr("the run has ended: all tokens are committed"));
}

TEST_F(InspectTest, WithoutARunRecordTheStagesAreLookedForAllTheSame) {
  announce(ann_, 2, 100);
  const RunReport found = report();
  EXPECT_FALSE(found.record.has_value());
  ASSERT_EQ(found.stages.size(), 3u);
  EXPECT_EQ(found.stages[2].serving, 1u);
  EXPECT_THAT(table_of(found), HasSubstr("no run record"));
}

TEST_F(InspectTest, AnEmptyDirectoryIsSaidToBeEmpty) {
  const RunReport found = report();
  EXPECT_TRUE(found.stages.empty());
  EXPECT_THAT(table_of(found), HasSubstr("nothing is known of this run"));
  EXPECT_TRUE(nlohmann::json::parse(json_of(found))["weakest_stage"].is_null());
}

TEST_F(InspectTest, CountsWhatDidNotPass) {
  announce_run();
  dht_.inject(stage_key(run_of(run_), StageId(0)), 7, "{\"v\":1}");
  const RunReport found = report();
  EXPECT_GE(found.counters.malformed, 1u);
  EXPECT_THAT(table_of(found), HasSubstr("refused"));
}

}  // namespace
}  // namespace shoal
