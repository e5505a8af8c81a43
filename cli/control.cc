// shoal pause, resume, finish: what the owner of a machine says to the `shoal join` that lends it.
#include "lend/control.h"

#include <cstdio>

#include "cli/program.h"
#include "common/os/owner_socket.h"
#include "common/program/json_text.h"
#include "common/program/outcome.h"

namespace shoal {
namespace {

int say_to_join(const GlobalOptions& global, std::string_view word) {
  const std::string home = home_path(global);
  const auto answer = ask_line(control_path(home), std::string(word));
  if (!answer.ok() && answer.code() == ErrorCode::kMissing)
    return fail(make_error(ErrorCode::kUnreachable, "no `shoal join` runs with the home " + home +
                                                        ". HINT: --home DIR, as it was given to join"));
  if (!answer.ok()) return fail(answer.error());
  const auto said = Json::read(*answer);
  if (!said || text_of_answer(*answer).empty())
    return fail(make_error(ErrorCode::kUnreachable, "the `shoal join` of " + home + " ended before it answered"));
  std::printf("%s\n", (global.json ? said->text() : text_of_answer(*answer)).c_str());
  return state_of_answer(*answer) == "unknown" ? kExitVersion : kExitOk;
}

void add_word(Command& app, Program& program, std::string_view word, const std::string& help) {
  Command command = app.add_subcommand(std::string(word), help);
  run_when_named(command, program, [word](const GlobalOptions& global) { return say_to_join(global, word); });
}

}  // namespace

void add_pause(Command& app, Program& program) {
  add_word(app, program, kPauseWord, "have this machine's join leave the run and free the device, until resume");
}
void add_resume(Command& app, Program& program) {
  add_word(app, program, kResumeWord, "have this machine's join take part again");
}
void add_finish(Command& app, Program& program) {
  add_word(app, program, kFinishWord, "have this machine's join leave in order and end; again: at once");
}

}  // namespace shoal
