// Rounds whose payloads a loop must not go through.
#include "common/bulk_bytes.h"
#include "tests/sync/round_rig.h"

namespace shoal {
namespace {

class LargeRoundTest : public RoundTest {
 protected:
  using Calls = std::vector<std::string>;
  void make_large() {
    make(2);
    for (const auto& member : members)
      member->contribution.payload =
          test::payload_of(std::vector<float>(3u << 20, static_cast<float>(member->contribution.payload.weight)),
                           member->contribution.payload.weight, member->contribution.payload.tag);
  }
  void run_asides() {
    for (const auto& member : members) member->run_asides();
    pump();
  }
};

TEST_F(LargeRoundTest, ThemItWorksOnAsideAndNothingLeavesBeforeThat) {
  make_large();
  loop.post([&] { open_all(open(1)); });
  loop.run_for(1ms);
  for (const auto& member : members) {
    EXPECT_EQ(member->calls, (Calls{"contribute", "aside"})) << "to be cut";
    EXPECT_EQ(member->reports.size(), 1u);
    EXPECT_EQ(member->parts_sent, 0);
  }
  run_asides();
  EXPECT_EQ(members[0]->calls, (Calls{"contribute", "aside", "aside"})) << "to be added";
  EXPECT_EQ(members[0]->parts_sent, 1);
  run_asides();
  EXPECT_EQ(members[0]->calls, (Calls{"contribute", "aside", "aside", "aside"})) << "to be joined";
  EXPECT_EQ(members[0]->parts_sent, 2);
  run_asides();
  ASSERT_EQ(members[0]->calls.back(), "prepare");
  EXPECT_EQ(members[0]->reports.back().digest, members[1]->reports.back().digest);
  EXPECT_EQ(test::values_of(members[0]->sum), std::vector<float>(3u << 20, 3.0f));
  EXPECT_EQ(loop.most_bulk_bytes(), 0u) << "bytes that the callback of the opening went through";
}

TEST_F(LargeRoundTest, WorkOfARoundThatIsOverComesToNothing) {
  make_large();
  open_all(open(1));
  for (const auto& member : members) member->round.on_abandon({StageId(0), RoundId(1), "test"});
  run_asides();
  for (const auto& member : members) {
    EXPECT_EQ(member->calls, (Calls{"contribute", "aside", "abandon"}));
    EXPECT_EQ(member->parts_sent, 0);
  }
  open_all(open(2));
  for (int i = 0; i < 3; ++i) run_asides();
  EXPECT_EQ(members[1]->calls.back(), "prepare");
}

TEST_F(LargeRoundTest, WhoseBudgetIsOverMeanwhileFailsOnce) {
  make_large();
  open_all(open(1));
  run_asides();
  loop.run_for(2s);
  run_asides();
  for (const auto& member : members) {
    EXPECT_EQ(member->calls, (Calls{"contribute", "aside", "aside"}));
    EXPECT_EQ(member->reports.back().kind, ReportKind::kFailed);
    EXPECT_EQ(member->reports.size(), 2u);
    EXPECT_EQ(member->parts_sent, 1) << "no sum";
  }
}

}  // namespace
}  // namespace shoal
