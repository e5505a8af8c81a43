#include "runtime/trainer/step_book.h"

#include <gtest/gtest.h>

#include "sim/swarm.h"

namespace shoal {
namespace {

constexpr std::uint64_t kTrainer = 7;

// The trainer's log, where so many microbatches of a one-stage run are decided and lost.
CommitBook book_after(std::uint64_t microbatches) {
  CommitBook book(kTrainer, 1);
  const Session peer{1, 1};
  for (std::uint64_t serial = 0; serial < microbatches; ++serial) {
    const MicrobatchId id = *book.next();
    book.issued(id);
    Gradient gradient;
    gradient.path = {EntryName{peer, serial}};
    gradient.targets = 1;
    (void)book.log(id, gradient);
    (void)book.durable(id);
  }
  (void)book.on_session_over(peer, "left");
  while (book.done().left()) (void)book.done_record();
  book.done_durable();
  return book;
}

// The authority's compacted log does not tell of those rounds again.
TEST(StepBookTest, ALifeAfterTheWarmStartKnowsFromTheTrainersLogThatItIsOver) {
  RunConfig config = small_config(RuleId::kDiloco, 1, 4096);
  config.sync.warm_steps = 2;
  const std::uint64_t warm = 2 * config.microbatches_of_step(0);
  StepBook steps(config);
  EXPECT_FALSE(steps.may_issue(warm));
  const CommitBook book = book_after(warm);
  ASSERT_EQ(book.low(), warm);
  steps.resume(book, kTrainer);
  EXPECT_TRUE(steps.may_issue(warm));
  EXPECT_FALSE(steps.next_whole()) << "nothing is announced again";
}

// The low-water mark stands in the middle of a step of which nothing else was logged yet: what is below it counts.
TEST(StepBookTest, ALifeThatBeginsWithinAStepKnowsWhatIsBelowTheLowWaterMark) {
  RunConfig config = small_config(RuleId::kAllreduce, 1, 4096);
  const std::uint64_t size = config.microbatches_of_step(0);
  ASSERT_GT(size, 1u);
  StepBook steps(config);
  const CommitBook book = book_after(3 * size - 1);
  ASSERT_EQ(book.low(), 3 * size - 1);
  steps.resume(book, kTrainer);
  EXPECT_FALSE(steps.next_whole());
  steps.logged(3 * size - 1);
  EXPECT_EQ(steps.next_whole(), StepId(3));
}

TEST(StepBookTest, DrainWaitsBehindEachInnerStepOfAllReplicasAndOverlapNever) {
  RunConfig config = small_config(RuleId::kDiloco, 1, 4096);
  config.pipeline.replicas = 2;
  config.sync.warm_steps = 1;
  config.sync.inner_batch = 2 * config.targets_per_microbatch() + 1;
  ASSERT_EQ(config.microbatches_of_windows(), 6u) << "a begun microbatch counts whole";
  const std::uint64_t warm = config.microbatches_of_step(0);
  for (const SyncMode mode : {SyncMode::kDrain, SyncMode::kOverlap, SyncMode::kAuto}) {
    config.sync.mode = mode;
    StepBook steps(config);
    for (std::uint64_t serial = 0; serial < warm; ++serial) steps.issued(serial);
    EXPECT_FALSE(steps.is_flush_due()) << "global steps wait for their rounds";
    for (int step = 0; step < 2; ++step) {
      for (std::uint64_t i = 0; i < 6; ++i) {
        EXPECT_FALSE(steps.is_flush_due()) << i;
        steps.issued(warm + i);
      }
      EXPECT_EQ(steps.is_flush_due(), mode == SyncMode::kDrain);
      steps.flushed();
    }
  }
}

}  // namespace
}  // namespace shoal
