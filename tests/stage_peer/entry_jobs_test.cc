// What becomes of a job that cannot be done, at the middle one of three stages with an exact executor.
#include "runtime/stage_peer/entry_jobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/fault.h"
#include "sim/sim_loop.h"
#include "stages/integer_executor.h"
#include "tests/router/names.h"
#include "tests/stages/host_passes.h"

namespace shoal {
namespace {

constexpr std::uint64_t kSelf = 50, kAbove = 2, kBelow = 3, kBeside = 4;  // sessions

Remote remote_of(std::uint64_t tag) { return {naming::peer(tag), naming::session(tag)}; }

RunConfig three_stages() {
  RunConfig config;
  config.model = {{.layers = 3, .dim = 8, .heads = 2, .positions = 4, .vocabulary = 256}, {}, {}};
  config.data.sequences = 2;
  config.pipeline.stages = 3;
  config.timing = {4, 10};
  config.wire.forward.codecs = config.wire.backward.codecs = {CodecId::kRaw};
  return config;
}

Bytes raw(const HostTensor& tensor, TensorRole role) {
  return codec_for(CodecId::kRaw).encode(tensor.view(), role).value();
}

HostTensor tokens() { return make_host_tensor(DType::kU8, {2, 5}, Buffer(10)); }

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
  Result<Bytes> encode(const TensorView&, TensorRole, const BaseView*, std::uint64_t) const override {
    return make_error(ErrorCode::kUnsupported, "broken");
  }
  Status decode(ByteView, const BaseView*, MutableByteView) const override {
    return make_error(ErrorCode::kUnsupported, "broken");
  }
};

// Jobs are done where they are given, and take this long.
struct InlineQueue final : WorkQueue {
  void run(WorkKind, std::function<void()> job, std::function<void()> done) override {
    job();
    if (takes > Duration::zero()) loop->run_for(takes);
    done();
  }
  SimLoop* loop = nullptr;
  Duration takes{0};
};

struct CountedEvents final : EventLog {
  void write(const EventRecord& record) override { ++of[record.event]; }
  void set_session(const Session&) override {}
  void set_stage(StageId) override {}
  std::map<EventKind, int> of;
};

class EntryJobsTest : public testing::Test, private Links, private StagePeerOwner {
 protected:
  struct Sent {
    PeerId to;
    Message message;
    std::vector<Bytes> frames;
  };

  explicit EntryJobsTest(RunConfig config = three_stages())
      : options{std::make_shared<const RunConfig>(std::move(config)), specs[1], naming::session(kSelf),
                naming::peer(1)} {
    list(1, {naming::member(kAbove)});
  }
  void list(std::uint64_t epoch, std::vector<Member> above) {
    MemberList list;
    list.epoch = Epoch(epoch);
    for (const auto& [stage, tags] :
         {std::pair{0, std::move(above)}, std::pair{2, std::vector{naming::member(kBelow)}}}) {
      StageMembers& members = list.stages.emplace_back();
      members.stage = StageId(static_cast<std::uint16_t>(stage));
      members.members = tags;
    }
    entries.on_members(list);
  }

  // What an honest stage 0 sends of a microbatch, and what its neighbours make of it.
  struct Truth {
    HostTensor activation_in, activation_out, gradient_in, gradient_out;
  };
  Truth truth_of(std::uint64_t serial) {
    Truth truth;
    std::vector<std::unique_ptr<IntegerExecutor>> chain;
    HostTensor travelling;
    for (const StageSpec& each : specs) {
      chain.push_back(std::make_unique<IntegerExecutor>(each));
      (each.stage.value == 1 ? truth.activation_in : truth.activation_out) = travelling;
      travelling = pass_forward(*chain.back(), {1, naming::id(serial), tokens()}, travelling)->activation;
    }
    truth.gradient_in = pass_backward(*chain[2], 1, {}, WindowSlot::kA)->gradient;
    truth.gradient_out = pass_backward(*chain[1], 1, truth.gradient_in, WindowSlot::kA)->gradient;
    return truth;
  }
  // The stage above sends a microbatch with this activation; its forward runs.
  void forward(std::uint64_t serial, const Bytes& activation, const Bytes& ids = raw(tokens(), TensorRole::kTokens)) {
    Forward message;
    message.microbatch = naming::id(serial);
    message.sample = SampleId(serial);
    message.lease = naming::lease(kAbove, serial);
    message.above = {naming::session(1), naming::session(kAbove)};
    message.stage = StageId(1);
    entries.on_forward(remote_of(kAbove), message, ++transfer);
    Result<std::vector<Bytes>> frames = std::vector<Bytes>{ids, activation};
    ASSERT_TRUE(entries.on_frames(remote_of(kAbove), transfer, frames));
    (void)jobs.start_release();  // of what failed before
    ASSERT_TRUE(jobs.start_next());
  }
  // The stage below answers with this gradient; the backward runs.
  void backward(std::uint64_t serial, const Bytes& gradient) {
    const std::vector<Sent> asked = take<Forward>(kBelow);
    ASSERT_EQ(asked.size(), 1u);
    Gradient message;
    message.lease = std::get<Forward>(asked[0].message).lease;
    message.microbatch = naming::id(serial);
    message.path = {naming::entry_name(kBelow, serial)};
    message.tags = {PathTag(serial)};
    message.targets = options.config->targets_per_microbatch();
    ASSERT_TRUE(entries.courier().on_message(remote_of(kBelow), message, ++transfer, loop.now()));
    Result<std::vector<Bytes>> frames = std::vector<Bytes>{gradient};
    ASSERT_TRUE(entries.on_frames(remote_of(kBelow), transfer, frames));
    ASSERT_TRUE(jobs.start_next());
  }
  // What was sent to that session since the last call.
  template <class T>
  std::vector<Sent> take(std::uint64_t tag) {
    std::vector<Sent> result;
    std::erase_if(sent, [&](const Sent& item) {
      if (item.to != naming::peer(tag) || !std::holds_alternative<T>(item.message)) return false;
      result.push_back(item);
      return true;
    });
    return result;
  }
  std::optional<EntryState> state_of(std::uint64_t serial) {
    const Entry* entry = entries.ledger().find_live(naming::id(serial));
    return entry == nullptr ? std::nullopt : std::optional(entry->state);
  }
  CountTag counted() { return executor->arena().tag(ArenaRole::kAccumulatorA); }

