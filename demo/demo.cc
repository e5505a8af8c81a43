#include "demo/demo.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/os/posix_file.h"
#include "common/os/thread_loop.h"
#include "common/rng.h"
#include "demo/figures.h"
#include "demo/setup.h"
#include "demo/swarm.h"
#include "demo/work_folder.h"
#include "events/audit/audit.h"
#include "events/line_parts.h"
#include "events/train_line.h"
#include "runtime/config/config.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr Duration kFreeze = 15s;
constexpr Duration kMeasure = 4s;
constexpr Duration kLook = 500ms;                 // at the tokens of a swarm that goes on
constexpr Duration kStopBudget = 60s;             // of a solo that was told to stop
constexpr Duration kSoloStart = 60s;              // of a solo that reads its text and evaluates
constexpr std::string_view kStepMark = " loss ";  // in each of its train lines
constexpr double kSoloSlowdown = 10.0;            // of the measured rate, before a solo is taken for stuck
constexpr Duration kFinishBudget = 120s;
// The part of solo's rate that a swarm on the same cores was seen to reach, envelopes, codecs and logs included
// (docs/history/results.md).
constexpr double kSwarmOverSolo = 0.5;

double wall_seconds() { return seconds_of(wall_now().time_since_epoch()); }

Status write_text(const std::string& path, const std::string& text) {
  return replace_file(path, {Bytes::copy_of(std::string_view(text))});
}

class Demo {
 public:
  Demo(const DemoOptions& options, std::string folder)
      : options_(options), folder_(std::move(folder)), rng_(options.seed) {
    run_.rule = options.rule;
    run_.family = options.family;
    run_.seed = options.seed;
    run_.stages = options.stages;
    run_.replicas = options.replicas;
    run_.codec = options.codec;
    run_.dtype = options.dtype;
    run_.text = fs::absolute(options.text).string();
  }

  Result<DemoResult> run() {
    for (const char* name : {"events", "logs", "homes"}) fs::create_directories(folder_ + "/" + name);
    result_.rule = options_.rule;
    result_.seconds = options_.seconds;
    result_.chaos = options_.chaos;
    SHOAL_TRY(set_schedule());
    SHOAL_TRY(write_text(folder_ + "/RUN.toml", demo_toml(run_)));
    SHOAL_ASSIGN(const RunConfig config, load_config(folder_ + "/RUN.toml"));
    result_.loss_bound_microbatches = config.id_window();
    SHOAL_TRY(train_swarm());
    SHOAL_TRY(read_figures());
    SHOAL_TRY(train_solo());
    result_.total_s = seconds_of(monotonic_now() - begun_);
    return result_;
  }

 private:
  void say(const std::string& line) { options_.say(line); }

  // The cosine's length from what this machine does in a few seconds of `solo`.
  Status set_schedule() {
    say("measuring this machine for " + std::to_string(static_cast<int>(seconds_of(kMeasure))) + " s");
    DemoRun trial = run_;
    trial.schedule_tokens = trial.end_tokens = std::uint64_t{1} << 40;
    SHOAL_ASSIGN(const SoloFigures measured, solo("measure", trial, {.stop_after = kMeasure, .budget = kStopBudget}));
    measured_tokens_per_s_ = measured.tokens_per_s;
    run_.schedule_tokens =
        static_cast<std::uint64_t>(std::max(1.0, measured.tokens_per_s * kSwarmOverSolo * options_.seconds));
    if (is_judged()) run_.schedule_tokens = std::max(run_.schedule_tokens, kLossJudgedTokens);
    say("solo makes " + short_number(measured.tokens_per_s) + " tok/s here; the learning rate falls over " +
        short_number(static_cast<double>(run_.schedule_tokens)) + " tokens");
    return {};
  }

  struct SoloTime {
    // Behind its first step; then Ctrl-C, which ends it in order. None: it must train all its tokens.
    std::optional<Duration> stop_after{};
    Duration budget{};  // from there on, or from the start
  };

