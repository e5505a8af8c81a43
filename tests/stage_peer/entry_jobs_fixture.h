#pragma once
// The jobs of entries at the middle one of three stages with an exact executor, for tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/trainer_id.h"
#include "runtime/stage_peer/entry_desk.h"
#include "runtime/stage_peer/entry_jobs.h"
#include "sim/sim_loop.h"
#include "stages/integer_executor.h"
#include "tests/router/names.h"
#include "tests/stages/host_passes.h"

namespace shoal {

inline constexpr std::uint64_t kSelf = 50, kAbove = 2, kBelow = 3, kBeside = 4;  // sessions

inline Remote remote_of(std::uint64_t tag) { return {naming::peer(tag), naming::session(tag)}; }

inline RunConfig three_stages() {
  RunConfig config;
  config.model = {{.layers = 3, .dim = 8, .heads = 2, .positions = 4, .vocabulary = 256}, {}, {}};
  config.data.sequences = 2;
  config.pipeline.stages = 3;
  config.timing = {4, 10};
  config.wire.forward.codecs = config.wire.backward.codecs = {CodecId::kRaw};
  return config;
}

inline Bytes raw(const HostTensor& tensor, TensorRole role) {
  return codec_for(CodecId::kRaw).encode(tensor.view(), role).value();
}

inline HostTensor tokens() { return make_host_tensor(DType::kU8, {2, 5}, Buffer(10)); }

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
      : config(std::make_shared<const RunConfig>(std::move(config))) {
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
  Truth truth_of(std::uint64_t serial) { return truth_of(naming::id(serial)); }
  Truth truth_of(const MicrobatchId& id) {
    Truth truth;
    std::vector<std::unique_ptr<IntegerExecutor>> chain;
    HostTensor travelling;
    for (const StageSpec& each : specs) {
      chain.push_back(std::make_unique<IntegerExecutor>(each));
      (each.stage.value == 1 ? truth.activation_in : truth.activation_out) = travelling;
      travelling = pass_forward(*chain.back(), {1, id, tokens()}, travelling)->activation;
    }
    truth.gradient_in = pass_backward(*chain[2], 1, {}, WindowSlot::kA)->gradient;
    truth.gradient_out = pass_backward(*chain[1], 1, truth.gradient_in, WindowSlot::kA)->gradient;
    return truth;
  }
  // The stage above sends a microbatch with this activation; its forward runs.
  void forward(std::uint64_t serial, const Bytes& activation, const Bytes& ids = raw(tokens(), TensorRole::kTokens)) {
    come(ForwardKind::kTrain, naming::id(serial), serial, activation, ids);
  }
  void evaluate(std::uint64_t serial) {
    const MicrobatchId id{evaluation_id_of(1, 1), serial};
    const Bytes activation = raw(truth_of(id).activation_in, TensorRole::kActivation);
    come(ForwardKind::kEvaluate, id, serial, activation, raw(tokens(), TensorRole::kTokens));
  }
  void come(ForwardKind kind, const MicrobatchId& id, std::uint64_t serial, const Bytes& activation, const Bytes& ids) {
    Forward message;
    message.kind = kind;
    message.microbatch = id;
    message.sample = SampleId(serial);
    message.lease = naming::lease(kAbove, serial);
    message.above = {naming::session(1), naming::session(kAbove)};
    message.stage = StageId(1);
    entries.on_forward(remote_of(kAbove), message, ++transfer);
    Result<std::vector<Bytes>> frames = std::vector<Bytes>{ids, activation};
    ASSERT_TRUE(entries.on_frames(remote_of(kAbove), transfer, frames));
    (void)jobs.start(ledger.release_job());  // of what failed before
    ASSERT_TRUE(jobs.start(ledger.next_job(false)));
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
    message.targets = config->targets_per_microbatch();
    ASSERT_TRUE(courier.on_message(remote_of(kBelow), message, ++transfer, loop.now()));
    Result<std::vector<Bytes>> frames = std::vector<Bytes>{gradient};
    ASSERT_TRUE(entries.on_frames(remote_of(kBelow), transfer, frames));
    ASSERT_TRUE(jobs.start(ledger.next_job(false)));
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
    const Entry* entry = ledger.entries().find_live(naming::id(serial));
    return entry == nullptr ? std::nullopt : std::optional(entry->state);
  }
  CountTag counted() { return executor->arena().tag(ArenaRole::kAccumulatorA); }

  const std::vector<StageSpec> specs = *split_model(three_stages().model_spec(), 3);
  SimLoop loop;
  InlineQueue device, aside;
  CountedEvents events;
  std::shared_ptr<IntegerExecutor> executor = std::make_shared<IntegerExecutor>(specs[1]);
  const std::shared_ptr<const RunConfig> config;
  StageSession session{.config = config,
                       .spec = specs[1],
                       .self = naming::session(kSelf),
                       .authority = naming::peer(1),
                       .loop = loop,
                       .links = *this,
                       .device = device,
                       .aside = aside,
                       .events = events,
                       .owner = *this,
                       .executor = executor};
  Meters meters{config->targets_per_microbatch(), 256};
  ArenaState arena;
  Neighbours neighbours{*this, session.self, session.authority};
  Windows windows{windows_options(*config)};
  KeptTensors tensors;
  BaseBook bases{config->base_bytes()};
  StageEdges edges{session, neighbours, bases, meters};
  EntryDesk entries{session, neighbours, courier, ledger, tensors, bases, meters};
  Courier courier{entries, neighbours, courier_options(session)};
  EntryCredits credits = entry_credits(session);
  Ledger ledger{entries, courier, windows, credits, ledger_options(session)};
  DeviceScheduler scheduler{device, loop, executor, {}};
  WindowJobs writes{session, windows, scheduler, arena, meters};
  EntryJobs jobs{session, ledger, courier, credits, tensors, edges, scheduler, meters, writes};
  std::vector<Sent> sent;
  LinkStats link;                 // every one
  std::vector<std::string> lost;  // why the session ended
  int told_to_leave = 0;          // memory did not hold one microbatch
  TransferId transfer = 0;

 private:
  // Links
  void learn(const PeerId&, Whereabouts) override {}
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

}  // namespace shoal
