// What becomes of a job that cannot be done, at the middle one of three stages with an exact executor.
#include "runtime/stage_peer/entry_jobs.h"

#include <limits>

#include "tests/stage_peer/entry_jobs_fixture.h"

namespace shoal {
namespace {

HostTensor filled(float value) {
  Buffer buffer(2 * 4 * 8 * sizeof(float));
  std::ranges::fill(buffer.as<float>(), value);
  return make_host_tensor(DType::kF32, {2, 4, 8}, std::move(buffer));
}

// Decodes nothing and encodes nothing.
class BrokenCodec final : public Codec {
 public:
  CodecId id() const override { return CodecId::kRaw; }
  std::uint64_t frame_bytes(const Shape&, DType) const override { return 1; }
  Result<Bytes> encode(const PlacedTensor&, TensorRole, const BaseView*, std::uint64_t) const override {
    return make_error(ErrorCode::kUnsupported, "broken");
  }
  Status decode(ByteView, const BaseView*, PlacedBytes) const override {
    return make_error(ErrorCode::kUnsupported, "broken");
  }
};

TEST_F(EntryJobsTest, AnEntryGoesThroughInTheFramesOfItsEdges) {
  const Truth truth = truth_of(1);
  forward(1, raw(truth.activation_in, TensorRole::kActivation));
  ASSERT_FALSE(sent.empty());
  const Bytes on = sent.back().frames.at(1);
  EXPECT_TRUE(std::ranges::equal(on.view(), raw(truth.activation_out, TensorRole::kActivation).view()));
  backward(1, raw(truth.gradient_in, TensorRole::kGradient));
  EXPECT_EQ(state_of(1), EntryState::kCounted);
  EXPECT_EQ(counted(), count_tag(naming::id(1)));
  const std::vector<Sent> up = take<Gradient>(kAbove);
  ASSERT_EQ(up.size(), 1u);
  EXPECT_TRUE(std::ranges::equal(up[0].frames.at(0).view(), raw(truth.gradient_out, TensorRole::kGradient).view()));
}

class AutoCodecTest : public LinesTest {
 protected:
  AutoCodecTest() : LinesTest(EdgeCodecs()) {}
  // The codecs of what the entry sends: its activation, its gradient.
  std::pair<CodecId, CodecId> codecs_of(std::uint64_t serial) {
    const Truth truth = truth_of(serial);
    forward(serial, raw(truth.activation_in, TensorRole::kActivation));
    const Bytes down = sent.back().frames.at(1);
    backward(serial, raw(truth.gradient_in, TensorRole::kGradient));
    const Bytes up = take<Gradient>(kAbove).at(0).frames.at(0);
    return {parse_frame_header(down.view())->codec, parse_frame_header(up.view())->codec};
  }
};

TEST_F(AutoCodecTest, TakesTheCodecThatItsLinesAllow) {
  const auto both = [](CodecId codec) { return std::pair(codec, codec); };
  EXPECT_EQ(codecs_of(1), both(CodecId::kInt8)) << "no line is measured";
  meters.computed(2e3, 4e3);
  link.up = true;
  link.bytes_per_second = 1e9;
  for (std::uint64_t serial = 2; serial < 2 + LineCodec::kInARow - 1; ++serial)
    EXPECT_EQ(codecs_of(serial), both(CodecId::kInt8)) << "it may be a chance";
  EXPECT_EQ(codecs_of(20), both(CodecId::kRaw));
  EXPECT_EQ(events.of[EventKind::kCodec], 2) << "each direction says it once";
  EXPECT_EQ(codecs_of(21), both(CodecId::kRaw));
  link.bytes_per_second = 1e3;
  EXPECT_EQ(codecs_of(22), both(CodecId::kInt8));
  EXPECT_EQ(events.of[EventKind::kCodec], 4);
}

// Lines that training's activations do not fill are not filled by those of a validation.
TEST_F(AutoCodecTest, AnEvaluationsActivationGoesAsTrainingsDo) {
  const auto codec_of_evaluation = [&](std::uint64_t serial) {
    evaluate(serial);
    return parse_frame_header(take<Forward>(kBelow).at(0).frames.at(1).view())->codec;
  };
  EXPECT_EQ(codec_of_evaluation(1), CodecId::kInt8) << "no line is measured";
  session.deltas = delta_codecs_for(CodecId::kAq2);
  EXPECT_EQ(codec_of_evaluation(2), CodecId::kInt8) << "a key frame: what is evaluated is no base and has none";
  EXPECT_EQ(bases.counters().bytes, 0u);
}

// A peer of slow lines does not pass for a fast one because its device is.
TEST_F(LinesTest, WhatAMicrobatchTakesHasTheLinesInIt) {
  const auto told = [&](std::uint64_t serial) {
    const Truth truth = truth_of(serial);
    forward(serial, raw(truth.activation_in, TensorRole::kActivation));
    backward(serial, raw(truth.gradient_in, TensorRole::kGradient));
    const Gradient up = std::get<Gradient>(take<Gradient>(kAbove).at(0).message);
    return std::pair(up.forward_us, up.backward_us);
  };
  device.loop = &loop;
  device.takes = 5ms;
  EXPECT_EQ(told(1), std::pair(5000u, 5000u));
  link.up = true;
  link.bytes_per_second = 1e9;
  EXPECT_EQ(told(2), std::pair(5000u, 5000u)) << "a fast line takes nothing";
  link.bytes_per_second = 320 / 0.1;
  const auto [forward_us, backward_us] = told(3);
  EXPECT_EQ(forward_us, backward_us);
  EXPECT_NEAR(forward_us + backward_us, 100e3, 20e3) << "a tensor takes a tenth of a second";
}

TEST_F(EntryJobsTest, ActivationsThatAreTooLargeAreRefusedAndTheirSenderRests) {
  list(2, {naming::member(kAbove), naming::member(kBeside)});
  for (const std::uint64_t serial : {1, 2, 3}) {
    EXPECT_FALSE(edges.rests(naming::session(kAbove)));
    forward(serial, raw(filled(2e6f), TensorRole::kActivation));
    EXPECT_EQ(state_of(serial), std::nullopt);
    EXPECT_EQ(take<Busy>(kAbove).size(), 1u);
  }
  EXPECT_TRUE(edges.rests(naming::session(kAbove)));
  EXPECT_EQ(events.of[EventKind::kRefused], 3);
  EXPECT_EQ(executor->entry_count(), 0u);
}

// Else nobody of that stage is asked for half a minute and longer, and longer still after that.
TEST_F(EntryJobsTest, TheLastPeerOfAStageDoesNotRest) {
  Member joining = naming::member(kBeside);
  joining.serving = false;
  list(2, {naming::member(kAbove), joining});
  for (std::uint64_t serial = 1; serial <= 5; ++serial) forward(serial, raw(filled(2e6f), TensorRole::kActivation));
  EXPECT_FALSE(edges.rests(naming::session(kAbove)));
  EXPECT_EQ(events.of[EventKind::kRefused], 5);
  list(3, {naming::member(kAbove), naming::member(kBeside)});
  forward(6, raw(filled(2e6f), TensorRole::kActivation));
  EXPECT_TRUE(edges.rests(naming::session(kAbove))) << "another one serves now";
}

TEST_F(EntryJobsTest, ADeltaToABaseThatIsNotHereIsAskedForAsAKeyFrame) {
  session.deltas = delta_codecs_for(CodecId::kAq4);
  const HostTensor before = filled(1), now = filled(2);
  const Base base = encode_activation(*session.deltas, before.view(), {}, 0)->after_key;
  const OutgoingActivation made = *encode_activation(*session.deltas, now.view(), base, 0);
  ASSERT_FALSE(made.delta.empty());
  forward(1, made.delta);
  EXPECT_EQ(take<NeedKeyFrame>(kAbove).size(), 1u);
  EXPECT_EQ(state_of(1), EntryState::kArriving);
  EXPECT_EQ(events.of[EventKind::kRefused], 0);
}

TEST_F(EntryJobsTest, AnActivationThatCannotBeEncodedLeavesNoEntry) {
  const BrokenCodec broken;
  session.deltas = DeltaCodecs{&broken, &broken};
  forward(1, raw(truth_of(1).activation_in, TensorRole::kActivation));
  EXPECT_EQ(state_of(1), std::nullopt);
  EXPECT_EQ(take<Busy>(kAbove).size(), 1u);
  EXPECT_EQ(executor->entry_count(), 0u);
}

TEST_F(EntryJobsTest, AGradientThatCannotBeUsedIsItsSendersFaultAndAddedNowhere) {
  forward(1, raw(truth_of(1).activation_in, TensorRole::kActivation));
  backward(1, raw(filled(std::numeric_limits<float>::quiet_NaN()), TensorRole::kGradient));
  EXPECT_EQ(state_of(1), EntryState::kBelow) << "it waits for another gradient";
  EXPECT_EQ(counted(), 0u);
  EXPECT_EQ(events.of[EventKind::kRefused], 0) << "the activation is not to blame";
}

TEST_F(EntryJobsTest, AGradientThatFailsHereIsToldByName) {
  forward(1, raw(truth_of(1).activation_in, TensorRole::kActivation));
  backward(1, raw(filled(1), TensorRole::kGradient));  // finite, and not this microbatch's
  EXPECT_EQ(events.of[EventKind::kRefused], 1);
  EXPECT_EQ(counted(), 0u);
}

TEST_F(EntryJobsTest, AnUndoThatFailsEndsTheSession) {
  const Truth truth = truth_of(1);
  forward(1, raw(truth.activation_in, TensorRole::kActivation));
  backward(1, raw(truth.gradient_in, TensorRole::kGradient));
  const EntrySerial serial = ledger.entries().find_live(naming::id(1))->name.serial;
  ASSERT_TRUE(executor->undo(serial).ok());
  ledger.on_release(naming::session(kAbove), Release{naming::lease(kAbove, 1)});
  ASSERT_TRUE(jobs.start(ledger.next_job(false)));
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_NE(lost[0].find("an undo failed"), std::string::npos);
}

}  // namespace
}  // namespace shoal
