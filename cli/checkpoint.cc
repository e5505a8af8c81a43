// shoal checkpoint ls|verify|prune|export: what peers wrote of a run to their disks, and a model made of it.
#include "state/checkpoint.h"

#include <cstdio>
#include <map>
#include <set>
#include <tuple>

#include "cli/checkpoint_files.h"
#include "cli/checkpoint_prune.h"
#include "cli/program.h"
#include "common/log.h"
#include "common/os/new_files.h"
#include "common/program/json_text.h"
#include "common/program/outcome.h"
#include "common/status_line.h"
#include "events/headway.h"
#include "runtime/solo/saved_states.h"

namespace shoal {
namespace {

// ---- what is said of one ----
void print_heading() {
  std::printf("%-8s %5s %8s %-9s %12s %9s %-20s %-8s  %s\n", "run", "stage", "version", "rule", "parameters", "MiB",
              "saved", "peer", "file");
}

void print_row(const CheckpointFile& file) {
  if (!file.read.ok()) {
    std::printf("%-8s %5s %8s %-9s %12s %9s %-20s %-8s  %s\n", "-", "-", "-", "-", "-", "-", "-", "-",
                judgement(file).c_str());
    return;
  }
  const CheckpointInfo& info = file.read->info;
  std::printf("%-8s %5u %8llu %-9s %12llu %9.1f %-20s %-8s  %s\n", short_name(info.run).c_str(),
              unsigned{info.state.stage.value}, static_cast<unsigned long long>(info.state.version.value),
              std::string(name_of(info.state.rule)).c_str(), static_cast<unsigned long long>(info.state.floats),
              static_cast<double>(file.bytes) / (1 << 20), utc_of(info.saved_s).c_str(), short_name(info.peer).c_str(),
              judgement(file).c_str());
}

// ---- ls and verify ----
enum class Listing : std::uint8_t { kTable, kJudgements };

int list(const std::vector<std::string>& paths, Listing listing, bool json) {
  Json all = Json::array();
  std::size_t rows = 0, bad = 0;
  const Result<FoundCheckpoints> found = find_checkpoints(paths, Wanted::kToRead);
  if (!found.ok()) return fail(found.error());
  const auto say = [&](const CheckpointFile& file) {
    if (json) return all.add(json_of(file));
    if (listing == Listing::kJudgements) return void(std::printf("%s\n", judgement(file).c_str()));
    if (rows++ == 0) print_heading();
    print_row(file);
  };
  read_each(found->checkpoints, [&](const CheckpointFile& file) {
    bad += file.read.ok() ? 0 : 1;
    say(file);
  });
  for (const std::string& path : found->left) say(left_file(path));
  if (json) std::printf("%s\n", all.text().c_str());
  if (listing == Listing::kTable || bad == 0) return kExitOk;
  return fail(make_error(ErrorCode::kCorrupt, std::to_string(bad) + " of " + std::to_string(found->checkpoints.size()) +
                                                  (found->checkpoints.size() == 1 ? " checkpoint" : " checkpoints") +
                                                  " cannot be used. HINT: they can be removed; their peers write over "
                                                  "them first, and read the newest of the others"));
}

// ---- export ----
struct ExportArguments {
  std::string run_file, out, run;
  std::vector<std::string> paths;
};

// The good checkpoints among the files: of each run how many, and the newest of each stage of the run that is wanted.
class Newest {
 public:
  // `run`: the begin of its name; empty: whichever there is.
  explicit Newest(std::string run) : wanted_(std::move(run)) {}

  void take(CheckpointFile file) {
    if (!file.read.ok()) return log_warning("left out: ", judgement(file));
    const CheckpointInfo& info = file.read->info;
    ++files_[info.run];
    if (!hex_of(info.run).starts_with(wanted_)) return;
    chosen_.insert(info.run);
    if (chosen_.size() > 1) return by_stage_.clear();  // an error, which needs no states
    const auto [found, first] = by_stage_.try_emplace(info.state.stage.value, file);
    if (first) return;
    const CheckpointInfo& other = found->second.read->info;
    if (other.state.version == info.state.version && other.digest != info.digest)
      log_warning(file.path, " and ", found->second.path, " are of the same version of stage ", info.state.stage,
                  " and differ; the one that was saved later is taken");
    if (std::tie(other.state.version, other.saved_s) < std::tie(info.state.version, info.saved_s))
      found->second = std::move(file);
  }

