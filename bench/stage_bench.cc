#include "bench/stage_bench.h"

#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/python_rival.h"
#include "common/os/executable.h"
#include "common/os/resident_memory.h"
#include "common/os/stop_signals.h"
#include "common/os/thread_loop.h"
#include "common/rng.h"
#include "demo/work_folder.h"
#include "stages/host_coder.h"
#include "stages/torch_device.h"
#include "stages/torch_executor.h"

namespace shoal {
namespace {

constexpr std::uint32_t kHeadWidth = 64, kVocabulary = 4096, kSequences = 4;
constexpr int kMicrobatches = 4, kWarmSteps = 1;

struct Measured {
  double tokens_per_s = 0, loss = 0;  // loss: nats a token of the last step
  std::uint64_t peak_bytes = 0;       // resident at most, beyond what the process had before; on a GPU: of its arrays
};

Result<ModelSpec> model_of(const std::string& shape, const StageBenchOptions& options) {
  ModelSpec model;
  int end = 0;
  if (std::sscanf(shape.c_str(), "%ux%u%n", &model.layers, &model.dim, &end) != 2 ||
      static_cast<std::size_t>(end) != shape.size() || model.layers == 0 || model.dim % kHeadWidth != 0 ||
      model.dim == 0)
    return make_error(ErrorCode::kInput, shape + " is not LAYERSxDIM with a dim that is a multiple of " +
                                             std::to_string(kHeadWidth) + ". HINT: 4x768");
  model.family = options.family == "llama" ? ModelFamily::kLlama : ModelFamily::kGpt2;
  model.heads = model.dim / kHeadWidth;
  model.positions = options.positions;
  model.vocabulary = kVocabulary;
  return model;
}

HostTensor draw_tokens(Rng& rng, std::uint32_t positions) {
  Buffer memory(std::size_t{kSequences} * (positions + 1) * sizeof(std::uint16_t));
  for (std::size_t i = 0; i < memory.size(); i += sizeof(std::uint16_t)) {
    const auto id = static_cast<std::uint16_t>(rng.below(kVocabulary));
    std::memcpy(memory.data() + i, &id, sizeof id);
  }
  return make_host_tensor(DType::kU16, {kSequences, positions + 1}, std::move(memory));
}

// What the row before has freed is not this one's.
void forget_peak() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

Result<double> step(StageExecutor& stage, Rng& rng, std::uint64_t number) {
  double loss = 0;
  std::uint64_t targets = 0;
  for (std::uint64_t i = 0; i < kMicrobatches; ++i) {
    const EntrySerial entry = number * kMicrobatches + i;
    HostCoder forward, backward;
    SHOAL_ASSIGN(const ForwardOutput out,
                 stage.forward({entry, {1, entry}, draw_tokens(rng, stage.spec().model.positions)}, forward));
    SHOAL_TRY(stage.backward_input(entry, backward));
    SHOAL_TRY(stage.backward_weights(entry, WindowSlot::kA));
    stage.settle(entry);
    loss += out.loss_sum;
    targets += out.targets;
  }
  SHOAL_TRY(stage.inner_step(WindowSlot::kA, {.lr = 6e-4, .targets = targets, .step = number + 1}));
  return loss / static_cast<double>(targets);
}

Result<Measured> measure(const ModelSpec& model, ComputeType compute, const StageBenchOptions& options) {
  forget_peak();
  const std::uint64_t before = resident_memory().now;
  SHOAL_ASSIGN(const auto specs, split_model(model, 1));
  SHOAL_ASSIGN(const std::string device, choose_device(options.device));
  take_device_peak(device);
  const auto named = std::ranges::find(kRecomputeNames, options.recompute);
  SHOAL_ASSIGN(const auto stage,
               make_torch_executor(specs.front(), {.device = device,
                                                   .threads = options.threads,
                                                   .compute = compute,
                                                   .recompute = static_cast<Recompute>(named - kRecomputeNames)}));
  initialise(specs.front(), stage->arena().span(ArenaRole::kCurrent));
  stage->arena().push(ArenaRole::kCurrent);
  Rng rng(1);
  Measured measured;
  TimePoint began = monotonic_now();
  for (int number = 0; number < kWarmSteps + options.steps; ++number) {
    if (stop_wanted()) return make_error(ErrorCode::kInterrupted, "interrupted");
    if (number == kWarmSteps) began = monotonic_now();
    SHOAL_ASSIGN(measured.loss, step(*stage, rng, static_cast<std::uint64_t>(number)));
  }
  const double tokens = double{kMicrobatches} * kSequences * model.positions * options.steps;
  measured.tokens_per_s = tokens / seconds_of(monotonic_now() - began);
  const std::uint64_t most = resident_memory().most;
  measured.peak_bytes = device == "cpu" ? most - std::min(before, most) : take_device_peak(device);
  return measured;
}

std::vector<std::string> arguments_of(const ModelSpec& model, const std::string& dtype,
                                      const StageBenchOptions& options, bool compiled) {
  const auto text = [](auto number) { return std::to_string(number); };
  std::vector<std::string> words{"--layers",     text(model.layers),     "--dim",          text(model.dim),
                                 "--heads",      text(model.heads),      "--positions",    text(model.positions),
                                 "--vocabulary", text(model.vocabulary), "--microbatches", text(kMicrobatches),
                                 "--steps",      text(options.steps),    "--warm",         text(kWarmSteps),
                                 "--threads",    text(options.threads),  "--dtype",        dtype,
                                 "--device",     options.device,         "--family",       options.family};
  if (compiled) words.push_back("--compile");
  return words;
}

void print(const StageBenchOptions& options, const std::string& shape, const std::string& dtype,
           const Measured& measured, std::optional<double> torch, std::optional<double> compiled) {
  const double mib = static_cast<double>(measured.peak_bytes) / (1 << 20);
  if (options.json) {
    nlohmann::ordered_json row = {{"bench", "stage"},
                                  {"family", options.family},
                                  {"shape", shape},
                                  {"dtype", dtype},
                                  {"recompute", options.recompute},
                                  {"device", options.device},
                                  {"positions", options.positions},
                                  {"threads", options.threads},
                                  {"tokens_per_s", measured.tokens_per_s},
                                  {"torch_tokens_per_s", nullptr},
                                  {"ratio", nullptr},
                                  {"compiled_tokens_per_s", nullptr},
                                  {"peak_mib", mib},
                                  {"loss", measured.loss}};
    if (torch) {
      row["torch_tokens_per_s"] = *torch;
      row["ratio"] = measured.tokens_per_s / *torch;
    }
    if (compiled) row["compiled_tokens_per_s"] = *compiled;
    std::printf("%s\n", row.dump().c_str());
  } else {
    std::printf("%-8s %-8s %-6s %10.0f ", options.family.c_str(), shape.c_str(), dtype.c_str(), measured.tokens_per_s);
    torch ? std::printf("%10.0f %6.2f ", *torch, measured.tokens_per_s / *torch) : std::printf("%10s %6s ", "-", "-");
    compiled ? std::printf("%10.0f ", *compiled) : std::printf("%10s ", "-");
    std::printf("%9.0f %7.3f\n", mib, measured.loss);
  }
  std::fflush(stdout);
}

Status run(const StageBenchOptions& options, const PythonRival& rival, bool compares) {
  for (const std::string& shape : options.shapes) {
    SHOAL_ASSIGN(const ModelSpec model, model_of(shape, options));
    for (const std::string& dtype : options.dtypes) {
      const ComputeType compute = dtype == kComputeNames[1] ? ComputeType::kBf16 : ComputeType::kFp32;
      SHOAL_ASSIGN(const Measured measured, measure(model, compute, options));
      std::optional<double> torch, compiled;
      if (compares) {
        SHOAL_ASSIGN(torch, rival.tokens_per_s(arguments_of(model, dtype, options, false), stop_wanted));
      }
      if (compares && options.compiled) {
        SHOAL_ASSIGN(compiled, rival.tokens_per_s(arguments_of(model, dtype, options, true), stop_wanted));
      }
      print(options, shape, dtype, measured, torch, compiled);
    }
  }
  return {};
}

}  // namespace

Status run_stage_bench(const StageBenchOptions& options) {
  SHOAL_ASSIGN(const std::string program, own_program());
  listen_for_stop();
  SHOAL_ASSIGN(const WorkFolder folder, WorkFolder::make("stage"));
  const PythonRival rival(program, options.python, folder.path());
  const std::string why = rival.missing();
  if (!why.empty()) std::fprintf(stderr, "plain PyTorch is not compared: %s\n", why.c_str());
  if (!options.json)
    std::printf("%-8s %-8s %-6s %10s %10s %6s %10s %9s %7s\n", "family", "shape", "dtype", "tokens/s", "torch", "ratio",
                "compiled", "peak MiB", "loss");
  return run(options, rival, why.empty());
}

}  // namespace shoal
