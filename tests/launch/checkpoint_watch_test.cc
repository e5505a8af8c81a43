// When a person hears that a stage's checkpoints are old, and what is said then.
#include "runtime/launch/checkpoint_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr TimePoint kStart = TimePoint{} + 1000s;

StageStatus stage_at(std::uint64_t version, std::optional<DiskState> on_disk) {
  StageStatus status;
  status.members = 1;
  status.secured = true;
  status.version = Version(version);
  status.on_disk = on_disk;
  return status;
}

class CheckpointWatchTest : public testing::Test {
 protected:
  CheckpointWatchTest() { config_.checkpoint.every_s = 60; }
  std::vector<std::string> take(std::uint64_t version, std::optional<DiskState> on_disk, Duration at = {}) {
    return watch_.take({stage_at(version, on_disk)}, config_, kStart + at);
  }
  RunConfig config_;
  CheckpointWatch watch_;
};

TEST_F(CheckpointWatchTest, AStageWhoseCheckpointIsLateIsNamedOnceUntilItHasANewerOne) {
  EXPECT_THAT(take(100, DiskState{Version(1), 180}), IsEmpty()) << "three times every_s, and not more";
  EXPECT_FALSE(watch_.late());
  EXPECT_THAT(
      take(101, DiskState{Version(1), 181}),
      ElementsAre(AllOf(HasSubstr("stage 0"), HasSubstr("version 1, 3:01 and 100 rounds old"), HasSubstr("HINT: "))));
  EXPECT_EQ(watch_.late(), 181s);
  EXPECT_THAT(take(102, DiskState{Version(1), 500}), IsEmpty());
  EXPECT_EQ(watch_.late(), 500s);
  EXPECT_THAT(take(103, DiskState{Version(103), 0}), IsEmpty());
  EXPECT_FALSE(watch_.late());
  EXPECT_THAT(take(104, DiskState{Version(103), 200}), ElementsAre(HasSubstr("version 103")));
}

TEST_F(CheckpointWatchTest, AStageThatMovesNoMoreIsNotLate) {
  EXPECT_THAT(take(5, DiskState{Version(5), 100'000}), IsEmpty());
}

TEST_F(CheckpointWatchTest, AStageWithoutAnyIsNamedAfterTheSameTime) {
  EXPECT_THAT(take(5, std::nullopt), IsEmpty());
  EXPECT_THAT(take(9, std::nullopt, 180s), IsEmpty());
  EXPECT_THAT(take(9, std::nullopt, 181s), ElementsAre(HasSubstr("no peer of stage 0 has a checkpoint")));
  EXPECT_THAT(take(9, std::nullopt, 300s), IsEmpty());
}

TEST_F(CheckpointWatchTest, ARunWithoutCheckpointsHearsNothing) {
  config_.checkpoint.every_s = 0;
  (void)take(5, std::nullopt);
  EXPECT_THAT(take(9, DiskState{Version(1), 100'000}, 10'000s), IsEmpty());
}

}  // namespace
}  // namespace shoal
