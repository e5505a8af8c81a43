// shoal pause, resume, finish: what the owner of a machine says to the `shoal join` that lends it.
#include "cli/control.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/outcome.h"
#include "cli/program.h"
#include "common/os/owner_socket.h"

namespace shoal {
namespace {

using Json = nlohmann::ordered_json;

int say_to_join(const GlobalOptions& global, std::string_view word) {
  const std::string home = home_path(global);
  const auto answer = ask_line(control_path(home), std::string(word));
  if (!answer.ok() && answer.code() == ErrorCode::kMissing)
    return fail(make_error(ErrorCode::kUnreachable, "no `shoal join` runs with the home " + home +
                                                        ". HINT: --home DIR, as it was given to join"));
  if (!answer.ok()) return fail(answer.error());
  const Json said = Json::parse(*answer, nullptr, false);
  if (!said.is_object() || !said.contains("text"))
    return fail(make_error(ErrorCode::kUnreachable, "the `shoal join` of " + home + " ended before it answered"));
  if (global.json)
    std::fputs((said.dump(2, ' ', false, Json::error_handler_t::replace) + "\n").c_str(), stdout);
  else
    std::fputs((said["text"].get<std::string>() + "\n").c_str(), stdout);
  return said["state"] == "unknown" ? kExitVersion : kExitOk;
}

void add_word(CLI::App& app, Program& program, std::string_view word, const std::string& help) {
  CLI::App* command = app.add_subcommand(std::string(word), help);
  run_when_named(*command, program, [word](const GlobalOptions& global) { return say_to_join(global, word); });
}

}  // namespace

void add_pause(CLI::App& app, Program& program) {
  add_word(app, program, kPauseWord, "have this machine's join leave the run and free the device, until resume");
}
void add_resume(CLI::App& app, Program& program) {
  add_word(app, program, kResumeWord, "have this machine's join take part again");
}
void add_finish(CLI::App& app, Program& program) {
  add_word(app, program, kFinishWord, "have this machine's join leave in order and end; again: at once");
}

}  // namespace shoal
