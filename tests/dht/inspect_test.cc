#include "dht/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

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
    record.figures.rate = rate;
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
  // A run that trains, whose signed list names these.
  StandingRecord standing(std::vector<MemberRow> peers) {
    StandingRecord record;
    record.run = run_of(run_);
    record.state = RunState::kTraining;
    record.since = loop_.wall() - 75s;
    record.peers = std::move(peers);
    record.figures.step = 120;
    record.figures.loss = 3.4561;
    record.figures.run_targets = 1'310'000;
    record.figures.end_targets = 5'000'000;
    record.figures.rate = 25'100;
    record.sequence = 1;
    record.expires = loop_.wall() + kRecordTtl;
    return record;
  }
  void announce_standing(const StandingRecord& record) {
    const auto parts = pack_standing(record, run_);
    ASSERT_TRUE(parts.ok()) << parts.error().message;
    for (std::size_t part = 0; part < parts->size(); ++part)
      source_->announce((*parts)[part], standing_key(record.run, static_cast<std::uint16_t>(part)));
    loop_.run_for(1s);
  }
  static MemberRow member(const KeyPair& peer, std::uint16_t stage, MemberRow::Place place = MemberRow::Place::kServing,
                          std::uint16_t quiet_s = 1) {
    return {Session::of(peer.id(), 1).peer_tag, StageId(stage), place, quiet_s};
  }
  static KeyPair numbered(std::uint16_t stage) { return key_of_number(static_cast<std::uint8_t>(20 + stage)); }
  std::vector<MemberRow> one_a_stage() {
    std::vector<MemberRow> peers;
    for (std::uint16_t k = 0; k < 4; ++k) peers.push_back(member(numbered(k), k));
    return peers;
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
  announce_standing(standing({member(ann_, 0), member(ben_, 1, MemberRow::Place::kJoining)}));
  announce_run();
  const auto json = nlohmann::json::parse(json_of(report()));
  EXPECT_EQ(json["schema"], "shoal.inspect/3");
  EXPECT_EQ(json["run"], hex_of(run_of(run_)));
  EXPECT_EQ(json["record"]["name"], "tide pool");
  EXPECT_EQ(json["record"]["signature"], "ok");
  EXPECT_EQ(json["standing"]["state"], "training");
  EXPECT_EQ(json["standing"]["tokens"], 1'310'000);
  EXPECT_EQ(json["standing"]["list_whole"], true);
  ASSERT_EQ(json["stages"].size(), 4u);
  const auto& peer = json["stages"][0]["peers"][0];
  EXPECT_EQ(peer["state"], "serving");
  EXPECT_EQ(peer["record"]["peer"], hex_of(ann_.id()));
  EXPECT_EQ(peer["record"]["addresses"][0], "198.51.100.7:7741");
  EXPECT_EQ(peer["record"]["rate"], 100.0);
  EXPECT_EQ(peer["record"]["version"], 18);
  EXPECT_EQ(peer["record"]["incarnation"], "0123456789abcdef");
  EXPECT_NEAR(peer["record"]["age_s"].get<double>(), 3.0, 1.5);
  EXPECT_EQ(json["stages"][1]["peers"][0]["state"], "joining");
  EXPECT_TRUE(json["stages"][1]["peers"][0]["record"].is_null());
  EXPECT_EQ(json["stages"][2]["peers"].size(), 0u);
  EXPECT_EQ(json["weakest_stage"], 1);
}

TEST_F(InspectTest, TheWeakestStageHasFewestServingPeersThenLeastRate) {
  announce_run();
  for (std::uint16_t k = 0; k < 4; ++k) announce(numbered(k), k, k == 2 ? 10 : 100);
  auto peers = one_a_stage();
  announce_standing(standing(peers));
  EXPECT_EQ(report().weakest, StageId(2));
  peers.push_back(member(ann_, 2));
  peers.push_back(member(ben_, 0));
  peers.push_back(member(cid_, 1, MemberRow::Place::kJoining));  // does not count
  StandingRecord later = standing(peers);
  later.sequence = 2;
  announce_standing(later);
  EXPECT_EQ(report().weakest, StageId(1));
}

