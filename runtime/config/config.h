#pragma once
// RUN.toml: everything that defines a run, as values. Strict: an unknown key is an error that names file, line and the
// key that was probably meant; every option stands once in the table of config_table.cc (name, type, default, bound,
// help).
//
// The manifest of a run is canonical_text(): all options but the local ones, defaults written out, in table order, so
// that equal runs have equal text. Pure apart from load_config(); thread-safe. Bounds: files up to kConfigBytesMax,
// manifests up to kManifestBytesMax.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/crypto/hash.h"
#include "common/result.h"
#include "common/routing_id.h"
#include "common/rule_id.h"
#include "common/tensor_view.h"
#include "common/time.h"
#include "compression/codec.h"
#include "stages/compute.h"
#include "stages/inner_step.h"
#include "stages/stage_spec.h"
#include "text/text_files.h"

namespace shoal {

inline constexpr std::size_t kConfigBytesMax = 64u << 10;
inline constexpr std::size_t kManifestBytesMax = 8u << 10;

// "auto" is overlap until take_mode() (runtime/plan/flight_plan.h) has been there; launch puts what that takes into the
// manifest.
enum class SyncMode : std::uint8_t { kOverlap = 0, kDrain = 1, kAuto = 2 };
enum class ExecutorKind : std::uint8_t { kTorch = 0, kInteger = 1, kPaced = 2 };
enum class AdmissionMode : std::uint8_t { kOpen = 0, kKeys = 1 };
// What the deltas of a round travel as: "auto" is int8.
enum class PayloadCodec : std::uint8_t { kAuto = 0, kFp32 = 1, kBf16 = 2, kInt8 = 3, kInt4 = 4 };
// Whether members are asked to serve another stage where that makes the run faster (authority/move_plan.h).
enum class Rebalance : std::uint8_t { kAuto = 0, kOff = 1 };
enum class InnerRule : std::uint8_t { kAdamW = 0, kMuon = 1 };
enum class TokenWidth : std::uint8_t { kU8 = 0, kU16 = 1, kU32 = 2 };  // little-endian

// An option that is a value, or "auto": then the run derives the value from its other options.
template <class Value>
struct Auto {
  std::optional<Value> given;  // nothing: "auto"
  Auto() = default;
  Auto(Value value) : given(std::move(value)) {}  // not explicit: a value stands for itself
  Value or_else(Value derived) const { return given.value_or(std::move(derived)); }
  bool operator==(const Auto&) const = default;
};

struct RunSection {
  std::string name;
  std::uint64_t seed = 0;
};
struct ModelSection : ModelSpec {  // its seed is run.seed
  std::string from;                // local: a folder of transformers, whose model it is; empty: from the seed
  std::vector<Digest> weights;     // of each stage's first state; empty: from the seed
  // In the place of the spec's number, which model_spec() takes from here. With a boundary derive_options() gives one.
  Auto<std::uint32_t> boundary_table{};
};
struct SamplesSection {
  // Local, not in the manifest; relative to the file that names them.
  std::vector<std::string> paths;
  std::string validation;                // empty: the last tenth of each of the others
  std::string tokenizer;                 // empty: none is known
  std::vector<double> weights;           // of the files among the training samples; empty: by their sizes
  std::vector<Digest> digests;           // of the files, the validation's last; empty: those that `paths` name
  std::vector<Digest> tokenizer_digest;  // one, or none
  TokenWidth width = TokenWidth::kU8;
  std::uint32_t sequences = 0;           // B: windows of one microbatch
  std::uint64_t validation_samples = 0;  // at most this many; 0 = all
  std::uint64_t validate_every = 0;      // steps between estimates of the validation loss; 0 = none
};
struct OptimizerSection {
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0, clip_norm = 0;
  Auto<double> look_ahead = {};  // in updates; "auto": look_ahead_of()
  InnerRule inner = InnerRule::kAdamW;
  std::uint64_t delay_max = 0;  // inner steps; a gradient that is later is dropped by name; 0: none is
};
struct ScheduleSection {
  std::uint64_t tokens = 0;  // of the whole cosine; 0 = from steps
  std::uint64_t steps = 0;   // the same in global steps; 0 = from [end]
  std::uint64_t warmup_tokens = 0;
  double min_lr_factor = 0;
};
struct PipelineSection {
  std::uint16_t stages = 0;
  std::vector<std::uint32_t> layers_per_stage;  // empty: balanced by cost
  std::uint16_t replicas = 0;                   // expected per stage: the batch of `solo`, nothing is enforced
  Auto<std::uint32_t> in_flight;                // microbatches a trainer keeps under way; "auto": runtime/plan
  Auto<std::vector<double>> in_flight_ramp;     // {begin, end}, shares of schedule_targets(); empty: no ramp
  RoutingId routing = RoutingId::kRendezvous;   // how every sender chooses the next peer
  Rebalance rebalance = Rebalance::kAuto;
  double rebalance_horizon_s = 600;
};
struct SyncSection {
  RuleId rule = RuleId::kDiloco;
  SyncMode mode = SyncMode::kAuto;
  std::uint64_t inner_batch = 0;  // diloco: targets of one replica's inner step
  std::uint64_t inner_steps = 0;  // diloco: H
  double outer_lr = 0, outer_momentum = 0;
  PayloadCodec payload = PayloadCodec::kAuto;  // diloco
  std::uint64_t warm_steps = 0;                // diloco: allreduce for the first steps
  std::uint64_t microbatches_per_step = 0;     // allreduce
  double round_cap_s = 0;                      // diloco: open a round after this time with anything settled; 0 = never
  double round_budget_s = 0;  // a round ends unfinished after it; 0 = from its bytes and measured rates
};
// The codec of a direction: one for all edges, or one for each; edge k is between the stages k and k + 1. "auto": each
// sender takes raw or int8, as its lines are (runtime/stage_peer/line_codec.h).
struct EdgeCodecs {
  std::vector<Auto<CodecId>> codecs{Auto<CodecId>()};
  bool per_stage = false;  // given as a list, and so kept in the manifest
  // That of the edge behind `stage`.
  const Auto<CodecId>& at(StageId stage) const { return per_stage ? codecs.at(stage.value) : codecs.front(); }
  // Those that are named.
  std::vector<CodecId> named() const;
};
// What stands in RUN.toml: kCodecNames, and behind them "auto".
inline constexpr std::string_view kAutoName = "auto";
struct WireSection {
  EdgeCodecs forward, backward;
  std::uint64_t base_mib = 256;  // what a peer keeps for codecs of differences, each direction
};
struct TimingSection {
  double lease_s = 0, membership_s = 0;
};
struct CheckpointSection {
  double every_s = 0;           // a peer writes its stage's newest version, at most so often; 0: never
  std::uint64_t keep = 2;       // generations of it
  double restore_after_s = 60;  // a stage whose newest version nobody holds goes back to the newest that is held
};
struct AdmissionSection {
  AdmissionMode mode = AdmissionMode::kOpen;
  std::vector<PeerId> keys;
};
struct ComputeSection {
  ComputeType dtype = ComputeType::kFp32;
  Recompute recompute = Recompute::kAuto;
  // "auto" may come to keep none.
  bool keeps_graphs() const { return recompute == Recompute::kNone || recompute == Recompute::kAuto; }
};
struct ExecutorSection {
  ExecutorKind kind = ExecutorKind::kTorch;
  double forward_ms = 0, backward_ms = 0;
  std::uint64_t state_mib = 0;  // of one array
};
struct EndSection {
  std::uint64_t tokens = 0, steps = 0;
};  // whichever comes first; 0 = no such limit; both 0 = until stopped

struct ReportSection {             // local
  std::uint64_t sample_every = 0;  // validations between two continuations that are shown; 0 = none
  std::uint64_t sample_tokens = 0;
  std::string sample_prompt;
};

struct RunConfig {
  RunSection run;
  ModelSection model;
  SamplesSection data;
  OptimizerSection optimizer;
  ScheduleSection schedule;
  PipelineSection pipeline;
  SyncSection sync;
  WireSection wire;
  TimingSection timing;
  CheckpointSection checkpoint;
  AdmissionSection admission;
  ComputeSection compute;
  ExecutorSection executor;
  EndSection end;
  ReportSection report;