  // ERRORS: kInput (several), kMissing.
  Status check_one_run() const {
    if (chosen_.size() == 1) return {};
    std::string runs;
    for (const auto& [run, count] : files_)
      runs += (runs.empty() ? "" : ", ") + hex_of(run) + " (" + std::to_string(count) + ")";
    if (files_.empty())
      return make_error(ErrorCode::kMissing,
                        "none of the checkpoints can be used. HINT: `shoal checkpoint verify` says why");
    if (chosen_.empty())
      return make_error(ErrorCode::kMissing, "no checkpoint is of run " + wanted_ + "; there are " + runs);
    return make_error(ErrorCode::kInput,
                      "the checkpoints are of several runs: " + runs + ". HINT: name one of them with --run HEX");
  }

  std::map<std::uint16_t, CheckpointFile>& by_stage() { return by_stage_; }

 private:
  const std::string wanted_;
  std::map<RunId, std::size_t> files_;
  std::set<RunId> chosen_;
  std::map<std::uint16_t, CheckpointFile> by_stage_;
};

// ERRORS: kMalformed (a state of another model or split), kMissing (stages).
Status check_stages(const std::map<std::uint16_t, CheckpointFile>& by_stage, const std::vector<StageSpec>& specs,
                    const std::string& run_file) {
  const std::string remedy =
      ", so it is not of this run. HINT: give the run file of the run, as it is in the folder of `launch --dir`";
  for (const auto& [stage, file] : by_stage) {
    const std::uint64_t floats = file.read->info.state.floats;
    if (stage >= specs.size())
      return make_error(ErrorCode::kMalformed, file.path + " is of stage " + std::to_string(stage) + ", and " +
                                                   run_file + " has " + std::to_string(specs.size()) + " stages" +
                                                   remedy);
    if (floats != parameter_count(specs[stage]))
      return make_error(ErrorCode::kMalformed, file.path + " has " + std::to_string(floats) +
                                                   " parameters, and stage " + std::to_string(stage) + " of " +
                                                   run_file + " has " + std::to_string(parameter_count(specs[stage])) +
                                                   remedy);
  }
  std::string missing;
  for (const StageSpec& spec : specs)
    if (!by_stage.contains(spec.stage.value))
      missing += (missing.empty() ? "" : ", ") + std::to_string(spec.stage.value);
  if (missing.empty()) return {};
  return make_error(ErrorCode::kMissing, "nothing was exported: no good checkpoint of these stages: " + missing +
                                             ". HINT: add the folders of the peers that served them");
}

void print_export(const std::map<std::uint16_t, CheckpointFile>& by_stage, const ExportArguments& arguments,
                  bool json) {
  Json out = {{"schema", "shoal.checkpoint_export/1"}, {"run", nullptr}, {"out", arguments.out}};
  Json stages = Json::array();
  for (const auto& [stage, file] : by_stage) {
    const CheckpointInfo& info = file.read->info;
    out.set("run", hex_of(info.run));
    stages.add({{"stage", stage}, {"version", info.state.version.value}, {"path", file.path}});
    if (!json)
      std::printf("stage %u: version %llu of %s\n", unsigned{stage},
                  static_cast<unsigned long long>(info.state.version.value), printable(file.path).c_str());
  }
  out.set("stages", stages);
  if (json) return void(std::printf("%s\n", out.text().c_str()));
  std::printf("%s has the model; `shoal eval` reads it\n", printable(arguments.out).c_str());
}

int export_model(const ExportArguments& arguments, bool json) {
  const auto config = load_config(arguments.run_file);
  if (!config.ok()) return fail_config(config.error());
  if (config->executor.kind != ExecutorKind::kTorch)
    return fail_config(make_error(ErrorCode::kUnsupported,
                                  arguments.run_file + ": a run whose [executor] kind is not \"torch\" has no model"));
  const auto specs = split_model(config->model_spec(), config->pipeline.stages, config->pipeline.layers_per_stage);
  if (!specs.ok()) return fail_config(specs.error());
  Newest newest(arguments.run);
  const Result<FoundCheckpoints> found = find_checkpoints(arguments.paths, Wanted::kToRead);
  if (!found.ok()) return fail(found.error());
  read_each(found->checkpoints, [&newest](CheckpointFile file) { newest.take(std::move(file)); });
  if (const Status one = newest.check_one_run(); !one.ok())
    return one.code() == ErrorCode::kInput ? fail(one.error(), kExitUsage) : fail(one.error());
  if (const Status fit = check_stages(newest.by_stage(), *specs, arguments.run_file); !fit.ok())
    return fail(fit.error());
  NewFiles made;
  made.expect(arguments.out);
  if (const Status probed = probe_save_folder(arguments.out); !probed.ok()) return fail(probed.error());
  std::map<std::uint16_t, Bytes> images;
  for (const auto& [stage, file] : newest.by_stage()) images[stage] = file.read->image;
  HeadwayMeter meter;
  const Status saved = save_states(arguments.out, *config, images, [&meter](std::uint64_t done, std::uint64_t of) {
    show_headway(meter, {.what = "saving stages", .done = done, .total = of});
  });
  end_status();
  if (!saved.ok()) return fail(saved.error());
  made.keep();
  print_export(newest.by_stage(), arguments, json);
  return kExitOk;
}

// ---- the commands ----
std::string check_run(const std::string& text) {
  const bool hex = text.find_first_not_of("0123456789abcdef") == text.npos && text.size() >= 8 && text.size() <= 64;
  return hex ? "" : "a run is named by 8 to 64 hex digits";
}

void add_listing(Command& group, Program& program, const char* name, const char* help, Listing listing) {
  Command command = group.add_subcommand(name, help);
  auto paths = std::make_shared<std::vector<std::string>>();
  command.add_option("paths", *paths, "checkpoints, or folders of them").required().type_name("PATH");
  run_when_named(command, program,
                 [paths, listing](const GlobalOptions& global) { return list(*paths, listing, global.json); });
}

}  // namespace

void add_checkpoint(Command& app, Program& program) {
  Command group =
      app.add_subcommand("checkpoint", "what peers wrote of a run to their disks: ls, verify, prune, export");
  group.require_subcommand();
  add_listing(group, program, "ls", "a line for each checkpoint", Listing::kTable);
  add_listing(group, program, "verify", "read every checkpoint, and say which cannot be used", Listing::kJudgements);
  Command pruning = group.add_subcommand("prune", "remove checkpoints that were saved long ago");
  auto old = std::make_shared<PruneArguments>();
  pruning.add_option("paths", old->paths, "checkpoints, or folders of them").required().type_name("PATH");
  pruning.add_option("--older-than", old->days, "days since they were saved (default: 30)").within(0.0, 1e5);
  pruning.add_flag("--dry-run", old->dry_run, "say what would be removed");
  run_when_named(pruning, program, [old](const GlobalOptions& global) { return prune_checkpoints(*old, global.json); });
  Command command =
      group.add_subcommand("export", "write the newest state of every stage as a model, as launch --save does");
  auto arguments = std::make_shared<ExportArguments>();
  command.add_option("--run-file", arguments->run_file, "the run's file").required().type_name("RUN.toml");
  command.add_option("--out", arguments->out, "write the model here").required().type_name("DIR");
  command.add_option("--run", arguments->run, "which run, where there are several: its first hex digits, 8 at least")
      .check(check_run)
      .type_name("HEX");
  command.add_option("paths", arguments->paths, "checkpoints, or folders of them").required().type_name("PATH");
  run_when_named(command, program,
                 [arguments](const GlobalOptions& global) { return export_model(*arguments, global.json); });
}

}  // namespace shoal
