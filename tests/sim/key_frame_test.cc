// A codec with bases, put into whole swarms through the seam for it: half of its delta frames name a base that no
// receiver has.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "common/log.h"
#include "compression/frame.h"
#include "sim/checkers.h"
#include "sim/liveness.h"
#include "sim/swarm.h"

namespace shoal {
namespace {

// Raw differences to a base, which the frame names by a hash of its bytes. Pure, as a codec is.
class DifferenceCodec final : public Codec {
 public:
  CodecId id() const override { return CodecId::kRaw; }
  std::uint64_t frame_bytes(const Shape& shape, DType dtype) const override {
    return codec_for(CodecId::kRaw).frame_bytes(shape, dtype);
  }
  Result<Bytes> encode(const TensorView& tensor, TensorRole role, const TensorView* base,
                       std::uint64_t) const override {
    if (base == nullptr) return make_error(ErrorCode::kGone, "a difference needs a base");
    Buffer frame(frame_bytes(tensor.shape, tensor.dtype));
    const std::size_t header_bytes = frame.size() - tensor.bytes.size();
    for (std::size_t i = 0; i < tensor.f32().size(); ++i) {
      const float difference = tensor.f32()[i] - base->f32()[i];
      std::memcpy(frame.data() + header_bytes + 4 * i, &difference, 4);
    }
    seal_frame(
        {CodecId::kRaw, kRawVersion, role, tensor.dtype, tensor.shape, tensor.bytes.size(), crc32c(base->bytes), 0},
        frame.view());
    return std::move(frame).freeze();
  }
  Status decode(ByteView frame, const TensorView* base, MutableByteView out) const override {
    SHOAL_ASSIGN(const FrameView view, read_frame(frame));
    if (base == nullptr || view.header.base_hash != crc32c(base->bytes))
      return make_error(ErrorCode::kGone, "the base of a frame is not here");
    SHOAL_TRY(check_payload(view));
    std::memcpy(out.data(), view.payload.data(), out.size());
    for (std::size_t i = 0; i < base->f32().size(); ++i) {
      float value;
      std::memcpy(&value, out.data() + 4 * i, 4);
      value += base->f32()[i];
      std::memcpy(out.data() + 4 * i, &value, 4);
    }
    return Status::success();
  }
};

// The base of a sample is one of two constants; of these, receivers hold the first alone.
class HalfOfTheBases final : public FrameCoder {
 public:
  std::optional<Bytes> delta_for(const Session&, SampleId sample, const HostTensor& activation) override {
    const HostTensor base = constant(activation.shape, 1.0f + static_cast<float>(sample.value % 2));
    (sample.value % 2 == 0 ? held : lacking) += 1;
    const TensorView view = base.view();
    return codec_.encode(activation.view(), TensorRole::kActivation, &view, 0).value();
  }
  void on_branch(const MicrobatchId&, const Session&, const Lease& lease, BranchEnd end) override {
    sent += end == BranchEnd::kSent;
    settled += end == BranchEnd::kSettled;
    const bool fits = end == BranchEnd::kSent ? out.insert(lease).second : out.erase(lease) == 1;
    EXPECT_TRUE(fits) << "a branch has one end";
  }
  Result<HostTensor> decode(ByteView frame, DType dtype, const Shape& shape) override {
    SHOAL_ASSIGN(const FrameHeader header, parse_frame_header(frame));
    if (!header.base_hash) return decode_tensor(frame, dtype, shape);
    const HostTensor base = constant(shape, 1);
    const TensorView view = base.view();
    Buffer tensor(base.bytes.size());
    SHOAL_TRY(codec_.decode(frame, &view, tensor.view()));
    ++decoded;
    return make_host_tensor(dtype, shape, std::move(tensor));
  }

  std::size_t held = 0, lacking = 0, decoded = 0;  // deltas sent, to a base that receivers hold or lack; read
  std::size_t sent = 0, settled = 0;
  std::set<Lease> out;