  // `shoal solo` as a process of its own. One thread: at this size of model a second one gains a tenth or two on an
  // idle machine, and is many times slower where it shares its core. ERRORS: kTimeout (the budget is over: what it did
  // until then is no measure of the swarm).
  Result<SoloFigures> solo(const std::string& name, const DemoRun& run, SoloTime time) {
    const std::string config = folder_ + "/" + name + ".toml", log = folder_ + "/logs/" + name;
    SHOAL_TRY(write_text(config, demo_toml(run)));
    SHOAL_ASSIGN(Offspring child, Offspring::start({{options_.program, "--json", "solo", config, "--device", "cpu",
                                                     "--threads", "1", "--line-every", "5"},
                                                    log + ".out",
                                                    log + ".err"}));
    FileTail lines(log + ".err");
    TimePoint deadline = monotonic_now() + (time.stop_after ? kSoloStart : time.budget);
    std::optional<TimePoint> stop_at;  // a machine that is slow to begin is measured all the same
    bool stopped = false;
    while (!child.wait_until(std::min(monotonic_now() + 100ms, deadline))) {
      if (options_.stop && options_.stop()) return make_error(ErrorCode::kInterrupted, "interrupted");
      for (const std::string& line : lines.new_lines()) {
        if (!time.stop_after) say("solo: " + line);
        if (!time.stop_after || stop_at || line.find(kStepMark) == std::string::npos) continue;
        stop_at = monotonic_now() + *time.stop_after;
        deadline = *stop_at + time.budget;
      }
      if (stop_at && !stopped && monotonic_now() >= *stop_at) {
        child.send_signal(SIGINT);
        stopped = true;
      }
      if (monotonic_now() >= deadline)
        return make_error(
            ErrorCode::kTimeout,
            (time.stop_after && !stop_at ? "solo made no step within " : "solo did not end within ") +
                std::to_string(static_cast<int>(seconds_of(time.stop_after && !stop_at ? kSoloStart : time.budget))) +
                " s; it said:" + last_lines(log + ".err", 5));
    }
    const int code = child.exit_code().value_or(-1);
    if (code != (stopped ? 130 : 0))
      return make_error(ErrorCode::kUnreachable, "solo ended with exit code " + std::to_string(code) +
                                                     "; it said:" + last_lines(log + ".err", 5));
    return parse_solo(log + ".out");
  }

  static Result<SoloFigures> parse_solo(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    const auto json = nlohmann::json::parse(text.str(), nullptr, false);
    if (!json.is_object()) return make_error(ErrorCode::kMalformed, path + " holds no JSON object");
    SoloFigures f;
    const std::pair<const char*, double*> fields[] = {{"loss_start", &f.loss_start}, {"loss_end", &f.loss_end},
                                                      {"val_loss", &f.val_loss},     {"unigram_entropy", &f.unigram},
                                                      {"bigram_entropy", &f.bigram}, {"tokens_per_s", &f.tokens_per_s}};
    for (const auto& [key, value] : fields) {
      const auto found = json.find(key);
      if (found == json.end() || !found->is_number())
        return make_error(ErrorCode::kMalformed, path + " lacks the number \"" + key + "\"");
      *value = found->get<double>();
    }
    return f;
  }

  Status train_swarm() {
    DemoSwarmOptions options;
    options.program = options_.program;
    options.dht_program = options_.dht_program;
    options.folder = folder_;
    options.stages = options_.stages;
    options.replicas = options_.replicas;
    options.network = static_cast<std::uint32_t>(1 + Rng(entropy_seed()).next() % 0x7ffffffe);
    options.say = options_.say;
    options.stop = options_.stop;
    options.page = options_.page;
    DemoSwarm swarm(std::move(options));
    say("starting 2 DHT processes, launch, and " + std::to_string(options_.stages * options_.replicas) + " peers");
    SHOAL_TRY(swarm.start());
    began_ = swarm.first_commit();
    const TimePoint start = monotonic_now() - from_seconds(wall_seconds() - began_);
    const auto at = [&](double part) { return start + from_seconds(options_.seconds * part); };
    if (options_.chaos) SHOAL_TRY(make_trouble(swarm, at(1.0 / 3), at(0.5), at(2.0 / 3)));
    SHOAL_TRY(swarm.run_until(at(1)));
    SHOAL_TRY(train_on(swarm, start + from_seconds(kTrainedSecondsMax)));
    ended_ = wall_seconds();
    result_.trained_s = ended_ - began_;
    if (options_.chaos) {
      if (const auto serving = swarm.serving_since(killed_)) result_.rejoined_s = *serving - rejoin_started_;
    }
    note_load(swarm.processors().shares());
    SHOAL_ASSIGN(result_.process_failures, swarm.finish(kFinishBudget));
    return {};
  }