// Anybody can make keys and sign claims with them.
TEST_F(InspectTest, ThreeHundredClaimsOfStrangersAreShownApartAndServeNothing) {
  announce_run();
  announce(ann_, 0, 100);
  announce_standing(standing({member(ann_, 0)}));
  for (int i = 0; i < 300; ++i) {
    std::array<std::uint8_t, 32> seed{};
    seed[0] = static_cast<std::uint8_t>(i);
    seed[1] = static_cast<std::uint8_t>(100 + i / 256);
    const KeyPair stranger = KeyPair::from_seed(seed);
    dht_.inject(stage_key(run_of(run_), StageId(0)), static_cast<std::uint64_t>(1000 + i),
                packed(peer_record(run_, stranger, 0, 1, loop_.wall()), stranger));
  }
  const RunReport found = report();
  EXPECT_EQ(found.stages[0].serving, 1u);
  ASSERT_EQ(found.stages[0].peers.size(), 1u);
  EXPECT_TRUE(found.stages[0].peers[0].record.has_value()) << "a flood does not push a member's record out";
  EXPECT_GT(found.stages[0].claims.size(), 100u);
  EXPECT_EQ(found.weakest, StageId(1));
  EXPECT_THAT(table_of(found), HasSubstr("claims of keys that are not on the signed list"));
  const auto json = nlohmann::json::parse(json_of(found));
  EXPECT_EQ(json["stages"][0]["serving"], 1);
}

// A member's key at another stage than the list says is a claim like any other.
TEST_F(InspectTest, AMembersRecordOfAnotherStageIsAClaim) {
  announce_run();
  announce(ann_, 1, 100);
  announce_standing(standing({member(ann_, 0)}));
  const RunReport found = report();
  EXPECT_EQ(found.stages[1].serving, 0u);
  EXPECT_EQ(found.stages[1].claims.size(), 1u);
  EXPECT_FALSE(found.stages[0].peers[0].record.has_value());
}

