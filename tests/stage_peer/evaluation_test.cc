#include <gtest/gtest.h>

#include "runtime/stage_peer/entry_desk.h"

namespace shoal {
namespace {

StageSpec last_of_two() {
  StageSpec spec;
  spec.stage = StageId(1);
  spec.stages = 2;
  return spec;
}

Forward evaluate(std::vector<Version> versions) {
  Forward message;
  message.kind = ForwardKind::kEvaluate;
  message.versions = std::move(versions);
  return message;
}

TEST(EvaluationTest, IsAnsweredAtTheNamedVersionOfTheOwnStageAlone) {
  const Forward message = evaluate({Version(9), Version(4)});
  EXPECT_EQ(evaluation_refused(message, last_of_two(), Version(4)), std::nullopt);
  EXPECT_EQ(evaluation_refused(message, last_of_two(), Version(3)), BusyReason::kBehind);
  EXPECT_EQ(evaluation_refused(message, last_of_two(), Version(5)), BusyReason::kAhead);
  EXPECT_EQ(evaluation_refused(message, last_of_two(), Version(9)), BusyReason::kAhead) << "stage 0's";
}

TEST(EvaluationTest, AnEstimateNamesNoVersionAndIsAnsweredAtAny) {
  for (const Version here : {Version(0), Version(7)})
    EXPECT_EQ(evaluation_refused(evaluate({}), last_of_two(), here), std::nullopt);
}

TEST(EvaluationTest, NamesAVersionForEveryStageOrNone) {
  EXPECT_EQ(evaluation_refused(evaluate({Version(1)}), last_of_two(), Version(1)), BusyReason::kMalformed);
  EXPECT_EQ(evaluation_refused(evaluate({Version(1), Version(1), Version(1)}), last_of_two(), Version(1)),
            BusyReason::kMalformed);
}

TEST(EvaluationTest, TrainingAsksForNoVersion) {
  EXPECT_EQ(evaluation_refused(Forward{}, last_of_two(), Version(7)), std::nullopt);
}

}  // namespace
}  // namespace shoal
