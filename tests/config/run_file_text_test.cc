// The run file that `shoal init` writes: what is set, and what could be.
#include "runtime/config/run_file_text.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>

#include "runtime/config/config_table.h"
#include "runtime/config/derived_options.h"

namespace shoal {
namespace {

using testing::HasSubstr;
using testing::Not;

RunConfig small_run() {
  RunConfig config = default_config();
  config.run.name = "mine";
  config.model.layers = 2;
  config.model.dim = 64;
  config.model.heads = 2;
  config.model.positions = 64;
  config.data.paths = {"a \"good\" text\\1.txt"};
  config.pipeline.stages = 2;
  config.wire.forward.codecs = {CodecId::kInt8};
  config.end.tokens = 100'000;
  return config;
}

std::string manifest_of(RunConfig config) {
  derive_options(config);
  return *canonical_text(config);
}

TEST(RunFileTextTest, IsTheRunThatItWasMadeOf) {
  const RunConfig config = small_run();
  const auto again = parse_config(run_file_text(config), "run.toml");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*canonical_text(*again), manifest_of(config));
  EXPECT_EQ(again->data.paths, config.data.paths);
}

TEST(RunFileTextTest, WhatIsAtItsDefaultIsACommentWithIt) {
  const std::string text = run_file_text(small_run());
  EXPECT_THAT(text, HasSubstr("\nlayers = 2 "));
  EXPECT_THAT(text, HasSubstr("\nforward = \"int8\" "));
  for (const std::string_view key : {"lr", "in_flight", "outer_momentum"}) {
    const OptionRow& row = *std::ranges::find(option_table(), key, &OptionRow::key);
    EXPECT_THAT(text, HasSubstr("\n#" + std::string(key) + " = " + std::string(row.fallback) + " "));
  }
  EXPECT_THAT(text, Not(HasSubstr("digest"))) << "launch writes those";
}

// A person takes the # away and nothing else.
std::string without_marks(std::string text) {
  for (std::size_t at = text.find("\n#"); at != std::string::npos; at = text.find("\n#", at + 1))
    if (at + 2 < text.size() && text[at + 2] >= 'a' && text[at + 2] <= 'z') text.erase(at + 1, 1);
  return text;
}

TEST(RunFileTextTest, EveryCommentedOptionIsOneThatTheFileTakes) {
  const std::string text = without_marks(run_file_text(small_run()));
  EXPECT_THAT(text, HasSubstr("\nlr = \"auto\" "));
  const auto config = parse_config(text, "run.toml");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(*canonical_text(*config), manifest_of(small_run()));
}

TEST(RunFileTextTest, LinesFitAPage) {
  std::istringstream lines(run_file_text(small_run()));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
}

}  // namespace
}  // namespace shoal