  const std::vector<StageSpec> specs = *split_model(three_stages().model_spec(), 3);
  SimLoop loop;
  InlineQueue device, aside;
  CountedEvents events;
  std::shared_ptr<IntegerExecutor> executor = std::make_shared<IntegerExecutor>(specs[1]);
  const StagePeerOptions options;
  StagePeerEnvironment env{loop, *this, device, aside, events, executor};
  Meters meters{options.config->targets_per_microbatch(), 256};
  ArenaState arena;
  Entries entries{options, env, meters};
  DeviceScheduler scheduler{device, loop, executor, {}};
  EntryJobs jobs{options, env, *this, entries, scheduler, meters, arena};
  std::vector<Sent> sent;
  LinkStats link;                 // every one
  std::vector<std::string> lost;  // why the session ended
  int told_to_leave = 0;          // memory did not hold one microbatch
  TransferId transfer = 0;

 private:
  // Links
  void learn(const PeerId&, std::vector<std::string>) override {}
  Result<TransferId> send(const PeerId& peer, Message message, std::vector<Bytes> frames) override {
    sent.push_back({peer, std::move(message), std::move(frames)});
    return ++transfer;
  }
  void drop(const PeerId&, TransferId) override {}
  void refuse(const PeerId&, TransferId) override {}
  std::optional<Remote> remote(const PeerId&) const override { return std::nullopt; }
  std::uint64_t ahead_of(const PeerId&, TransferId) const override { return 0; }
  LinkStats stats(const PeerId&) const override { return link; }
  // StagePeerOwner
  void on_session_lost(const std::string& why) override { lost.push_back(why); }
  void on_version(Version) override {}
  void on_inner_step() override {}
  void on_out_of_memory(const std::string&) override { ++told_to_leave; }
  void on_behind(Version, const Digest&) override {}
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

// Many entries in one window.
class LinesTest : public EntryJobsTest {
 protected:
  explicit LinesTest(EdgeCodecs codecs = {{CodecId::kRaw}}) : EntryJobsTest(with(codecs)) {}
  static RunConfig with(const EdgeCodecs& codecs) {
    RunConfig config = three_stages();
    config.sync.inner_batch = 1000;
    config.wire.forward = config.wire.backward = codecs;
    return config;
  }
};

class MemoryTest : public LinesTest {
 protected:
  void TearDown() override { disarm_faults(); }
  void count(std::uint64_t serial) {
    const Truth truth = truth_of(serial);
    forward(serial, raw(truth.activation_in, TensorRole::kActivation));
    backward(serial, raw(truth.gradient_in, TensorRole::kGradient));
  }
};

TEST_F(MemoryTest, ThatEndsInAForwardHalvesWhatIsTakenOnce) {
  for (std::uint64_t serial = 1; serial <= 4; ++serial) count(serial);
  const CountTag before = counted();
  ASSERT_TRUE(arm_faults("peer.memory=error").ok());
  forward(5, raw(truth_of(5).activation_in, TensorRole::kActivation));
  EXPECT_EQ(state_of(5), std::nullopt);
  ASSERT_EQ(take<Busy>(kAbove).size(), 1u) << "another peer gets it";
  EXPECT_EQ(entries.credits().limit(true), 2u) << "of five";
  EXPECT_EQ(counted(), before);
  EXPECT_EQ(told_to_leave, 0);
}

TEST_F(MemoryTest, ThatEndsInABackwardCountsNothing) {
  count(1);
  const Truth truth = truth_of(2);
  forward(2, raw(truth.activation_in, TensorRole::kActivation));
  take<Gradient>(kAbove);
  ASSERT_TRUE(arm_faults("peer.memory=error").ok());
  backward(2, raw(truth.gradient_in, TensorRole::kGradient));
  EXPECT_EQ(state_of(2), std::nullopt);
  EXPECT_EQ(counted(), count_tag(naming::id(1)));
  EXPECT_TRUE(take<Gradient>(kAbove).empty());
  EXPECT_EQ(entries.credits().limit(true), 1u);
  EXPECT_EQ(told_to_leave, 0);
}

TEST_F(MemoryTest, ThatDoesNotHoldOneMicrobatchMakesItLeave) {
  ASSERT_TRUE(arm_faults("peer.memory=error").ok());
  forward(1, raw(truth_of(1).activation_in, TensorRole::kActivation));
  EXPECT_EQ(told_to_leave, 1);
  EXPECT_TRUE(lost.empty()) << "it leaves in order";
}

// A frame of nine extents is refused as too large, which is not memory that ended.
TEST_F(MemoryTest, IsNotWhatASenderSaysOfItsFrames) {
  const auto vast = [](const Bytes& frame) {
    constexpr std::size_t kDimsAt = 8;  // docs/WIRE.md
    Buffer buffer(frame.size());
    std::ranges::copy(frame.view(), buffer.data());
    buffer.data()[kDimsAt] = 9;
    return std::move(buffer).freeze();
  };
  forward(1, vast(raw(truth_of(1).activation_in, TensorRole::kActivation)));
  EXPECT_EQ(state_of(1), std::nullopt);
  forward(2, raw(truth_of(2).activation_in, TensorRole::kActivation), vast(raw(tokens(), TensorRole::kTokens)));
  EXPECT_EQ(state_of(2), std::nullopt);
  EXPECT_EQ(told_to_leave, 0);

  // Nor does it cost the graphs of others.
  const Truth truth = truth_of(3);
  forward(3, raw(truth.activation_in, TensorRole::kActivation));
  const std::vector<Sent> asked = take<Forward>(kBelow);
  forward(4, raw(truth_of(4).activation_in, TensorRole::kActivation));
  backward(4, vast(raw(truth_of(4).gradient_in, TensorRole::kGradient)));
  EXPECT_EQ(executor->graph_count(), 2u);
  EXPECT_EQ(told_to_leave, 0);
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
    EXPECT_FALSE(jobs.rests(naming::session(kAbove)));
    forward(serial, raw(filled(2e6f), TensorRole::kActivation));
    EXPECT_EQ(state_of(serial), std::nullopt);
    EXPECT_EQ(take<Busy>(kAbove).size(), 1u);
  }
  EXPECT_TRUE(jobs.rests(naming::session(kAbove)));
  EXPECT_EQ(events.of[EventKind::kRefused], 3);
  EXPECT_EQ(executor->entry_count(), 0u);
}

// Else nobody of that stage is asked for half a minute and longer, and longer still after that.
TEST_F(EntryJobsTest, TheLastPeerOfAStageDoesNotRest) {
  Member joining = naming::member(kBeside);
  joining.serving = false;
  list(2, {naming::member(kAbove), joining});
  for (std::uint64_t serial = 1; serial <= 5; ++serial) forward(serial, raw(filled(2e6f), TensorRole::kActivation));
  EXPECT_FALSE(jobs.rests(naming::session(kAbove)));
  EXPECT_EQ(events.of[EventKind::kRefused], 5);
  list(3, {naming::member(kAbove), naming::member(kBeside)});
  forward(6, raw(filled(2e6f), TensorRole::kActivation));
  EXPECT_TRUE(jobs.rests(naming::session(kAbove))) << "another one serves now";
}

TEST_F(EntryJobsTest, ADeltaToABaseThatIsNotHereIsAskedForAsAKeyFrame) {
  env.deltas = delta_codecs_for(CodecId::kAq4);
  const HostTensor before = filled(1), now = filled(2);
  const Base base = encode_activation(*env.deltas, before.view(), {}, 0)->after_key;
  const OutgoingActivation made = *encode_activation(*env.deltas, now.view(), base, 0);
  ASSERT_FALSE(made.delta.empty());
  forward(1, made.delta);
  EXPECT_EQ(take<NeedKeyFrame>(kAbove).size(), 1u);
  EXPECT_EQ(state_of(1), EntryState::kArriving);
  EXPECT_EQ(events.of[EventKind::kRefused], 0);
}

TEST_F(EntryJobsTest, AnActivationThatCannotBeEncodedLeavesNoEntry) {
  const BrokenCodec broken;
  env.deltas = DeltaCodecs{&broken, &broken};
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
  const EntrySerial serial = entries.ledger().find_live(naming::id(1))->name.serial;
  ASSERT_TRUE(executor->undo(serial).ok());
  entries.ledger().on_release(naming::session(kAbove), Release{naming::lease(kAbove, 1)});
  ASSERT_TRUE(jobs.start_next());
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_NE(lost[0].find("an undo failed"), std::string::npos);
}

}  // namespace
}  // namespace shoal