  void note_load(const std::vector<ProcessorShare>& shares) {
    result_.busy = busy_in(shares, began_, ended_);
    result_.rejoin_busy = busy_in(shares, rejoin_started_, ended_);
    for (DemoFault& fault : result_.faults) fault.busy = busy_in(shares, began_ + fault.at_s, ended_);
  }

  bool is_judged() const { return options_.seconds >= kLossJudgedFromSeconds; }

  // On a slow machine until there are tokens enough to be judged by.
  Status train_on(DemoSwarm& swarm, TimePoint until) {
    if (!is_judged() || swarm.tokens() >= kLossJudgedTokens || monotonic_now() >= until) return {};
    say("going on until " + short_number(kLossJudgedTokens) + " tokens are committed, at most " +
        std::to_string(static_cast<int>(kTrainedSecondsMax / 60)) +
        " minutes in all: a model that saw fewer is not "
        "judged by the text's entropy");
    while (swarm.tokens() < kLossJudgedTokens && monotonic_now() < until)
      SHOAL_TRY(swarm.run_until(std::min(until, monotonic_now() + kLook)));
    return {};
  }

  Status make_trouble(DemoSwarm& swarm, TimePoint kill_at, TimePoint freeze_at, TimePoint rejoin_at) {
    const auto first = static_cast<std::uint16_t>(rng_.next() % options_.stages);
    const auto second =
        static_cast<std::uint16_t>((first + 1 + rng_.next() % (options_.stages - 1u)) % options_.stages);
    SHOAL_TRY(swarm.run_until(kill_at));
    SHOAL_ASSIGN(killed_, victim(swarm, first));
    swarm.kill_peer(killed_);
    fault("kill", first);
    SHOAL_TRY(swarm.run_until(freeze_at));
    SHOAL_ASSIGN(const std::size_t frozen, victim(swarm, second));
    swarm.freeze_peer(frozen);
    fault("freeze", second);
    const TimePoint thaw_at = monotonic_now() + kFreeze;
    SHOAL_TRY(swarm.run_until(std::min(rejoin_at, thaw_at)));
    if (thaw_at < rejoin_at) thaw(swarm, frozen);
    SHOAL_TRY(swarm.run_until(rejoin_at));
    rejoin_started_ = wall_seconds();
    SHOAL_TRY(swarm.restart_peer(killed_));
    say("the killed peer comes back as a new process");
    SHOAL_TRY(swarm.run_until(thaw_at));
    if (thaw_at >= rejoin_at) thaw(swarm, frozen);
    return {};
  }

  void thaw(DemoSwarm& swarm, std::size_t peer) {
    swarm.thaw_peer(peer);
    thawed_ = wall_seconds();
  }

  Result<std::size_t> victim(DemoSwarm& swarm, std::uint16_t stage) {
    if (const auto peer = swarm.spare_peer(stage)) return *peer;
    return make_error(ErrorCode::kUnreachable, "stage " + std::to_string(stage) +
                                                   " has no second serving peer, so none of it can be taken away");
  }

  void fault(const char* kind, std::uint16_t stage) {
    result_.faults.push_back({.kind = kind, .stage = stage, .at_s = wall_seconds() - began_});
    say(std::string(kind == std::string("kill") ? "kill -9" : "SIGSTOP for 15 s") + ": a peer of stage " +
        std::to_string(stage));
  }

  Status read_figures() {
    say("reading the event logs");
    SHOAL_ASSIGN(const DemoEvents events, read_demo_events(folder_ + "/events"));
    SHOAL_ASSIGN(result_.audit, audit_folder(folder_ + "/events"));
    LossCurve losses;
    for (double loss : events.step_losses) losses.add(loss);
    result_.loss_start = losses.first();
    result_.loss_end = losses.last();
    if (events.run.loss().validated_at_end) result_.val_loss = events.run.loss().validation;
    result_.tokens = events.tokens();
    const RunView::Bytes& bytes = events.run.bytes();
    if (result_.tokens > 0)
      result_.bytes_per_token = static_cast<double>(bytes.sent) / static_cast<double>(result_.tokens);
    if (bytes.payload > 0) result_.codec_ratio = static_cast<double>(bytes.fp32) / static_cast<double>(bytes.payload);
    result_.deltas = bytes.deltas;
    result_.keys = bytes.keys;
    result_.lost_by_peer = events.lost;
    result_.session_faults = events.faults;
    judge_faults(events);
    if (!result_.audit.clean()) say(audit_table(result_.audit));
    return {};
  }

