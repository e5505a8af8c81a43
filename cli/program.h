#pragma once
// The `shoal` program: global options, the list of subcommands, and what a subcommand is. One file per subcommand; a
// new one is its add_...() here, one line in the table of main.cc and its file in CMakeLists.txt.
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace shoal {

struct GlobalOptions {
  std::string home;   // empty: Home::default_path()
  bool json = false;  // results as JSON on stdout; everything else is on stderr anyway
  int verbose = 0;
  bool quiet = false;
  std::string log_file;              // empty: stderr alone
  std::string faults;                // fault points to arm (common/fault.h)
  std::vector<std::string> words{};  // of the command line, behind the program
};

struct Program {
  GlobalOptions global;
  std::function<int()> run;  // set by the subcommand that was named; returns the exit code
};

// What `command` does when it was the one that was named.
void run_when_named(CLI::App& command, Program& program, std::function<int(const GlobalOptions&)> run);

// For a number from `low` to `high`. CLI::Range lets NaN through, which is neither below nor above.
CLI::Validator within(double low, double high);

// --events-level: checked, so that event_level_named() knows it unless it is empty.
void add_events_level(CLI::App& command, std::string& level);
// --up and --down, as transport/line_caps.h reads them.
void add_line_caps(CLI::App& command, std::string& up, std::string& down);

// The folder that --home or the environment names; a warning when neither does.
std::string home_path(const GlobalOptions& global);

// "shoal VERSION (protocol N)"
std::string version_line();

// OpenMP's variable that says how its threads wait; main() sets it where nobody did.
inline constexpr const char* kWaitPolicy = "OMP_WAIT_POLICY";

// Each registers its options with storage that lives as long as `program.run`.
void add_audit(CLI::App& app, Program& program);
void add_checkpoint(CLI::App& app, Program& program);
void add_data(CLI::App& app, Program& program);
void add_demo(CLI::App& app, Program& program);
void add_eval(CLI::App& app, Program& program);
void add_export(CLI::App& app, Program& program);
void add_finish(CLI::App& app, Program& program);
void add_generate(CLI::App& app, Program& program);
void add_init(CLI::App& app, Program& program);
void add_inspect(CLI::App& app, Program& program);
void add_join(CLI::App& app, Program& program);
void add_key(CLI::App& app, Program& program);
void add_launch(CLI::App& app, Program& program);
void add_lend(CLI::App& app, Program& program);
void add_resume(CLI::App& app, Program& program);
void add_pause(CLI::App& app, Program& program);
void add_plan(CLI::App& app, Program& program);
void add_receipt(CLI::App& app, Program& program);
void add_solo(CLI::App& app, Program& program);
void add_top(CLI::App& app, Program& program);
void add_version(CLI::App& app, Program& program);
void add_watch(CLI::App& app, Program& program);

}  // namespace shoal