TEST_F(InspectTest, TheTableNamesWhatAPersonMustKnowInEightyColumns) {
  PeerRecord own = peer_record(run_, ann_, 0, 1, loop_.wall());
  own.figures.rate = 6100;
  own.figures.device = "cuda:0";
  own.figures.memory_bytes = 16ull << 30;
  own.figures.activation_codec = "int8";
  own.figures.rtt_ms = 35;
  own.figures.sent_rate = 1.25e6;
  own.figures.got_rate = 2.5e6;
  own.figures.falls = 12;
  own.on_disk = {Version(17), loop_.wall() - 65s};
  source_->announce(packed(own, ann_), stage_key(own.run, own.stage));
  sources_.push_back(std::move(source_));
  source_ = make(50);
  announce_run();
  announce(cid_, 3, 1e14);
  announce_standing(standing({member(ann_, 0), member(ben_, 1, MemberRow::Place::kServing, 60'000),
                              member(numbered(9), 2, MemberRow::Place::kGone, 65'535)}));
  const std::string table = table_of(report());
  for (const std::string part : {"tide pool",
                                 "DHT network 1397",
                                 "state: training for 0:01:",
                                 "step 120 | loss 3.4561 | 25.1k tok/s",
                                 "1.31M of 5.00M tokens (26 %), 3.69M to go, about 0:02:27",
                                 "serving",
                                 "6.10k",
                                 "v18",
                                 "cuda:0",
                                 " 16.0 ",
                                 "1.25M",
                                 "2.50M",
                                 "silent 6",
                                 "gone 655",
                                 "  3 -        nobody",
                                 "1 claims",
                                 "DHT nodes that ended",
                                 "often: of",
                                 "activations and gradients go out as, by stage: 0: int8 -, 1: - -",
                                 "newest checkpoint on a disk, by stage: 0: v17 0:01:",
                                 " ago, 1: none, 2:"})
    EXPECT_THAT(table, HasSubstr(part));
  EXPECT_THAT(table, HasSubstr(short_name(ann_.id())));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kTableColumns) << line;
}

// The only peer of a stage dies: its record says for a minute that it serves.
TEST_F(InspectTest, AStageWhoseOnlyPeerDiedIsParkedAsSoonAsTheLaunchingProcessTellsIt) {
  for (std::uint16_t k = 0; k < 4; ++k) announce(numbered(k), k, 100);
  announce_run();
  auto peers = one_a_stage();
  peers[2].place = MemberRow::Place::kGone;
  StandingRecord parked = standing(peers);
  parked.state = RunState::kParked;
  parked.stage = StageId(2);
  parked.last = {short_name(numbered(2).id())};
  announce_standing(parked);
  const RunReport found = report();
  EXPECT_EQ(found.weakest, StageId(2));
  EXPECT_EQ(found.stages[2].serving, 0u);
  const std::string table = table_of(found);
  EXPECT_THAT(table, HasSubstr("gone "));
  EXPECT_THAT(table, testing::ContainsRegex("state: parked for 0:01:[0-9]+: stage 2 has no serving peer"));
  EXPECT_THAT(table, HasSubstr(short_name(numbered(2).id())));
}

TEST_F(InspectTest, AStageThatCannotReachTheNextIsNamedWithBothSides) {
  announce_run();
  StandingRecord parked = standing({member(ann_, 0), member(ben_, 1), member(numbered(2), 2), member(numbered(3), 3)});
  parked.state = RunState::kParked;
  parked.stage = StageId(0);
  parked.stranded = true;
  announce_standing(parked);
  std::string table = table_of(report());
  std::replace(table.begin(), table.end(), '\n', ' ');
  EXPECT_THAT(table, testing::ContainsRegex("stage 0 \\(" + short_name(ann_.id()) +
                                            "\\) +cannot +reach +stage +1 +\\(" + short_name(ben_.id()) + "\\)"));
}

// Records are made anew every 20 s and expire after 60.
TEST_F(InspectTest, WhenTheLaunchingProcessIsSilentNobodyIsSaidToServeWhoIsSilentToo) {
  announce(ann_, 0, 100);
  announce_run();
  announce_standing(standing({member(ann_, 0)}));
  sources_.clear();
  source_.reset();
  loop_.run_for(46s);
  const RunReport found = report();
  ASSERT_EQ(found.stages[0].peers.size(), 1u);
  EXPECT_EQ(found.stages[0].serving, 0u);
  EXPECT_THAT(table_of(found), HasSubstr("the launching process has been silent for"));
  EXPECT_THAT(table_of(found), HasSubstr("silent 4"));
}

TEST_F(InspectTest, ARunThatHasEndedSaysSoWithItsReason) {
  RunRecord record = run_record(run_, 1, loop_.wall());
  record.ended = "all tokens are committed";
  announce_run(record);
  EXPECT_TRUE(report().ended());
  EXPECT_THAT(table_of(report()), HasSubstr("state: ended: all tokens are committed"));
}

TEST_F(InspectTest, ARunThatHasEndedEarlyHasNoRateAndNothingToGo) {
  RunRecord record = run_record(run_, 1, loop_.wall());
  record.ended = "stopped by Ctrl-C";
  announce_run(record);
  StandingRecord ended = standing({member(ann_, 0)});
  ended.state = RunState::kEnded;
  announce_standing(ended);
  const std::string table = table_of(report());
  EXPECT_THAT(table, HasSubstr("  step 120 | loss 3.4561\n  1.31M of 5.00M tokens (26 %)\n"));
  EXPECT_THAT(table, testing::Not(HasSubstr("to go")));
  EXPECT_THAT(table, HasSubstr(" served "));
  EXPECT_THAT(table, testing::Not(HasSubstr("serving")));
}

TEST_F(InspectTest, WithoutARunRecordTheStagesAreLookedForAllTheSameAndNothingIsCounted) {
  announce(ann_, 2, 100);
  const RunReport found = report();
  EXPECT_FALSE(found.record.has_value());
  ASSERT_EQ(found.stages.size(), 3u);
  EXPECT_EQ(found.stages[2].serving, 0u) << "a record that names no list proves only who wrote it";
  EXPECT_EQ(found.stages[2].claims.size(), 1u);
  EXPECT_THAT(table_of(found), HasSubstr("no signed list was found"));
}

TEST_F(InspectTest, AnEmptyDirectoryIsSaidToBeEmpty) {
  const RunReport found = report();
  EXPECT_TRUE(found.stages.empty());
  EXPECT_FALSE(found.found());
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

// A list that one record has no room for.
TEST_F(InspectTest, ManyMembersComeInPartsAndAreNamedOnceEach) {
  announce_run();
  std::vector<MemberRow> peers;
  for (std::uint16_t n = 0; n < 100; ++n) {
    std::array<std::uint8_t, 32> seed{};
    seed[3] = static_cast<std::uint8_t>(n);
    peers.push_back(member(KeyPair::from_seed(seed), n % 4));
  }
  announce_standing(standing(peers));
  const RunReport found = report();
  EXPECT_TRUE(found.list_whole);
  for (const StageReport& stage : found.stages) EXPECT_EQ(stage.serving, 25u);
}

}  // namespace
}  // namespace shoal
