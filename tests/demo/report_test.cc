#include "demo/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

DemoResult good() {
  DemoResult r;
  r.seconds = 75;
  r.loss_start = 5.5;
  r.loss_end = 2.2;
  r.solo.loss_start = 5.5;
  r.solo.loss_end = 2.1;
  r.val_loss = 2.2;
  r.solo.val_loss = 2.1;
  r.solo.unigram = 3.2;
  r.solo.bigram = 2.5;
  r.tokens = kLossJudgedTokens;
  r.trained_s = 75;
  r.audit.issued = r.audit.committed = 10;
  r.loss_bound_microbatches = 4096;
  r.audit.ended = true;
  r.faults = {{.kind = "kill", .stage = 1, .at_s = 25, .recovered_s = 3, .cost = FaultCost{1.5, 12.5}},
              {.kind = "freeze", .stage = 2, .at_s = 37.5, .recovered_s = 0}};
  r.rejoined_s = 2.5;
  return r;
}

std::vector<std::string> failures_after(const std::function<void(DemoResult&)>& change) {
  DemoResult r = good();
  change(r);
  return demo_failures(r);
}

TEST(DemoVerdictTest, AGoodRunPasses) { EXPECT_THAT(demo_failures(good()), IsEmpty()); }

TEST(DemoVerdictTest, EveryBrokenPromiseFailsTheRun) {
  EXPECT_THAT(failures_after([](auto& r) { r.audit.counted_twice = 1; }), ElementsAre(HasSubstr("counted twice")));
  EXPECT_THAT(failures_after([](auto& r) { r.audit.unfinished = 2; }),
              ElementsAre(HasSubstr("2 microbatches were not finished")));
  EXPECT_THAT(failures_after([](auto& r) { r.audit.violation_count = 1; }), ElementsAre(HasSubstr("audit")));
  EXPECT_THAT(failures_after([](auto& r) { r.audit.ended = false; }), ElementsAre(HasSubstr("did not end")));
  EXPECT_THAT(failures_after([](auto& r) { r.audit.undecided = 3; }),
              ElementsAre(HasSubstr("3 contributions were neither")));
  EXPECT_THAT(failures_after([](auto& r) { r.audit.silent = 1; }), ElementsAre(HasSubstr("lost in silence")));
  EXPECT_THAT(failures_after([](auto& r) { r.faults[0].recovered_s.reset(); }),
              ElementsAre(HasSubstr("kill of a peer of stage 1")));
  EXPECT_THAT(failures_after([](auto& r) { r.rejoined_s.reset(); }), ElementsAre(HasSubstr("did not serve again")));
  EXPECT_THAT(failures_after([](auto& r) {
                r.lost_by_peer = {{"00ab.1", 4097}};
              }),
              ElementsAre(HasSubstr("4097 contributions were lost with session 00ab.1")));
  EXPECT_THAT(failures_after([](auto& r) { r.audit.committed = 0; }), ElementsAre(HasSubstr("nothing was committed")));
  EXPECT_THAT(failures_after([](auto& r) { r.val_loss.reset(); }),
              ElementsAre(HasSubstr("no validation loss of the swarm")));
  EXPECT_THAT(failures_after([](auto& r) { r.process_failures = {"peer-3 ended with exit code 70"}; }),
              ElementsAre(HasSubstr("peer-3")));
}

TEST(DemoVerdictTest, OnABusyMachineNobodyCanTellWhetherTheRateCameBack) {
  DemoResult r = good();
  r.faults[0].recovered_s.reset();
  r.faults[0].busy = {.seconds = 20, .watched = 50, .others = 0.31};
  EXPECT_THAT(demo_failures(r), IsEmpty());
  EXPECT_THAT(demo_doubts(r), ElementsAre(AllOf(HasSubstr("kill of a peer of stage 1"), HasSubstr("in 20 of the 50 s"),
                                                HasSubstr("31 %"), HasSubstr("HINT"))));
  EXPECT_THAT(demo_table(r), AllOf(HasSubstr("not judged, the machine was busy"), Not(HasSubstr("NOT RECOVERED"))));
  r.rejoined_s.reset();
  r.rejoin_busy = r.faults[0].busy;
  EXPECT_THAT(demo_doubts(r), SizeIs(2));
  r.audit.counted_twice = 1;
  EXPECT_THAT(demo_failures(r), ElementsAre(HasSubstr("counted twice"))) << "no load excuses that";
}

TEST(DemoVerdictTest, ABusyMachineMakesNoDoubtOfARateThatCameBack) {
  DemoResult r = good();
  r.faults[0].busy = r.faults[1].busy = r.rejoin_busy = {.seconds = 40, .watched = 50, .others = 0.5};
  EXPECT_THAT(demo_doubts(r), IsEmpty());
  EXPECT_THAT(demo_failures(r), IsEmpty());
}

TEST(DemoVerdictTest, LossesThatWereNamedDoNotFailIt) {
  EXPECT_THAT(failures_after([](auto& r) { r.audit.lost = 12; }), IsEmpty());
}

TEST(DemoVerdictTest, WithFaultsValidationMayBe8PercentAboveSolo) {
  EXPECT_THAT(failures_after([](auto& r) { r.val_loss = 1.08 * 2.1 - 1e-9; }), IsEmpty());
  EXPECT_THAT(failures_after([](auto& r) { r.val_loss = 1.081 * 2.1; }), ElementsAre(HasSubstr("1.08 x solo's")));
}

