#include "runtime/plan/layout_shape.h"

#include <gtest/gtest.h>

#include "runtime/config/derived_options.h"
#include "runtime/plan/stage_memory.h"
#include "tests/plan/small_run.h"

namespace shoal {
namespace {

RunConfig torch_run() {
  RunConfig config = small_run();
  config.sync.inner_batch = 4 * config.targets_per_microbatch();
  config.sync.inner_steps = 10;
  config.wire.forward.codecs = {Auto<CodecId>(CodecId::kRaw)};
  return config;
}

PeerList list_of(const std::string& text) { return *parse_peer_list(text, "peers.toml"); }

TEST(LayoutShapeTest, SpeedsOfEitherKindAreOfTheSameWork) {
  const RunConfig config = torch_run();
  const auto of = layout_shape(config,
                               list_of("[[peer]]\nname = \"a\"\ntokens_per_s = 5120\n"
                                       "[[peer]]\nname = \"b\"\nstage_ms = 50\n"
                                       "[[peer]]\nname = \"c\"\nflops = 1e9\n"),
                               {});
  ASSERT_TRUE(of.ok()) << of.error().message;
  const double work = of->shape.stages[0].work + of->shape.stages[1].work;
  EXPECT_NEAR(work, 3 * 512 * (forward_cost(split_model(config.model_spec(), 1, {})->front())), 1e-6 * work);
  EXPECT_NEAR(of->shape.peers[0].speed, 10 * work, 1e-6 * work) << "ten microbatches of 512 tokens";
  EXPECT_NEAR(of->shape.peers[1].speed, 20 * work / 2, 1e-6 * work);
  EXPECT_EQ(of->shape.peers[2].speed, 1e9);
  EXPECT_EQ(of->shape.round_microbatches, 40);
  EXPECT_FALSE(of->shape.every_step);
  EXPECT_FALSE(of->lines_known);
}

TEST(LayoutShapeTest, BytesAreThoseOfTheCodecs) {
  const auto of = layout_shape(torch_run(), list_of("[[peer]]\nname = \"a\"\nflops = 1e9\n"), {});
  ASSERT_TRUE(of.ok());
  const double values = 8 * 64 * 64;
  EXPECT_NEAR(of->shape.stages[0].forward_bytes, 4 * values + 512, 200) << "raw, and a byte a token";
  EXPECT_NEAR(of->shape.stages[0].backward_bytes, values, 0.1 * values) << "auto is int8";
  EXPECT_EQ(of->shape.stages[1].forward_bytes, 0);
  const auto floats = static_cast<double>(parameter_count(last_stage(torch_run())));
  EXPECT_NEAR(of->shape.stages[1].round_bytes, floats, 0.1 * floats) << "rounds travel as int8";
}

TEST(LayoutShapeTest, PeersFitByTheirMemoryOrStayWhereTheyAre) {
  const RunConfig config = torch_run();
  const auto specs = *split_model(config.model_spec(), 2, {});
  const std::uint64_t small = stage_memory(config, specs[0]).needed(kCreditsLeast);
  const auto of =
      layout_shape(config,
                   list_of("[[peer]]\nname = \"a\"\nflops = 1\nmemory_mib = " + std::to_string((small >> 20) + 1) +
                           "\n[[peer]]\nname = \"b\"\nflops = 1\nstage = 1\n"
                           "[[peer]]\nname = \"c\"\nflops = 1\nmemory_mib = 100000\n"),
                   {});
  ASSERT_TRUE(of.ok()) << of.error().message;
  EXPECT_TRUE(of->shape.peers[0].fits[0]);
  EXPECT_EQ(of->shape.peers[1].fits, (std::vector<bool>{false, true}));
  EXPECT_EQ(of->shape.peers[2].fits, (std::vector<bool>{true, true}));
}

TEST(LayoutShapeTest, RegionsAreThoseOfTheTable) {
  const auto links = *parse_links("a,b,delay_ms,bandwidth_mbps\nhome,lab,20,80\n", "links.csv");
  auto of = layout_shape(torch_run(),
                         list_of("trainer = \"lab\"\n[[peer]]\nname = \"a\"\nregion = \"lab\"\nflops = 1\n"
                                 "up_mbps = 8\n"),
                         links);
  ASSERT_TRUE(of.ok()) << of.error().message;
  EXPECT_EQ(of->shape.peers[0].region, 1u);
  EXPECT_EQ(of->shape.peers[0].up, 1e6);
  EXPECT_EQ(of->shape.trainer, 1u);
  EXPECT_EQ(of->shape.line(0, 1).rate, 1e7);
  of = layout_shape(torch_run(), list_of("[[peer]]\nname = \"a\"\nregion = \"moon\"\nflops = 1\n"), links);
  ASSERT_FALSE(of.ok());
  EXPECT_EQ(of.error().message, "peers.toml:1: peer \"a\" is in \"moon\"; the table of links knows: home lab");
  of = layout_shape(torch_run(), list_of("\ntrainer = \"moon\"\n[[peer]]\nname = \"a\"\nregion = \"lab\"\nflops = 1\n"),
                    links);
  ASSERT_FALSE(of.ok());
  EXPECT_EQ(of.error().message, "peers.toml:2: the trainer is in \"moon\"; the table of links knows: home lab");
}

TEST(LayoutShapeTest, WhatIsMissingIsNamedWithItsLine) {
  const auto said = [](const std::string& text, const RunConfig& config) {
    const auto of = layout_shape(config, list_of(text), {});
    return of.ok() ? std::string("ok") : of.error().message;
  };
  EXPECT_TRUE(said("[[peer]]\nname = \"a\"\n", torch_run()).starts_with("peers.toml:1: peer \"a\" has no speed. HINT"));
  EXPECT_TRUE(said("\n[[peer]]\nname = \"a\"\nflops = 1\nstage = 2\n", torch_run())
                  .starts_with("peers.toml:2: peer \"a\" is to serve stage 2; the run has 2 stages"));
  RunConfig paced = torch_run();
  paced.executor.kind = ExecutorKind::kPaced;
  EXPECT_TRUE(said("[[peer]]\nname = \"a\"\nflops = 1\n", paced).find("computes no FLOPs") != std::string::npos);
  paced.executor.forward_ms = 10;
  paced.executor.backward_ms = 30;
  EXPECT_EQ(said("[[peer]]\nname = \"a\"\n", paced), "ok");
  const auto of = layout_shape(paced, list_of("[[peer]]\nname = \"a\"\n"), {});
  EXPECT_DOUBLE_EQ(of->shape.peers[0].speed / of->shape.stages[0].work, 25);
}

}  // namespace
}  // namespace shoal