  ModelSpec model_spec() const;
  DType token_dtype() const;
  TextFiles text_files() const;
  // What the manifest says of the text: of its files, the validation's last, and of its tokenizer where one is known.
  void name_text(std::vector<Digest> files, const std::optional<Digest>& tokenizer);
  bool keeps_bases() const {  // some edge's activations are sent as differences
    return std::ranges::any_of(wire.forward.named(), is_delta);
  }
  std::uint64_t base_bytes() const { return wire.base_mib << 20; }
  // What a microbatch weighs between two stages, in fp32.
  std::uint64_t activation_bytes() const { return targets_per_microbatch() * model.wire_width() * sizeof(float); }
  std::uint64_t targets_per_microbatch() const { return std::uint64_t{data.sequences} * model.positions; }
  // Step `step` (from 0) is one of all replicas: by its rule, or as a warm one.
  bool global_step(std::uint64_t step) const;
  // Microbatches of global step `step` (from 0). allreduce and warm steps: microbatches_per_step. diloco: what the
  // expected replicas of a stage need for one inner step each, rounded up.
  std::uint64_t microbatches_of_step(std::uint64_t step) const;
  // diloco: what closes a window at each of the expected replicas, each with the microbatch that brings it to
  // inner_batch targets.
  std::uint64_t microbatches_of_windows() const;
  std::uint64_t targets_of_steps(std::uint64_t steps) const;                               // of the first `steps`
  std::uint64_t targets_per_round() const { return sync.inner_batch * sync.inner_steps; }  // diloco: of one replica
  std::uint64_t microbatches_of_round() const;  // of a stage, if each expected replica makes its H inner steps
  // Ids that the trainer may have above its low-water mark, which rises only at a merge: while one round's microbatches
  // wait for it, others are made.
  std::uint64_t id_window() const;
  static constexpr std::uint64_t kIdWindowMin = 4096, kIdWindowMax = 1u << 18;
  static constexpr std::uint64_t kRoundMicrobatchesMax = kIdWindowMax / 2;
  static constexpr std::uint64_t kStepMicrobatchesMax = 1024;  // as the table of options bounds it
  // How many whole paths (a CommitItem over all stages) one control message has room for: a Step must name all of its.
  static std::size_t paths_in_message(std::size_t stages);
  std::uint64_t end_targets() const;       // 0 = no end
  std::uint64_t schedule_targets() const;  // length of the cosine; 0 = constant after the warm-up (no end is known)
  // Whether the validation loss is estimated behind this step, and of how many samples at most: 64 of them, or 256
  // sequences where those are more.
  bool validates_after(std::uint64_t step) const { return data.validate_every > 0 && step % data.validate_every == 0; }
  std::uint64_t estimate_samples() const;
  // Whether a swarm's gradients may be made at older weights than those that they change. Few in flight do not exclude
  // it: one replica may have what others wait for. All members must answer alike, so it asks the mode alone.
  bool gradients_late() const { return sync.mode != SyncMode::kDrain; }
  // How many of its own updates an inner step looks ahead (stages/adamw.h and muon.h), all run long. "auto" is 1 where
  // gradients may come late, and 0 where they never do: look-ahead costs stability there. `late`: of a swarm
  // gradients_late(), in solo whether a delay profile makes them late.
  double look_ahead_of(bool late) const { return optimizer.look_ahead.or_else(late ? 1.0 : 0.0); }
  // Rate and constants of the inner step `step` (from 1), which closes when the run has committed `run_targets`.
  // `late` as in look_ahead_of.
  InnerStep inner_step(std::uint64_t step, std::uint64_t targets, std::uint64_t run_targets, bool late) const;
  Duration lease() const { return from_seconds(timing.lease_s); }
  Duration membership() const { return from_seconds(timing.membership_s); }
  Duration restore_after() const { return from_seconds(checkpoint.restore_after_s); }
};

// Every option at its default; those that have none are not set, and "auto" is not derived (derived_options.h).
RunConfig default_config();

// Reads RUN.toml; relative paths become relative to the file's folder. The folder that [model] from names fills in the
// model's shapes: `positions` is then at most 1024 where it is not given. ERRORS: PretrainedFolder::open's, kMissing,
// kIo, kTooLarge, kInput (syntax, unknown or missing key, wrong type, out of bounds, options that exclude each other;
// all with file and line where there is one).
Result<RunConfig> load_config(const std::string& path);
// The same from text; `origin` stands for the file in messages. Reads no file: [model] from fills in nothing.
Result<RunConfig> parse_config(std::string_view text, const std::string& origin);

// The manifest's body. ERRORS: kTooLarge (beyond kManifestBytesMax).
Result<std::string> canonical_text(const RunConfig& config);
// A manifest from outside: as parse_config, local options absent. ERRORS: kTooLarge, kMalformed (also: not canonical).
Result<RunConfig> parse_manifest(std::string_view body);

// Options that exclude or bound each other. ERRORS: kInput, kUnsupported.
Status check_config(const RunConfig& config, const std::string& origin);

// The table for people: section, key, type, default, bound, help.
std::string describe_options();

}  // namespace shoal
