#include "authority/planner.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

StageSupply supply(std::uint16_t stage, std::size_t members, double rate = 0, bool secured = false,
                   std::uint8_t digest = 0) {
  StageSupply s;
  s.stage = StageId(stage);
  s.members = s.serving = members;
  s.rate = rate;
  s.secured = secured;
  s.version = Version(secured ? 4 : 0);
  s.digest.bytes[0] = digest;
  return s;
}

JoinWish holding(std::uint16_t stage, std::uint8_t digest) {
  JoinWish wish;
  wish.held_stage = StageId(stage);
  wish.held_version = Version(4);
  wish.held_digest.bytes[0] = digest;
  return wish;
}

TEST(PlannerTest, ChoosesAnEmptyStageThenTheLowestRateThenFewestMembersThenTheLowestStage) {
  EXPECT_EQ(choose_stage(std::vector{supply(0, 2, 1), supply(1, 0), supply(2, 2, 1)}, {})->stage, StageId(1));
  EXPECT_EQ(choose_stage(std::vector{supply(0, 2, 5), supply(1, 3, 4)}, {})->stage, StageId(1))
      << "three slow ones make less than two fast ones";
  EXPECT_EQ(choose_stage(std::vector{supply(0, 1, 9), supply(1, 3, 4)}, {})->stage, StageId(0)) << "one may die";
  EXPECT_EQ(choose_stage(std::vector{supply(0, 2), supply(1, 1), supply(2, 2)}, {})->stage, StageId(1));
  EXPECT_EQ(choose_stage(std::vector{supply(0, 2, 9), supply(1, 2, 5), supply(2, 2, 7)}, {})->stage, StageId(1));
  EXPECT_EQ(choose_stage(std::vector{supply(0, 2, 5), supply(1, 2, 5)}, {})->stage, StageId(0));
}

StageSupply with_direct(StageSupply supply) {
  supply.direct = true;
  return supply;
}

TEST(PlannerTest, WhoCanBeDialledGoesWhereNobodyCanBehindTheFirstTwoOfAStage) {
  EXPECT_EQ(choose_stage(std::vector{with_direct(supply(0, 2, 1)), supply(1, 2, 9)}, {})->stage, StageId(1));
  EXPECT_EQ(choose_stage(std::vector{with_direct(supply(0, 1)), supply(1, 2)}, {})->stage, StageId(0));
  EXPECT_EQ(choose_stage(std::vector{with_direct(supply(0, 2, 2)), with_direct(supply(1, 3, 1))}, {})->stage,
            StageId(1));
}

TEST(PlannerTest, WhoCannotBeDialledGoesWhereItMeetsSomebodyOrIsTheFirst) {
  JoinRequest request;
  request.whereabouts.reach = Reach::kNone;
  const JoinWish nobody_dials_it = wish_of(request, nullptr);
  const auto chosen = [&](const std::vector<StageSupply>& stages) {
    return choose_stage(stages, nobody_dials_it)->stage;
  };
  EXPECT_EQ(chosen({supply(0, 1, 1), with_direct(supply(1, 3, 9))}), StageId(1)) << "nobody could give it the state";
  EXPECT_EQ(chosen({with_direct(supply(0, 1)), supply(1, 0)}), StageId(1));
  EXPECT_EQ(chosen({supply(0, 2), supply(1, 1)}), StageId(1)) << "one that can be dialled comes later";
  EXPECT_EQ(chosen({with_direct(supply(0, 2, 5)), with_direct(supply(1, 2, 4))}), StageId(1));
}

TEST(PlannerTest, GrantsAWishOnlyIfNoOtherStageStaysEmpty) {
  JoinWish wish;
  wish.stage = StageId(0);
  EXPECT_EQ(choose_stage(std::vector{supply(0, 5), supply(1, 1)}, wish)->stage, StageId(0));
  EXPECT_EQ(choose_stage(std::vector{supply(0, 5), supply(1, 0)}, wish)->stage, StageId(1));
  EXPECT_EQ(choose_stage(std::vector{supply(0, 0), supply(1, 1)}, wish)->stage, StageId(0));
}

TEST(PlannerTest, AWishForAnEmptyStageIsGrantedAndOneThatWouldLeaveAnotherEmptyMayCome) {
  JoinWish wish;
  wish.stage = StageId(2);
  EXPECT_EQ(choose_stage(std::vector{supply(0, 0), supply(1, 0), supply(2, 0)}, wish)->stage, StageId(2));
  const auto passed = choose_stage(std::vector{supply(0, 1), supply(1, 0), supply(2, 1)}, wish);
  EXPECT_EQ(passed->stage, StageId(1));
  EXPECT_TRUE(passed->wish_may_come);
  EXPECT_FALSE(choose_stage(std::vector{supply(0, 1), supply(1, 0, 0, true), supply(2, 1)}, wish)->wish_may_come)
      << "a run that trained waits for its stage";
  EXPECT_FALSE(choose_stage(std::vector{supply(0, 1), supply(1, 0), supply(2, 1)}, {})->wish_may_come);
}

TEST(PlannerTest, WhoHoldsTheLastStateOfAnUnservedStageBringsItBackFirst) {
  JoinWish wish = holding(2, 9);
  wish.stage = StageId(0);
  EXPECT_EQ(choose_stage(std::vector{supply(0, 0), supply(1, 0), supply(2, 0, 0, true, 9)}, wish)->stage, StageId(2));
  EXPECT_EQ(choose_stage(std::vector{supply(0, 0), supply(1, 1), supply(2, 0, 0, true, 8)}, holding(2, 9))->stage,
            StageId(0))
      << "an older state is of no use";
}

TEST(PlannerTest, WhoHoldsTheLastStateNeedNotFetchUnlessAnotherStageIsEmpty) {
  EXPECT_EQ(choose_stage(std::vector{supply(0, 1), supply(1, 2, 0, true, 9)}, holding(1, 9))->stage, StageId(1));
  EXPECT_EQ(choose_stage(std::vector{supply(0, 0), supply(1, 2, 0, true, 9)}, holding(1, 9))->stage, StageId(0));
}

TEST(PlannerTest, NamesAWishBeyondTheRun) {
  JoinWish wish;
  wish.stage = StageId(7);
  EXPECT_EQ(choose_stage(std::vector{supply(0, 1)}, wish).code(), ErrorCode::kInput);
  EXPECT_EQ(choose_stage({}, {}).code(), ErrorCode::kInput);
}

}  // namespace
}  // namespace shoal
