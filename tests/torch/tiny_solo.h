#pragma once
// A run of a tiny real model in one process.
#include <gtest/gtest.h>

#include <string>

#include "runtime/solo/solo.h"
#include "stages/torch_executor.h"
#include "tests/common/scratch_folder.h"

namespace shoal {

// A layer a stage, a microbatch of 32 targets, two a step. `text` is trained on; `more` begins behind [sync].
inline RunConfig tiny_solo(const ScratchFolder& folder, const std::string& text, int stages, int dim,
                           const std::string& more = "") {
  folder.write("text.bin", text);
  const std::string count = std::to_string(stages);
  const auto config = load_config(folder.write(
      "run.toml",
      "[model]\nlayers = " + count + "\ndim = " + std::to_string(dim) +
          "\nheads = 2\npositions = 16\n[data]\npath = \"text.bin\"\nsequences = 2\n[optimizer]\nlr = 1e-2\n"
          "[pipeline]\nreplicas = 1\nstages = " +
          count + "\n[sync]\ninner_batch = 64\n" + more));
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().message);
  return *config;
}

inline ExecutorFactory tiny_factory() {
  return [](const StageSpec& spec) { return make_torch_executor(spec, "cpu", 1); };
}

inline SoloResult solo_of(const SoloOptions& options) {
  const auto result = run_solo(options);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? *result : SoloResult();
}

}  // namespace shoal
