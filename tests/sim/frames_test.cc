// Frames that nobody asked for do not cross the line: they are refused when their header is here.
#include "runtime/config/frames_allowed.h"
#include "tests/sim/stranger.h"
#include "tests/transport/samples.h"

namespace shoal {
namespace {

constexpr std::uint64_t kFrame = 16u << 20;  // four times what may be under way before the receiver says a word

Bytes frame() { return Bytes::from_vector(std::vector<std::uint8_t>(kFrame)); }

TEST(FramesTest, OfAStrangerAreRefusedByPeerAndLaunchingProcess) {
  for (const bool to_launch : {false, true})
    for (const Message& message : sample_messages()) {
      if (message.index() < 5 || std::holds_alternative<End>(message)) continue;  // of the link itself
      SwarmOptions options;
      options.stages = options.replicas = 1;
      options.config = small_config(RuleId::kDiloco, 1, 100'000);
      Swarm swarm(options);
      swarm.run_for(3s);
      const auto& peer = *swarm.peers()[0];
      ASSERT_NE(peer.peer->stage_peer(), nullptr);
      Stranger stranger(swarm, swarm.launch()->authority().members().run);
      const PeerId to = to_launch ? as_peer(swarm.launch()->authority().members().run) : peer.key.id();
      stranger.say(to, to_launch ? "launch:1" : peer.address, message, {frame()});
      swarm.run_for(3s);
      ASSERT_GE(stranger.ups, 1u);
      EXPECT_LT(stranger.stats(to).sent_bytes, kFrame / 2) << name_of(message) << (to_launch ? " to the launch" : "");
    }
}

TEST(FramesTest, OfAMemberHaveABoundByTheShapesOfItsStage) {
  const RunConfig config = small_config(RuleId::kDiloco, 3, 100);
  const auto specs = split_model(config.model_spec(), 3, config.pipeline.layers_per_stage).value();
  const std::uint64_t activation = 64 + 2 * 4 * 8 * sizeof(float), tokens = 64 + 2 * 5;
  for (const Message& message : sample_messages()) {
    const auto allowed = [&](std::size_t stage) { return frame_bytes_allowed(message, config, specs[stage], 1000); };
    if (std::holds_alternative<Forward>(message)) {
      EXPECT_EQ(allowed(0), tokens);
      EXPECT_EQ(allowed(2), tokens + activation);
    } else if (std::holds_alternative<Gradient>(message)) {
      EXPECT_EQ(allowed(0), activation);
      EXPECT_EQ(allowed(2), 0u) << "nobody is below the last stage";
    } else {
      EXPECT_EQ(allowed(1), std::holds_alternative<RoundPart>(message) ? 1000u : 0u) << name_of(message);
    }
  }
}

// A tile takes its whole bytes, so a tensor of two elements is smaller raw.
TEST(FramesTest, ATinyActivationHasRoomWhateverItsCodec) {
  RunConfig config = small_config(RuleId::kDiloco, 3, 100);
  config.data.sequences = 1;
  StageSpec spec = split_model(config.model_spec(), 3, config.pipeline.layers_per_stage).value()[1];
  spec.model.dim = 2;
  spec.model.positions = 1;
  const std::uint64_t allowed = frame_bytes_allowed(Gradient{}, config, spec, 0);
  for (const CodecId codec : kCodecs) EXPECT_LE(codec_for(codec).frame_bytes({1, 1, 2}, DType::kF32), allowed);
}

TEST(FramesTest, BehindACutNoMoreIsAllowedThanCrosses) {
  const RunConfig config = small_config(RuleId::kDiloco, 3, 100);
  StageSpec spec = split_model(config.model_spec(), 3, config.pipeline.layers_per_stage).value()[1];
  spec.model.dim = spec.model.positions = 64;
  const std::uint64_t wide = frame_bytes_allowed(Gradient{}, config, spec, 0);
  spec.model.boundary = 16;
  const std::uint64_t allowed = frame_bytes_allowed(Gradient{}, config, spec, 0);
  const Shape crosses{config.data.sequences, spec.model.positions, spec.model.boundary};
  EXPECT_GE(allowed, codec_for(CodecId::kRaw).frame_bytes(crosses, DType::kF32));
  EXPECT_LT(allowed, wide / 2);
}

}  // namespace
}  // namespace shoal
