#include "runtime/solo/coded_edges.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "runtime/solo/solo.h"
#include "tests/solo/solo_rig.h"

namespace shoal {
namespace {

using testing::HasSubstr;

constexpr int kStages = 4;

class CodedEdgesTest : public SoloRig {
 protected:
  SoloResult train(const RunConfig& config, bool wire) {
    SoloOptions options;
    options.config = config;
    options.factory = factory();
    options.wire = wire;
    options.on_note = [&](const std::string& text) { notes_.push_back(text); };
    auto result = run_solo(options);
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
    return result.ok() ? *std::move(result) : SoloResult();
  }

  std::vector<std::string> notes_;
};

TEST_F(CodedEdgesTest, WholeNumbersThroughInt8AreThoseThatWereSent) {
  const std::string steps = "[sync]\ninner_batch = 64\n[end]\nsteps = 5\n";
  const auto plain = train(config(steps), false);
  EXPECT_FALSE(plain.traffic.has_value());
  EXPECT_FALSE(nlohmann::json::parse(solo_json(plain)).contains("wire"));
  const auto coded = train(config(steps + "[wire]\nforward = \"int8\"\nbackward = \"bf16\"\n"), true);
  EXPECT_EQ(coded.losses.steps(), plain.losses.steps());
  EXPECT_EQ(coded.validation_loss, plain.validation_loss);
  for (const IntegerExecutor* executor : executors_) EXPECT_EQ(executor->mismatches(), 0u);
  EXPECT_THAT(notes_, testing::Contains(HasSubstr("int8 forward, bf16 backward")));

  const Shape shape{2, 16, 64};
  const std::uint64_t crossings = coded.tokens / 32 * (kStages - 1);
  ASSERT_TRUE(coded.traffic.has_value());
  EXPECT_EQ(coded.traffic->forward_bytes, crossings * codec_for(CodecId::kInt8).frame_bytes(shape, DType::kF32));
  EXPECT_EQ(coded.traffic->backward_bytes, crossings * codec_for(CodecId::kBf16).frame_bytes(shape, DType::kF32));
  EXPECT_EQ(coded.traffic->key_frames + coded.traffic->delta_frames, 0u);
  const auto json = nlohmann::json::parse(solo_json(coded));
  EXPECT_EQ(json["wire"]["forward_bytes"], coded.traffic->forward_bytes);
}

TEST_F(CodedEdgesTest, AutoIsRawAndEachEdgeHasItsOwn) {
  EXPECT_EQ(CodedEdges::make(config(""))->text(), "raw forward, raw backward");
  const auto edges = CodedEdges::make(
      config("[wire]\nforward = [\"int8\", \"auto\", \"bf16\"]\nbackward = [\"raw\", \"raw\", \"auto\"]\n"));
  ASSERT_TRUE(edges.ok());
  EXPECT_EQ(edges->text(), "int8, raw and bf16 forward, raw backward");
}

TEST_F(CodedEdgesTest, OneStageHasNoEdge) {
  SoloOptions options;
  options.config = config("[end]\nsteps = 1\n", 1);
  options.factory = factory();
  options.wire = true;
  const auto result = run_solo(options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.code(), ErrorCode::kInput);
  EXPECT_THAT(result.error().message, HasSubstr("[pipeline] stages = 1"));
}

}  // namespace
}  // namespace shoal
