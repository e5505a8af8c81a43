#include "state/first_state.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "stages/integer_executor.h"
#include "state/state_transfer.h"
#include "sync/outer_rule.h"

namespace shoal {
namespace {

StageSpec some_stage(std::uint32_t dim) {
  return split_model({.layers = 2, .dim = dim, .heads = 2, .positions = 4, .vocabulary = 300}, 2)->back();
}

class Numbers final : public WeightSource {
 public:
  Status read(const StageSpec& spec, std::uint64_t first, std::span<float> out) const override {
    EXPECT_LE(first + out.size(), parameter_count(spec));
    largest = std::max(largest, out.size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>((first + i) % 1009);
    return fails ? Status(make_error(ErrorCode::kIo, "the disk is gone")) : Status();
  }
  mutable std::size_t largest = 0;
  bool fails = false;
};

Bytes whole_image(const StageSpec& spec, const Numbers& numbers, const FirstState& state) {
  std::vector<std::uint8_t> bytes;
  for (std::uint32_t index = 0; index < state.chunks; ++index) {
    const Bytes chunk = first_chunk(spec, numbers, index).value();
    bytes.insert(bytes.end(), chunk.data(), chunk.data() + chunk.size());
  }
  return Bytes::from_vector(std::move(bytes));
}

TEST(FirstStateTest, ItsChunksAreTheImageThatAPeerMakesOfIt) {
  for (const std::uint32_t dim : {8u, 256u}) {  // one chunk, and several
    const StageSpec spec = some_stage(dim);
    const Numbers numbers;
    const FirstState state = measure_first_state(spec, numbers).value();
    EXPECT_EQ(state.chunks, (state.bytes + kHashChunkBytes - 1) / kHashChunkBytes);
    EXPECT_LE(numbers.largest * sizeof(float), kHashChunkBytes) << "never more than a chunk at a time";
    const Bytes image = whole_image(spec, numbers, state);
    IntegerExecutor peer(spec, parameter_count(spec));
    ASSERT_TRUE(numbers.read(spec, 0, peer.arena().span(ArenaRole::kAnchor)).ok());
    EXPECT_TRUE(std::ranges::equal(ByteView(make_first_image(peer)), ByteView(image)));
    const StateImage hashed = hash_state_image(image).value();
    EXPECT_EQ(hashed.digest, state.digest);
    EXPECT_EQ(hashed.root, state.root);
    EXPECT_EQ(hashed.bytes, state.bytes);
    const auto sizes = image_sizes(parameter_count(spec));
    EXPECT_NE(std::ranges::find(sizes, state.bytes), sizes.end());
  }
}

TEST(FirstStateTest, LoadsUnderEitherRuleWithSharedArraysOfZeros) {
  const StageSpec spec = some_stage(8);
  const Numbers numbers;
  const Bytes image = whole_image(spec, numbers, measure_first_state(spec, numbers).value());
  const std::unique_ptr<OuterRule> rules[] = {make_allreduce_rule(), make_diloco_rule()};
  for (const auto& made : rules) {
    IntegerExecutor joiner(spec, parameter_count(spec));
    for (const ArenaRole role : made->shared_roles()) std::ranges::fill(joiner.arena().span(role), 5.0f);
    const auto loaded = load_state_image(joiner, image, StateLoad::kFresh, [&](RuleId) { return made.get(); });
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(loaded->version, Version(0));
    EXPECT_EQ(joiner.arena().span(ArenaRole::kCurrent)[7], 7.0f);
    EXPECT_EQ(joiner.arena().span(ArenaRole::kAnchor)[7], 7.0f);
    for (const ArenaRole role : made->shared_roles()) EXPECT_EQ(joiner.arena().span(role)[7], 0.0f);
  }
}

TEST(FirstStateTest, AnAnchorAloneIsNoStateOfALaterVersion) {
  const StageSpec spec = some_stage(8);
  const Numbers numbers;
  const Bytes image = whole_image(spec, numbers, measure_first_state(spec, numbers).value());
  std::vector<std::uint8_t> bytes(image.data(), image.data() + image.size());
  bytes[16] = 1;  // the version
  const auto rule = make_diloco_rule();
  IntegerExecutor joiner(spec, parameter_count(spec));
  EXPECT_EQ(load_state_image(joiner, Bytes::from_vector(std::move(bytes)), StateLoad::kFresh,
                             [&](RuleId) { return rule.get(); })
                .code(),
            ErrorCode::kMalformed);
}

TEST(FirstStateTest, WhatTheSourceCannotReadIsItsError) {
  Numbers numbers;
  numbers.fails = true;
  EXPECT_EQ(measure_first_state(some_stage(8), numbers).code(), ErrorCode::kIo);
}

}  // namespace
}  // namespace shoal
