// shoal key: this machine's public key, as [admission] keys wants it.
#include <cstdio>

#include "cli/program.h"
#include "common/program/outcome.h"
#include "runtime/config/home.h"

namespace shoal {
namespace {

int run_key(const GlobalOptions& global) {
  const std::string home = home_path(global);
  {
    // Makes folder and key when absent; a process that holds the home does not matter for reading.
    const auto opened = Home::open(home);
    if (!opened.ok()) return fail(opened.error());
  }
  const auto key = load_or_make_key(home + "/key");
  if (!key.ok()) return fail(key.error());
  const std::string text = hex_of(key->id());
  if (global.json) {
    std::printf("{\"schema\":\"shoal.key/1\",\"key\":\"%s\"}\n", text.c_str());
  } else {
    std::printf("%s\n", text.c_str());
  }
  return kExitOk;
}

}  // namespace

void add_key(Command& app, Program& program) {
  Command command = app.add_subcommand("key", "print this machine's public key (made at first use)");
  run_when_named(command, program, [](const GlobalOptions& global) { return run_key(global); });
}

}  // namespace shoal