  // The run's rate is that outside of faults: a fault lasts until the swarm's rate is back, and until what was taken
  // away is (the killed peer serves again, the frozen one was let go), if that is later.
  void judge_faults(const DemoEvents& events) {
    std::vector<Disturbance> disturbed;
    for (std::size_t i = 0; i < result_.faults.size(); ++i) {
      DemoFault& fault = result_.faults[i];
      const double signal = began_ + fault.at_s;
      const double before = undisturbed_rate(events.commits, began_, signal, disturbed);
      const double next = i + 1 < result_.faults.size() ? began_ + result_.faults[i + 1].at_s : ended_;
      fault.recovered_s = recovered_after(events.commits, signal, ended_, before);
      fault.cost = cost_of(events.commits, signal, next, before);
      disturbed.push_back({signal, fault.recovered_s ? signal + *fault.recovered_s : ended_});
    }
    std::vector<Disturbance> faults;
    for (const DemoFault& fault : result_.faults) {
      std::optional<double> back = thawed_;
      if (fault.kind == "kill") {
        back.reset();
        if (result_.rejoined_s) back = rejoin_started_ + *result_.rejoined_s;
      }
      faults.push_back(disturbance_of(began_ + fault.at_s, fault.recovered_s, back, ended_));
    }
    result_.tokens_per_s = undisturbed_rate(events.commits, began_, ended_, faults);
  }

  Status train_solo() {
    say("the same " + short_number(static_cast<double>(result_.tokens)) + " tokens in one process");
    run_.end_tokens = std::max<std::uint64_t>(1, result_.tokens);
    const double expected_s = static_cast<double>(run_.end_tokens) / std::max(1.0, measured_tokens_per_s_);
    const SoloTime time{.budget = kSoloStart + from_seconds(kSoloSlowdown * expected_s)};
    SHOAL_ASSIGN(result_.solo, solo("SOLO", run_, time));
    return {};
  }

  const DemoOptions& options_;
  std::string folder_;
  Rng rng_;
  DemoRun run_;
  DemoResult result_;
  const TimePoint begun_ = monotonic_now();
  double measured_tokens_per_s_ = 0;
  double began_ = 0, ended_ = 0, rejoin_started_ = 0, thawed_ = 0;  // seconds since 1970
  std::size_t killed_ = 0;
};

Status check(const DemoOptions& options) {
  const auto refuse = [](std::string why) -> Status { return make_error(ErrorCode::kInput, std::move(why)); };
  if (options.chaos && (options.stages < 2 || options.replicas < 2))
    return refuse(
        "--chaos default takes a peer of two different stages away: it needs --stages and --replicas of at least 2; or "
        "--chaos none");
  if (options.chaos && options.seconds < kChaosSecondsMin)
    return refuse("--chaos default needs --seconds " + std::to_string(static_cast<int>(kChaosSecondsMin)) +
                  " or more (a freeze alone takes 15); or --chaos none");
  std::error_code failure;
  if (!options.keep.empty() && fs::exists(options.keep, failure) && !fs::is_empty(options.keep, failure))
    return refuse("--keep " + options.keep + ": the folder is not empty; give a new one");
  for (const std::string& path : {options.text, options.program, options.dht_program}) {
    if (!fs::is_regular_file(path, failure)) return make_error(ErrorCode::kMissing, path + ": no such file");
  }
  return {};
}

}  // namespace

Result<DemoResult> run_demo(const DemoOptions& options) {
  SHOAL_TRY(check(options));
  SHOAL_ASSIGN(const WorkFolder folder, WorkFolder::make("demo", options.keep));
  return Demo(options, folder.path()).run();
}

}  // namespace shoal
