// A peer that computes and hands on tensors of 1e30, or brings such of 1e4 to its stage's rounds: what is learnt is
// what a swarm without it learns.
#include <algorithm>
#include <mutex>

#include "common/log.h"
#include "tests/swarm/real_swarm.h"

namespace shoal {
namespace {

// Lines of many threads.
class Heard {
 public:
  Heard() {
    set_log_sink([this](LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(line);
    });
  }
  ~Heard() { set_log_sink({}); }
  bool says(std::string_view part) const {
    const std::lock_guard lock(mutex_);
    return std::any_of(lines_.begin(), lines_.end(),
                       [&](const std::string& line) { return line.find(part) != std::string::npos; });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

struct Lie {
  Poison poison;
  const char* named;  // how the log names it
};

void PrintTo(const Lie& lie, std::ostream* out) {
  *out << "stage " << lie.poison.stage << (lie.poison.where == Poison::Where::kRounds ? ", rounds" : ", hops");
}

class PoisonTest : public testing::TestWithParam<Lie> {
 protected:
  static constexpr std::uint64_t kMicrobatchesPerStep = 16, kStepsInAll = 30;
};

TEST_P(PoisonTest, LeavesTheLossAsItIsAndItsSenderIsNamed) {
  const ScratchFolder folder;
  const RunConfig config = drained_config(folder, kMicrobatchesPerStep, kStepsInAll);
  RealSwarm honest(config);
  ASSERT_TRUE(honest.run(120s)) << honest.why();
  const Heard heard;
  RealSwarm swarm(config, std::nullopt, GetParam().poison);
  ASSERT_TRUE(swarm.run(120s)) << swarm.why();
  EXPECT_GT(swarm.poisoned(), 0u)
      << "how often it is asked again, and so whether it rests, is a matter of time: NormGuardTest";
  EXPECT_TRUE(heard.says(GetParam().named));
  ASSERT_TRUE(honest.summary().validation_loss && swarm.summary().validation_loss);
  const double reached = *honest.summary().validation_loss;
  EXPECT_NEAR(*swarm.summary().validation_loss, reached, 0.01 * reached);
  ASSERT_EQ(swarm.lines().size(), kStepsInAll);
  for (std::uint64_t i = 0; i < kStepsInAll; ++i)
    EXPECT_NEAR(swarm.lines()[i].loss, honest.lines()[i].loss, 0.02 * honest.lines()[i].loss) << "step " << i + 1;
}

constexpr const char* kOfItsEdge = "times the median of this edge's senders";
constexpr const char* kOfItsRound = "it sent parts of a round that peer";

// The first stage hands on activations, the last one gradients, and one between both.
INSTANTIATE_TEST_SUITE_P(Hops, PoisonTest,
                         testing::Values(Lie{{StageId(0), 40}, kOfItsEdge}, Lie{{StageId(1), 40}, kOfItsEdge},
                                         Lie{{StageId(3), 40}, kOfItsEdge}));
INSTANTIATE_TEST_SUITE_P(Rounds, PoisonTest,
                         testing::Values(Lie{{StageId(1), 40, Poison::Where::kRounds}, kOfItsRound}));

}  // namespace
}  // namespace shoal
