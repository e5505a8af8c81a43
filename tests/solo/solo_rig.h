#pragma once
// What the tests of solo share: a text, a small run over the integer executor, and the executors in sight.
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "stages/integer_executor.h"
#include "tests/common/scratch_folder.h"

namespace shoal {

class SoloRig : public testing::Test {
 protected:
  SoloRig() {
    std::string text(4000, ' ');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + mix64(i) % 20);
    folder_.write("text.bin", text);
  }

  // A layer a stage; a microbatch has 32 targets. `more` begins behind [pipeline].
  RunConfig config(const std::string& more, int stages = 4, int replicas = 2) {
    const std::string count = std::to_string(stages);
    const auto config = load_config(folder_.write("run.toml", "[model]\nlayers = " + count + R"(
dim = 64
heads = 4
positions = 16
[data]
path = "text.bin"
sequences = 2
[executor]
kind = "integer"
[pipeline]
stages = )" + count + "\nreplicas = " + std::to_string(replicas) + "\n" +
                                                                  more));
    EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().message);
    return *config;
  }

  ExecutorFactory factory() {
    return [this](const StageSpec& spec) -> Result<std::unique_ptr<StageExecutor>> {
      auto made = std::make_unique<IntegerExecutor>(spec);
      executors_.push_back(made.get());
      return std::unique_ptr<StageExecutor>(std::move(made));
    };
  }

  ScratchFolder folder_;
  std::vector<IntegerExecutor*> executors_;  // alive only while the chain is
};

}  // namespace shoal