 private:
  static HostTensor constant(const Shape& shape, float value) {
    Buffer buffer(static_cast<std::size_t>(element_count(shape)) * sizeof(float));
    for (float& each : buffer.as<float>()) each = value;
    return make_host_tensor(DType::kF32, shape, std::move(buffer));
  }
  DifferenceCodec codec_;
};

SwarmOptions options_with(FrameCoder& coder, RuleId rule, std::uint64_t microbatches) {
  SwarmOptions options;
  options.seed = 5;
  options.stages = 3;
  options.config = small_config(rule, 3, microbatches);
  options.coder = &coder;
  return options;
}

std::size_t count(const Swarm& swarm, EventKind event) {
  return static_cast<std::size_t>(std::count_if(swarm.events().begin(), swarm.events().end(),
                                                [&](const EventRecord& record) { return record.event == event; }));
}

class KeyFrameTest : public testing::TestWithParam<RuleId> {};

TEST_P(KeyFrameTest, AFrameWithoutItsBaseIsSentAgainAsAKeyFrameInTheSameBranch) {
  set_log_level(LogLevel::kError);
  constexpr std::uint64_t kMicrobatches = 48, kBoundaries = 2;
  HalfOfTheBases coder;
  Swarm swarm(options_with(coder, GetParam(), kMicrobatches));
  ASSERT_TRUE(swarm.run_to_end(600s));
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
  EXPECT_EQ(swarm.summary().lost, 0u);
  EXPECT_EQ(count(swarm, EventKind::kHopTimer), 0u);
  EXPECT_GT(coder.lacking, 20u);
  EXPECT_EQ(count(swarm, EventKind::kNeedKeyFrame), coder.lacking);
  EXPECT_EQ(count(swarm, EventKind::kKeyFrame), coder.lacking);
  EXPECT_EQ(coder.decoded, coder.held) << "a delta whose base is there costs no second frame";
  EXPECT_EQ(coder.held + coder.lacking, kMicrobatches * kBoundaries) << "what is evaluated is sent whole";
  const std::uint64_t evaluated = swarm.options().config.data.validation_samples * kBoundaries;
  EXPECT_EQ(coder.sent, coder.held + coder.lacking + evaluated) << "a key frame opens no branch";
  EXPECT_EQ(coder.settled, kMicrobatches * kBoundaries);
  EXPECT_TRUE(coder.out.empty()) << "every branch has ended";
  set_log_level(LogLevel::kInfo);
}

TEST_P(KeyFrameTest, CountsOnceThoughPeersDieBetweenTheQuestionAndTheKeyFrame) {
  set_log_level(LogLevel::kError);
  HalfOfTheBases coder;
  Swarm swarm(options_with(coder, GetParam(), 600));
  std::size_t asked = 0, killed = 0;
  for (const std::uint16_t stage : {0, 1, 2}) {
    const TimePoint give_up = swarm.loop().now() + 120s;
    for (const std::size_t before = asked; asked == before && !swarm.finished();) {
      swarm.run_for(1ms);
      asked = count(swarm, EventKind::kNeedKeyFrame);
      ASSERT_LT(swarm.loop().now(), give_up) << ::testing::PrintToString(waits_for_graph(swarm));
    }
    if (swarm.finished()) break;
    std::size_t victim = 0;  // of two as a rule: the other one holds the anchor
    while (victim < 5 && swarm.peers()[victim]->peer->report().stage != StageId(stage)) ++victim;
    swarm.kill_peer(victim);
    ++killed;
    swarm.run_for(2s);
    swarm.restart_peer(victim);
    swarm.run_for(1s);
    asked = count(swarm, EventKind::kNeedKeyFrame);
  }
  EXPECT_EQ(killed, 3u);
  ASSERT_TRUE(swarm.run_to_end(900s));
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
  set_log_level(LogLevel::kInfo);
}

INSTANTIATE_TEST_SUITE_P(Rules, KeyFrameTest, testing::Values(RuleId::kAllreduce, RuleId::kDiloco));

}  // namespace
}  // namespace shoal
