// The `shoal` program: parses the command line, arms faults, runs one subcommand and returns its exit code.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <set>

#include "cli/program.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/os/program_start.h"
#include "common/os/stop_signals.h"
#include "common/program/outcome.h"
#include "events/event_level.h"
#include "runtime/config/config_table.h"
#include "runtime/config/home.h"

namespace shoal {
namespace {

using AddCommand = void (*)(Command& app, Program& program);
constexpr AddCommand kCommands[] = {
    add_init,  add_launch,     add_join,   add_solo,    add_plan,  add_demo,     add_eval,  add_export,  add_generate,
    add_data,  add_checkpoint, add_audit,  add_inspect, add_key,   add_version,  add_watch, add_receipt, add_top,
    add_pause, add_resume,     add_finish, add_lend,    add_relay, add_netcheck, add_fit,
};

void add_global_options(Command& app, GlobalOptions& global) {
  app.add_option("--home", global.home, "folder with this machine's key (default: ~/.local/share/shoal)")
      .type_name("DIR");
  app.add_flag("--json", global.json, "results as JSON on stdout");
  app.add_flag("-v,--verbose", global.verbose, "more on stderr");
  app.add_flag("-q,--quiet", global.quiet, "only warnings and errors on stderr");
  app.add_option("--log-file", global.log_file, "log to this file too; rotated at 16 MiB, three older ones are kept")
      .type_name("FILE");
  app.add_option("--fault", global.faults, "makes named points fail, for tests (prints a warning)")
      .type_name("NAME=ACTION,...");
}

// "did you mean": the closest subcommand or option to what was not expected.
std::string suggestion(const CommandLine::Parsed& parsed) {
  if (parsed.unexpected.empty()) return "";
  const std::vector<std::string_view> names(parsed.known_there.begin(), parsed.known_there.end());
  const std::string_view meant = nearest_name(parsed.unexpected, names);
  return meant.empty() ? "" : "; did you mean \"" + std::string(meant) + "\"?";
}

// The threads of the tensor library's OpenMP spin while they wait for each other, some milliseconds each time: where
// another program has one of the processors, the others spin for it instead of computing. The library reads this
// variable while it is loaded. Commands that compute are those with --threads.
void wait_asleep(const CommandLine& line, char** argv) {
  if (line.named_has("--threads")) start_anew_with(kWaitPolicy, "PASSIVE", argv);
}

// Armed points that nothing passed: as likely a misspelt name as one whose time did not come.
void name_faults_not_reached() {
  for (const std::string& name : faults_not_reached())
    log_warning("fault point ", name, " was never reached. HINT: is the name spelt as in the sources?");
}

int parse_and_run(int argc, char** argv) {
  CommandLine line("shoal trains large models on machines that nobody would call a cluster.", "shoal", version_line());
  Program program;
  program.global.words.assign(argv + 1, argv + argc);
  Command top = line.top();
  add_global_options(top, program.global);
  for (AddCommand add : kCommands) add(top, program);
  const CommandLine::Parsed parsed = line.parse(argc, argv);
  if (parsed.exit_code) return *parsed.exit_code;
  if (!parsed.error.empty())
    return fail(make_error(ErrorCode::kInput, parsed.error + suggestion(parsed) + " (see shoal --help)"), kExitUsage);
  wait_asleep(line, argv);
  if (!program.run) {
    std::fputs(line.help().c_str(), stderr);
    return kExitUsage;
  }
  if (program.global.quiet) set_log_level(LogLevel::kWarning);
  if (program.global.verbose > 0) set_log_level(LogLevel::kDebug);
  if (!program.global.log_file.empty()) {
    if (const Status opened = also_log_to(program.global.log_file); !opened.ok())
      return fail(opened.error(), kExitCannotCreate);
  }
  if (!program.global.faults.empty()) {
    const Status armed = arm_faults(program.global.faults);
    if (!armed.ok()) return fail(armed.error(), kExitUsage);
  }
  const int code = program.run();
  name_faults_not_reached();
  return code;
}

}  // namespace
}  // namespace shoal

void shoal::run_when_named(Command& command, Program& program, std::function<int(const GlobalOptions&)> run) {
  command.when_named(
      [&program, run = std::move(run)] { program.run = [&program, run] { return run(program.global); }; });
}

void shoal::add_events_level(Command& command, std::string& level) {
  std::set<std::string> names;
  for (const EventLevel one : kEventLevels) names.emplace(name_of(one));
  command
      .add_option("--events-level", level,
                  "full, entries or rounds: how much of what happens is written (default: full)")
      .one_of({names.begin(), names.end()});
}

void shoal::add_line_caps(Command& command, std::string& up, std::string& down) {
  // A shell's variable that is not set is no wish to lend the whole line.
  const auto given = [](const std::string& rate) {
    return std::string(rate.empty() ? "it is empty: a rate, as 20mbit" : "");
  };
  command
      .add_option(
          "--up", up,
          "most that it sends, 256kbit or more, as 20mbit (default: no cap); the directory's few bytes are not counted")
      .check(given)
      .type_name("RATE");
  command.add_option("--down", down, "most that it takes, likewise").check(given).type_name("RATE");
}

void shoal::add_saved_options(Command& command, std::string& tokenizer, std::string& base,
                              const std::string& otherwise) {
  command
      .add_option("--tokenizer", tokenizer, "the tokenizer.json that made the model's ids (default: " + otherwise + ")")
      .type_name("FILE");
  command.add_option("--base", base, "of saved adapters: the folder of the model that they were trained beside")
      .type_name("FOLDER");
}

int shoal::fail_or_stopped(const Error& error) {
  return error.code == ErrorCode::kInterrupted ? fail(error, static_cast<ExitCode>(stop_exit_code())) : fail(error);
}

std::string shoal::home_path(const GlobalOptions& global) {
  if (!global.home.empty()) return global.home;
  std::string path = Home::default_path();
  if (path == Home::kHere)
    log_warning("neither HOME nor XDG_DATA_HOME is set: this machine's key is kept in ", path,
                " of the current folder, and another folder means another key. HINT: --home DIR");
  return path;
}

shoal::Result<shoal::KeyPair> shoal::key_beside_join(const GlobalOptions& global, bool own) {
  if (!own) return KeyPair::generate();
  SHOAL_ASSIGN(const Home home, Home::open(home_path(global)));
  if (home.is_temporary())
    return make_error(ErrorCode::kBusy, "another process uses the key of " + home.path() + ". HINT: end it first");
  return home.key();
}

int main(int argc, char** argv) {
  shoal::hold_standard_descriptors();
  shoal::outlive_readers();
  try {
    return shoal::with_output_written(shoal::parse_and_run(argc, argv));
  } catch (const std::exception& bug) {
    return shoal::fail(shoal::make_error(shoal::ErrorCode::kUnsupported, std::string("internal error: ") + bug.what()),
                       shoal::kExitSoftware);
  }
}
