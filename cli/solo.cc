// shoal solo RUN.toml: the same run in one process.
#include "runtime/solo/solo.h"

#include <cstdio>
#include <numbers>
#include <utility>

#include "cli/executors.h"
#include "cli/program.h"
#include "common/log.h"
#include "common/os/batch_work.h"
#include "common/os/new_files.h"
#include "common/os/posix_file.h"
#include "common/os/stop_signals.h"
#include "common/os/thread_loop.h"
#include "common/program/outcome.h"
#include "common/status_line.h"
#include "events/headway.h"
#include "events/line_parts.h"
#include "events/scalar_log.h"
#include "runtime/plan/stage_memory.h"
#include "runtime/solo/saved_states.h"

namespace shoal {
namespace {

struct SoloArguments {
  std::string config, save, events, tensorboard, delay_profile;
  ComputeOptions compute;
  bool wire = false, replicas = false;
  double seconds_between_lines = 1;
};

constexpr std::uint64_t kCopiesInRound = 6;  // anchor, momentum, snapshot, both candidates, what travels

// The time for event lines written outside a loop.
class SystemClock final : public Clock {
 public:
  TimePoint now() const override { return monotonic_now(); }
  WallTime wall() const override { return wall_now(); }
};

void print_traffic(const EdgeTraffic& traffic, std::uint64_t tokens) {
  const auto a_token = [&](std::uint64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(tokens, 1));
  };
  std::printf("between stages: %.1f bytes a text token forward, %.1f backward\n", a_token(traffic.forward_bytes),
              a_token(traffic.backward_bytes));
  const std::uint64_t frames = traffic.delta_frames + traffic.key_frames;
  if (frames == 0) return;
  std::printf("activations sent as differences: %llu of %llu\n", static_cast<unsigned long long>(traffic.delta_frames),
              static_cast<unsigned long long>(frames));
  if (traffic.no_room > 0)
    std::printf("bases that [wire] base_mib had no room for: %llu\n", static_cast<unsigned long long>(traffic.no_room));
}

void print_summary(const SoloResult& result) {
  std::printf("steps %llu, tokens %llu in %.1f s (%s tok/s)\n", static_cast<unsigned long long>(result.steps),
              static_cast<unsigned long long>(result.tokens), result.train_seconds,
              short_number(result.tokens_per_s).c_str());
  const char* token = result.bytes_a_token == 1 ? "byte" : "text token";
  std::printf("loss %.4f -> %.4f, validation %.4f (nats a %s), that is %.4f bits\n", result.losses.first(),
              result.losses.last(), result.validation_loss, token, result.validation_loss / std::numbers::ln2);
  if (result.traffic) print_traffic(*result.traffic, result.tokens);
  if (result.rounds > 0)
    std::printf(
        "rounds %llu, %.1f bytes a text token of all replicas\n", static_cast<unsigned long long>(result.rounds),
        static_cast<double>(result.round_bytes) / static_cast<double>(std::max<std::uint64_t>(result.tokens, 1)));
  if (result.entropy.unigram > 0) {
    std::printf("the text's entropy: unigram %.4f, bigram %.4f (nats a %s)\n", result.entropy.unigram,
                result.entropy.bigram, token);
  }
}

// All its stages are trained here. With [compute] recompute = "auto" it takes the first that fits.
Status check_model(RunConfig& config, const ComputeOptions& compute, bool replicas) {
  if (config.executor.kind != ExecutorKind::kTorch) return {};
  SHOAL_ASSIGN(const auto specs,
               split_model(config.model_spec(), config.pipeline.stages, config.pipeline.layers_per_stage));
  Status fits;
  for (const Recompute recompute : recomputes_of(config)) {
    const RunConfig then = with_recompute(config, recompute);
    const std::uint64_t copies =
        replicas ? std::max<std::uint64_t>(1, config.pipeline.replicas) * (kCopiesInTraining + kCopiesInRound)
                 : kCopiesInTraining;
    fits = check_memory("the model", specs, copies, compute, solo_bytes(then, specs));
    if (!fits.ok()) continue;
    if (recompute != Recompute::kNone && config.compute.recompute == Recompute::kAuto)
      log_info("recompute = \"auto\" takes \"", name_of(recompute), "\": no more fits into the memory that is left");
    config.compute.recompute = recompute;
    break;
  }
  return fits;
}

int run(const SoloArguments& arguments, const GlobalOptions& global) {
  begin_batch_work();
  auto config = load_config(arguments.config);
  if (!config.ok()) return fail_config(config.error());
  NewFiles made;
  if (!arguments.save.empty()) {
    made.expect(arguments.save);
    if (config->executor.kind != ExecutorKind::kTorch) return fail_config(nothing_to_save());
    // Not first when all is trained: it goes beside the model.
    if (const auto manifest = canonical_text(*config); !manifest.ok()) return fail_config(manifest.error());
    if (const Status probed = probe_save_folder(arguments.save); !probed.ok()) return fail(probed.error());
  }
  if (const Status fits = check_model(*config, arguments.compute, arguments.replicas); !fits.ok())
    return fail(fits.error());
  std::optional<DelayProfile> delays;
  if (!arguments.delay_profile.empty()) {
    auto loaded = load_delay_profile(arguments.delay_profile);
    if (!loaded.ok()) return fail(loaded.error());
    delays = std::move(*loaded);
  }
  const SystemClock clock;
  std::unique_ptr<EventLog> events = make_silent_event_log();
  if (!arguments.events.empty()) {
    auto opened = open_event_log(arguments.events, {.role = "solo", .run = {}, .peer = {}, .session = {}}, clock);
    if (!opened.ok()) return fail(cannot_make(opened.error()));
    events = std::move(*opened);
  }
  if (!arguments.tensorboard.empty()) {
    auto curves = open_scalar_log(arguments.tensorboard, clock, std::move(events));
    if (!curves.ok()) return fail(cannot_make(curves.error()));
    events = std::move(*curves);
  }
  TimePoint last_line{};
  SoloOptions options;
  options.config = *config;
  options.factory = executor_factory(*config, arguments.compute);
  options.save_folder = arguments.save;
  options.delays = std::move(delays);
  options.replicas = arguments.replicas;
  options.wire = arguments.wire;
  options.events = events.get();
  // Before the first microbatch there is nothing that would be ended in order: until then a signal ends the process.
  options.stop = [listening = false]() mutable {
    if (!std::exchange(listening, true)) listen_for_stop();
    return stop_wanted();
  };
  options.on_note = [](const std::string& text) { log_info(text); };
  HeadwayMeter meter;
  options.on_headway = [&meter](const Headway& headway) { show_headway(meter, headway); };
  options.on_step = [&](const TrainLine& line) {
    const bool last = line.steps > 0 && line.step == line.steps;
    if (line.step > 1 && !last && monotonic_now() - last_line < from_seconds(arguments.seconds_between_lines)) return;
    last_line = monotonic_now();
    show_status(text_of(line, status_columns()));
  };
  const auto result = run_solo(options);
  end_status();
  if (!result.ok()) return fail(result.error());
  made.keep();
  if (global.json) {
    std::fputs(solo_json(*result).c_str(), stdout);
  } else {
    print_summary(*result);
  }
  return result->interrupted ? stop_exit_code() : kExitOk;
}

}  // namespace