TEST(DemoVerdictTest, ValidationMustBe06NatsBelowTheUnigramEntropy) {
  EXPECT_THAT(failures_after([](auto& r) { r.solo.unigram = 2.79; }), ElementsAre(HasSubstr("unigram entropy")));
}

// Seconds say nothing of what a model has seen: on a machine that is too slow the bound would judge the machine.
TEST(DemoVerdictTest, BelowSoManyTokensTheEntropyIsNoBoundAndTheTableSaysSo) {
  const auto slow = [](auto& r) {
    r.solo.unigram = 2.79;
    r.tokens = kLossJudgedTokens - 1;
  };
  EXPECT_THAT(failures_after(slow), IsEmpty());
  DemoResult r = good();
  EXPECT_THAT(demo_table(r), Not(HasSubstr("too few")));
  slow(r);
  EXPECT_THAT(demo_table(r), HasSubstr("too few to be judged by the text's entropy, which takes 1.20M"));
  r.val_loss = 1.081 * r.solo.val_loss;
  EXPECT_THAT(demo_failures(r), ElementsAre(HasSubstr("1.08 x solo's"))) << "solo saw as few";
}

TEST(DemoVerdictTest, LongRunsWithoutFaultsHaveTheRulesBoundsAndTheBigramEntropy) {
  DemoResult r = good();
  r.chaos = false;
  r.seconds = 300;
  r.faults.clear();
  r.rejoined_s.reset();
  r.solo.val_loss = 2.0;
  r.val_loss = 2.09;
  EXPECT_EQ(validation_bound(r), 1.05);
  EXPECT_THAT(demo_failures(r), IsEmpty());
  r.rule = RuleId::kAllreduce;
  EXPECT_EQ(validation_bound(r), 1.01);
  EXPECT_THAT(demo_failures(r), SizeIs(1));
  r.val_loss = 2.01;
  r.solo.bigram = 2.005;
  EXPECT_THAT(demo_failures(r), ElementsAre(HasSubstr("bigram entropy")));
}

TEST(DemoVerdictTest, ARunOfSecondsIsNotJudgedByItsLoss) {
  EXPECT_THAT(failures_after([](auto& r) {
                r.seconds = 50;
                r.val_loss = 4.0;
              }),
              IsEmpty());
  DemoResult r = good();
  r.seconds = 50;
  EXPECT_THAT(demo_table(r), HasSubstr("not judged"));
}

TEST(DemoVerdictTest, ALossThatIsNoNumberFails) {
  EXPECT_THAT(failures_after([](auto& r) { r.val_loss = std::numeric_limits<double>::quiet_NaN(); }), SizeIs(2));
}

TEST(DemoJsonTest, HasExactlyTheDocumentedKeysInOrder) {
  DemoResult r = good();
  r.faults[1].recovered_s.reset();
  const auto json = nlohmann::ordered_json::parse(demo_json(r));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_THAT(
      keys, ElementsAre("loss_start", "loss_end", "val_loss", "solo_loss_end", "solo_val_loss", "unigram_entropy",
                        "bigram_entropy", "tokens", "trained_s", "tokens_per_s", "solo_tokens_per_s", "bytes_per_token",
                        "codec_ratio", "deltas", "key_frames", "issued", "committed", "unfinished", "computed_again",
                        "session_faults", "lost", "counted_twice", "rounds", "audit", "faults"));
  ASSERT_EQ(json["faults"].size(), 2u);
  EXPECT_EQ(json["faults"][0]["kind"], "kill");
  EXPECT_EQ(json["faults"][0]["stage"], 1);
  EXPECT_EQ(json["faults"][0]["at_s"], 25);
  EXPECT_EQ(json["faults"][0]["recovered_s"], 3);
  EXPECT_EQ(json["faults"][0]["cost_s"], 1.5);
  EXPECT_EQ(json["faults"][0]["cost_window_s"], 12.5);
  EXPECT_TRUE(json["faults"][1]["cost_s"].is_null());
  EXPECT_TRUE(json["faults"][1]["recovered_s"].is_null());
}

TEST(DemoTableTest, ShowsFaultsLossesAndVerdict) {
  DemoResult r = good();
  r.audit.lost = 3;
  r.session_faults = 2;
  r.lost_by_peer = {{"00ab.1", 3}};
  r.faults[1].recovered_s.reset();
  const std::string table = demo_table(r);
  EXPECT_THAT(table, HasSubstr("kill at 25.0 s, stage 1"));
  EXPECT_THAT(table, HasSubstr("rate recovered after 3 s; cost 1.5 s of full rate, in the 12 s after it"));
  EXPECT_THAT(table, HasSubstr("NOT RECOVERED"));
  EXPECT_THAT(table, HasSubstr("2 sessions were over"));
  EXPECT_THAT(table, HasSubstr("3 with session 00ab.1"));
  EXPECT_THAT(table, HasSubstr("clean"));
  EXPECT_THAT(table, HasSubstr("unigram 3.2000, bigram 2.5000"));
}

}  // namespace
}  // namespace shoal
