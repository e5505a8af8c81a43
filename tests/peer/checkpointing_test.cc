// What a peer says of its checkpoints and of those that its disk does not take.
#include "runtime/peer/checkpointing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/sim_loop.h"
#include "sim/sim_storage.h"
#include "tests/state/checkpoint_rig.h"

namespace shoal {
namespace {

using test::image_of;
using test::key_numbered;
using test::run_numbered;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Each job at once.
class AtOnce final : public WorkQueue {
 public:
  explicit AtOnce(EventLoop& loop) : loop_(loop) {}
  void run(WorkKind, std::function<void()> job, std::function<void()> done) override {
    job();
    loop_.post(std::move(done));
  }

 private:
  EventLoop& loop_;
};

class CheckpointingTest : public testing::Test {
 protected:
  // A process begins.
  void start() {
    checkpointing_.reset();
    checkpointing_ = std::make_unique<Checkpointing>(
        Checkpointing::Options{.run = run_numbered(1), .key = key_numbered(2), .folders = {"home"}}, &storage_, loop_,
        aside_, [this](const std::string& line) { said_.push_back(line); });
    checkpointing_->load();
    checkpointing_->set_policy(10s, 2);
  }
  void write(std::uint64_t version) {
    loop_.run_for(10s);
    ASSERT_TRUE(checkpointing_->due(Version(version)));
    checkpointing_->making();
    checkpointing_->made(image_of(*rule_, Version(version)));
    loop_.run_for(1s);
  }
  DiskState newest() const { return checkpointing_->newest(StageId(0)).value_or(DiskState{}); }

  const std::unique_ptr<OuterRule> rule_ = make_diloco_rule({.outer_lr = 1, .outer_momentum = 0, .sum = true});
  SimLoop loop_{WallTime(std::chrono::seconds(1'700'000'000))};
  SimDisk disk_;
  SimStorage storage_{loop_, disk_};
  AtOnce aside_{loop_};
  std::vector<std::string> said_;
  std::unique_ptr<Checkpointing> checkpointing_;
};

TEST_F(CheckpointingTest, AFailureIsSaidOnceUntilItChangesOrIsOverAndTheNewestOneGrowsOld) {
  start();
  write(1);
  EXPECT_EQ(newest(), (DiskState{Version(1), 1}));
  EXPECT_THAT(said_, IsEmpty());
  disk_.set_failing(true);
  for (std::uint64_t version = 2; version < 10; ++version) write(version);
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr("no checkpoint of version 2"), HasSubstr("HINT: "))));
  EXPECT_EQ(newest(), (DiskState{Version(1), 89}));
  disk_.set_failing(false);
  disk_.set_capacity_bytes(0);
  write(10);
  write(11);
  ASSERT_EQ(said_.size(), 2u) << "another cause";
  EXPECT_THAT(said_[1], HasSubstr("no checkpoint of version 10"));
  disk_.set_capacity_bytes(SIZE_MAX);
  write(12);
  ASSERT_EQ(said_.size(), 3u);
  EXPECT_THAT(said_[2], HasSubstr("written again: version 12"));
  EXPECT_EQ(newest(), (DiskState{Version(12), 1}));
}

TEST_F(CheckpointingTest, ANextProcessKnowsHowOldTheNewestOneIsAndOfWhichStage) {
  start();
  write(1);
  loop_.run_for(100s);
  start();
  EXPECT_EQ(newest(), (DiskState{Version(1), 101}));
  EXPECT_FALSE(checkpointing_->newest(StageId(1)));
}

}  // namespace
}  // namespace shoal
