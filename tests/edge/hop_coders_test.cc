// Frames to tensors and back: what is used as it is, what is scaled, what is refused, and what both ends keep.
#include "runtime/edge/hop_coders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "common/rng.h"

namespace shoal {
namespace {

const Shape kShape{2, 8, 64};
constexpr std::size_t kCount = 1024;

HostTensor alike(float value) {
  Buffer buffer(kCount * sizeof(float));
  std::ranges::fill(buffer.as<float>(), value);
  return make_host_tensor(DType::kF32, kShape, std::move(buffer));
}
Bytes raw(const HostTensor& tensor) {
  return codec_for(CodecId::kRaw).encode(tensor.view(), TensorRole::kActivation).value();
}
struct Decoded {
  Result<double> rms;
  std::vector<float> values;
};
Decoded decoded(FrameCoder& coder) {
  std::vector<float> values(kCount);
  auto* bytes = reinterpret_cast<std::uint8_t*>(values.data());
  auto rms = coder.decode({DType::kF32, kShape, {bytes, kCount * sizeof(float)}});
  return {std::move(rms), std::move(values)};
}

TEST(HopCodersTest, AnActivationThatIsTooLargeIsRefusedOrScaledToTheBound) {
  const auto coder_of = [](std::optional<NormGuard::Bound> bound) {
    return ActivationCoder(raw(alike(8)), {}, CodecId::kRaw, 0, bound);
  };
  ActivationCoder fits = coder_of({{8, 0}}), refused = coder_of({{2, 7}}), scaled = coder_of({{2, 8}}),
                  evaluated = coder_of(std::nullopt);
  EXPECT_EQ(decoded(fits).values, std::vector<float>(kCount, 8));
  EXPECT_EQ(fits.input().verdict, Judged::Verdict::kFits);
  EXPECT_EQ(decoded(refused).rms.code(), ErrorCode::kMalformed);
  EXPECT_EQ(refused.input().verdict, Judged::Verdict::kTooLarge);
  EXPECT_EQ(refused.input().rms, 8);
  EXPECT_EQ(decoded(scaled).values, std::vector<float>(kCount, 2));
  EXPECT_EQ(scaled.input().verdict, Judged::Verdict::kScaled);
  EXPECT_EQ(decoded(evaluated).values, std::vector<float>(kCount, 8));
  EXPECT_FALSE(evaluated.input().rms) << "the norm guard learns nothing of it";
}

TEST(HopCodersTest, ABadInputIsAGradientThatCannotBeUsed) {
  const auto bad = [](const Bytes& frame) {
    GradientCoder coder(frame, CodecId::kRaw, 0, NormGuard::Bound{2, 0});
    (void)decoded(coder);
    return coder.bad_input();
  };
  HostTensor turned = alike(1);
  std::swap(turned.shape[0], turned.shape[1]);
  EXPECT_FALSE(bad(raw(alike(1))));
  EXPECT_TRUE(bad(raw(alike(3))));
  EXPECT_TRUE(bad(raw(alike(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(bad(raw(turned)));
  EXPECT_TRUE(bad({}));
}

TEST(HopCodersTest, ADeltaNeedsItsBaseAndLeavesBothEndsTheNext) {
  Rng rng(1);
  Buffer buffer(kCount * sizeof(float));
  for (float& value : buffer.as<float>()) value = static_cast<float>(rng.normal());
  const HostTensor tensor = make_host_tensor(DType::kF32, kShape, std::move(buffer));
  ForwardBases sender;
  sender.below = delta_codecs_for(CodecId::kAq4);
  sender.outgoing = encode_activation(*sender.below, alike(1).view(), {}, 0)->after_key;
  ActivationCoder made({}, sender, CodecId::kAq4, 5, std::nullopt);
  ASSERT_TRUE(made.encode({tensor.view()}).ok());
  ASSERT_FALSE(made.made().delta.empty());

  ForwardBases receiver;
  receiver.above = sender.below;
  ActivationCoder without(made.made().delta, receiver, CodecId::kRaw, 0, std::nullopt);
  EXPECT_EQ(decoded(without).rms.code(), ErrorCode::kGone);
  EXPECT_TRUE(without.base_missing());
  receiver.incoming = sender.outgoing;
  ActivationCoder with(made.made().delta, receiver, CodecId::kRaw, 0, std::nullopt);
  ASSERT_TRUE(decoded(with).rms.ok());
  EXPECT_FALSE(with.base_missing());
  EXPECT_EQ(with.take_after().hash, made.made().after_delta.hash);
}

}  // namespace
}  // namespace shoal