void add_solo(Command& app, Program& program) {
  Command command =
      app.add_subcommand("solo", "train a run in this process alone, without network: the honest baseline");
  auto arguments = std::make_shared<SoloArguments>();
  command.add_option("run", arguments->config, "the run's file").required().type_name("RUN.toml");
  add_compute_options(command, arguments->compute);
  command.add_option("--save", arguments->save, "write the trained model here").type_name("DIR");
  command.add_option("--events", arguments->events, "append JSON lines here").type_name("FILE");
  command
      .add_option("--tensorboard", arguments->tensorboard,
                  "write curves of loss, tokens and rate here, for TensorBoard")
      .type_name("DIR");
  command
      .add_option("--delay-profile", arguments->delay_profile,
                  "compute every gradient at past weights, as late as this file says that a swarm's were "
                  "(audit --delay-profile writes it); rounds and the outer rule are not replayed")
      .type_name("FILE");
  command.add_flag(
      "--replicas", arguments->replicas,
      "train as many replicas as [pipeline] replicas says, in turn, with the run's rounds between them: what "
      "the rule costs by itself");
  command.add_flag("--wire", arguments->wire,
                   "what goes from stage to stage goes through the codecs of [wire], as between peers; auto: raw");
  command
      .add_option("--line-every", arguments->seconds_between_lines,
                  "seconds between train lines; 0 = every step (default: 1)")
      .within(0.0, 86400.0);
  command.footer("The options of RUN.toml:\n" + describe_options());
  run_when_named(command, program, [arguments](const GlobalOptions& global) { return run(*arguments, global); });
}

}  // namespace shoal
