// What [executor] and [wire], [compute] say of each other.
#include <gmock/gmock.h>

#include "runtime/config/config.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string message_with(const std::string& more) {
  const std::string small = "[model]\nlayers = 4\ndim = 32\nheads = 4\npositions = 16\n[data]\npath = \"text.bin\"\n";
  const auto config = parse_config(small + more, "run.toml");
  return config.ok() ? "ok" : config.error().message;
}

TEST(ExecutorOptionsTest, ExecutorsOfWholeNumbersGetNoCodecThatChangesThem) {
  const auto message = [](const std::string& codec, const std::string& kind) {
    return message_with("[wire]\nbackward = \"" + codec + "\"\n[executor]\nkind = \"" + kind + "\"\n");
  };
  for (const std::string kind : {"integer", "paced"}) {
    for (const std::string codec : {"int4", "int4-hadamard", "int2"}) {
      EXPECT_THAT(message(codec, kind), AllOf(HasSubstr("[wire] backward = \"" + codec + "\" does not keep"),
                                              HasSubstr("give raw, bf16, fp16 or int8")));
    }
    for (const std::string codec : {"raw", "int8", "bf16", "fp16"}) EXPECT_EQ(message(codec, kind), "ok") << codec;
  }
  EXPECT_EQ(message("int4", "torch"), "ok");
}

TEST(ExecutorOptionsTest, HowAStageComputesIsOfTheExecutorThatHasLayers) {
  const auto message = [](const std::string& option, const std::string& kind) {
    return message_with("[compute]\n" + option + "\n[executor]\nkind = \"" + kind + "\"\n");
  };
  for (const std::string kind : {"integer", "paced"}) {
    for (const std::string option : {"dtype = \"bf16\"", "recompute = \"stage\""})
      EXPECT_THAT(message(option, kind), AllOf(HasSubstr("[compute] " + option + " is of"), HasSubstr("leave ")));
    for (const std::string taken : {"none", "auto"})
      EXPECT_EQ(message("dtype = \"fp32\"\nrecompute = \"" + taken + "\"", kind), "ok");
  }
  EXPECT_EQ(message("dtype = \"bf16\"\nrecompute = \"stage\"", "torch"), "ok");
}

TEST(ExecutorOptionsTest, APayloadThatWouldBeIgnoredIsRefused) {
  const auto message = [](const std::string& payload, const std::string& kind) {
    return message_with("[sync]\npayload = \"" + payload + "\"\n[executor]\nkind = \"" + kind + "\"\n");
  };
  for (const std::string kind : {"integer", "paced"}) {
    for (const std::string payload : {"bf16", "int8", "int4"})
      EXPECT_THAT(message(payload, kind),
                  AllOf(HasSubstr("[sync] payload = \"" + payload + "\" is of"), HasSubstr("leave ")));
    for (const std::string payload : {"auto", "fp32"}) EXPECT_EQ(message(payload, kind), "ok");
  }
  EXPECT_EQ(message("int8", "torch"), "ok");
}

// Each peer chooses, so that a manifest says it of runs that leave no choice alone.
TEST(ExecutorOptionsTest, WhatWaitsOfAForwardIsLeftToPeersByDefault) {
  const std::string small = "[model]\nlayers = 4\ndim = 32\nheads = 4\npositions = 16\n[data]\npath = \"text.bin\"\n";
  const auto config = parse_config(small, "run.toml");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->compute.recompute, Recompute::kAuto);
  EXPECT_EQ(canonical_text(*config)->find("recompute"), std::string::npos);
  const auto none = parse_config(small + "[compute]\nrecompute = \"none\"\n", "run.toml");
  ASSERT_TRUE(none.ok());
  EXPECT_THAT(*canonical_text(*none), HasSubstr("recompute = \"none\""));
}

}  // namespace
}  // namespace shoal
