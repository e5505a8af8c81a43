#pragma once
// The `shoal` program: global options, the list of subcommands, and what a subcommand is. One file per subcommand; a
// new one is its add_...() here, one line in the table of main.cc and its file in CMakeLists.txt.
#include <functional>
#include <string>
#include <vector>

#include "common/crypto/sign.h"
#include "common/program/options.h"
#include "common/result.h"

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
void run_when_named(Command& command, Program& program, std::function<int(const GlobalOptions&)> run);

// --events-level: checked, so that event_level_named() knows it unless it is empty.
void add_events_level(Command& command, std::string& level);
// --up and --down, as transport/line_caps.h reads them.
void add_line_caps(Command& command, std::string& up, std::string& down);

// --tokenizer FILE and --base FOLDER, of commands that read what --save wrote. `otherwise`: the tokenizer that it is by
// default.
void add_saved_options(Command& command, std::string& tokenizer, std::string& base, const std::string& otherwise);

// As fail(), with the code of the signal where that is why.
int fail_or_stopped(const Error& error);

// The folder that --home or the environment names; a warning when neither does.
std::string home_path(const GlobalOptions& global);
// For a command that is no member: a key of this process alone, since `shoal join` may be at work with the machine's;
// or that one, for a run that admits listed keys. ERRORS: kBusy (another process uses it), Home::open's.
Result<KeyPair> key_beside_join(const GlobalOptions& global, bool own);

// "shoal VERSION (protocol N)"
std::string version_line();

// OpenMP's variable that says how its threads wait; main() sets it where nobody did.
inline constexpr const char* kWaitPolicy = "OMP_WAIT_POLICY";

// Each registers its options with storage that lives as long as `program.run`.
void add_audit(Command& app, Program& program);
void add_checkpoint(Command& app, Program& program);
void add_data(Command& app, Program& program);
void add_demo(Command& app, Program& program);
void add_eval(Command& app, Program& program);
void add_export(Command& app, Program& program);
void add_finish(Command& app, Program& program);
void add_fit(Command& app, Program& program);
void add_generate(Command& app, Program& program);
void add_init(Command& app, Program& program);
void add_inspect(Command& app, Program& program);
void add_join(Command& app, Program& program);
void add_key(Command& app, Program& program);
void add_launch(Command& app, Program& program);
void add_lend(Command& app, Program& program);
void add_relay(Command& app, Program& program);
void add_netcheck(Command& app, Program& program);
void add_resume(Command& app, Program& program);
void add_pause(Command& app, Program& program);
void add_plan(Command& app, Program& program);
void add_receipt(Command& app, Program& program);
void add_solo(Command& app, Program& program);
void add_top(Command& app, Program& program);
void add_version(Command& app, Program& program);
void add_watch(Command& app, Program& program);

}  // namespace shoal
