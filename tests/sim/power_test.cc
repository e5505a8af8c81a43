// A launching process that dies before it synced, goes on from what the page cache kept, and then loses its power: what
// it read back must have had no effect on anybody before it was durable.
#include <gtest/gtest.h>

#include "common/log.h"
#include "sim/checkers.h"
#include "sim/swarm.h"

namespace shoal {
namespace {

// Two lives that nothing is synced in, after a good one; `second` is how long the second one lasts. Then the end.
struct Lives {
  std::uint64_t seed = 1;
  RuleId rule = RuleId::kDiloco;
  Duration sync_delay = 4s, second = 3s;
};

// The first rule that is broken; empty = all hold.
std::string live(const Lives& lives) {
  set_log_level(LogLevel::kError);
  SwarmOptions options;
  options.seed = lives.seed;
  options.config = small_config(lives.rule, options.stages, 300);
  Swarm swarm(std::move(options));
  swarm.run_for(3s + lives.seed * 130ms);
  if (swarm.finished()) return "the run was over too early";
  swarm.disk().set_sync_delay(lives.sync_delay);
  swarm.run_for(800ms);
  swarm.kill_launch_process();
  swarm.resume_launch();
  swarm.run_for(lives.second);
  if (const auto broken = check_counting(swarm); !broken.empty()) return "second life: " + broken.front();
  swarm.kill_launch();
  swarm.disk().set_sync_delay(40ms);
  swarm.resume_launch();
  const bool ended = swarm.run_to_end(400s);
  if (const auto broken = check_end(swarm); !broken.empty()) return broken.front();
  if (!ended) return "the run did not end";
  for (const auto& peer : swarm.peers())
    for (const StageStatus& known : swarm.launch()->authority().status())
      if (peer->peer && peer->peer->stage_peer() && peer->peer->report().stage == known.stage &&
          peer->peer->stage_peer()->version() > known.version)
        return "a member is ahead of the authority";
  return {};
}

TEST(PowerTest, WhatAResumedProcessReadHasNoEffectBeforeItIsDurable) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed)
    for (const RuleId rule : {RuleId::kDiloco, RuleId::kAllreduce})
      EXPECT_EQ(live({.seed = seed, .rule = rule}), "") << "seed " << seed << " rule " << static_cast<int>(rule);
}

TEST(PowerTest, OnceItIsDurableTheResumedProcessGoesOn) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed)
    EXPECT_EQ(live({.seed = seed, .sync_delay = 1s, .second = 4s}), "") << "seed " << seed;
}

// A run of 38 s, of which one log is another than the process left it. The error of the process that would go on; then
// the log is put back, and the run goes on.
class LogOfAnotherTimeTest : public testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::kError);
    SwarmOptions options;
    options.config = small_config(RuleId::kDiloco, options.stages, 100'000);
    swarm_ = std::make_unique<Swarm>(std::move(options));
    swarm_->run_for(8s);
    for (const char* log : {kTrainer, kAuthority}) older_[log] = *swarm_->disk().durable_content(log);
    swarm_->run_for(30s);
    swarm_->kill_launch();
  }
  void TearDown() override { set_log_level(LogLevel::kInfo); }
  Error refusal_with(const std::string& log, const std::vector<std::uint8_t>& content) {
    const std::vector<std::uint8_t> newest = *swarm_->disk().durable_content(log);
    swarm_->disk().put(log, content);
    const Status refused = swarm_->try_resume_launch();
    EXPECT_FALSE(refused.ok());
    if (refused.ok()) return make_error(ErrorCode::kGone, "it went on");
    swarm_->disk().put(log, newest);
    EXPECT_TRUE(swarm_->try_resume_launch().ok());
    const std::uint64_t committed = swarm_->launch()->book().committed();
    swarm_->run_for(20s);
    EXPECT_GT(swarm_->launch()->book().committed(), committed) << "with the newest log it goes on";
    EXPECT_EQ(check_counting(*swarm_), std::vector<std::string>{});
    return refused.error();
  }
  static bool says(const Error& error, const std::string& part) {
    return error.message.find(part) != std::string::npos;
  }

  static constexpr const char *kTrainer = "run/trainer.log", *kAuthority = "run/authority.log";
  std::unique_ptr<Swarm> swarm_;
  std::map<std::string, std::vector<std::uint8_t>> older_;
};

TEST_F(LogOfAnotherTimeTest, AnOlderLogOfTheAuthorityIsRefusedByName) {
  const Error error = refusal_with(kAuthority, older_[kAuthority]);
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_TRUE(says(error, "run/authority.log is older than run/trainer.log") && says(error, "HINT")) << error.message;
}

TEST_F(LogOfAnotherTimeTest, AnOlderLogOfTheTrainerIsRefusedByName) {
  const Error error = refusal_with(kTrainer, older_[kTrainer]);
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_TRUE(says(error, "run/trainer.log is older than run/authority.log: it has ")) << error.message;
}

TEST_F(LogOfAnotherTimeTest, ALostLogIsRefusedByName) {
  const Error trainer = refusal_with(kTrainer, {});
  EXPECT_EQ(trainer.code, ErrorCode::kMissing);
  EXPECT_TRUE(says(trainer, "run/trainer.log is missing or empty") && says(trainer, "HINT")) << trainer.message;
}

TEST_F(LogOfAnotherTimeTest, ALostLogOfTheAuthorityIsRefusedByName) {
  const Error authority = refusal_with(kAuthority, {});
  EXPECT_EQ(authority.code, ErrorCode::kMissing);
  EXPECT_TRUE(says(authority, "run/authority.log is missing or empty")) << authority.message;
}

}  // namespace
}  // namespace shoal
