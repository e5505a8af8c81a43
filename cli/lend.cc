// shoal lend TICKET: a `shoal join` that systemd starts with this user's session and starts again when it fails.
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cli/program.h"
#include "common/bytes.h"
#include "common/log.h"
#include "common/os/executable.h"
#include "common/os/owner_socket.h"
#include "common/os/posix_file.h"
#include "common/peer_name.h"
#include "common/program/outcome.h"
#include "lend/control.h"
#include "lend/lend_unit.h"
#include "runtime/config/ticket.h"
#include "runtime/peer/pause_plan.h"
#include "transport/line_caps.h"

extern char** environ;

namespace shoal {
namespace {

constexpr const char* kUnit = "shoal-lend.service";
// Where its home and libtorch lie: systemd's environment is not that of this shell.
constexpr const char* kKeptVariables[] = {"XDG_DATA_HOME", "SHOAL_TORCH_ROOT"};
constexpr const char* kProgramVariable = "SHOAL_PROGRAM";  // the package's launcher, which finds libtorch

struct LendArguments {
  std::string ticket, hours, gpu_busy, up, down, device, listen, memory, name;
  std::vector<std::string> advertise;
  bool status = false, stop = false;
};

// systemctl --user WORDS..., whose own words go to stderr. Its exit code; 127: there is none.
int systemctl(const std::vector<std::string>& words) {
  std::vector<std::string> all = {"systemctl", "--user"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> raw;
  for (std::string& word : all) raw.push_back(word.data());
  raw.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, 2, 1);  // our stdout has the result alone
  pid_t child = 0;
  const int failure = ::posix_spawnp(&child, "systemctl", &actions, nullptr, raw.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return 127;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

// Whether a systemd of this user answers.
bool has_systemd() { return systemctl({"daemon-reload"}) == 0; }

Result<std::string> unit_path() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  if (config != nullptr && *config != '\0') return std::string(config) + "/systemd/user/" + kUnit;
  if (home != nullptr && *home != '\0') return std::string(home) + "/.config/systemd/user/" + kUnit;
  return make_error(ErrorCode::kInput, "neither HOME nor XDG_CONFIG_HOME is set: systemd's folder is not known");
}

Result<std::vector<std::string>> join_words(const LendArguments& arguments, const GlobalOptions& global) {
  SHOAL_TRY(parse_ticket(arguments.ticket));
  std::vector<std::string> words;
  const char* launcher = std::getenv(kProgramVariable);
  SHOAL_ASSIGN(const std::string own, own_program());
  words.push_back(launcher != nullptr && *launcher != '\0' ? launcher : own);
  if (!global.home.empty()) words.insert(words.end(), {"--home", std::filesystem::absolute(global.home).string()});
  words.insert(words.end(), {"join", bare_ticket(arguments.ticket)});
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  if (!arguments.hours.empty()) SHOAL_TRY(LendHours::parse(arguments.hours));
  SHOAL_TRY(check_peer_name(arguments.name));
  add("--name", arguments.name);
  add("--hours", arguments.hours);
  add("--gpu-busy", arguments.gpu_busy);
  SHOAL_TRY(line_caps_of(arguments.up, arguments.down));
  add("--up", arguments.up);
  add("--down", arguments.down);
  add("--device", arguments.device);
  add("--memory", arguments.memory);
  add("--listen", arguments.listen);
  for (const std::string& address : arguments.advertise) add("--advertise", address);
  return words;
}

std::vector<std::string> kept_variables() {
  std::vector<std::string> variables;
  for (const char* name : kKeptVariables) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') variables.push_back(std::string(name) + "=" + value);
  }
  return variables;
}

int lend(const LendArguments& arguments, const GlobalOptions& global) {
  const auto words = join_words(arguments, global);
  if (!words.ok()) return fail(words.error());
  const auto path = unit_path();
  if (!path.ok()) return fail(path.error());
  if (!has_systemd())
    return fail(make_error(ErrorCode::kUnsupported,
                           "no systemd answers for this user, so nothing was written or started. HINT: in tmux, or "
                           "with setsid -f, this does the same: " +
                               lend_loop(*words)));
  std::error_code failure;
  std::filesystem::create_directories(std::filesystem::path(*path).parent_path(), failure);
  if (failure) return fail(error_of_errno("create the folder of", *path, failure.value()), kExitCannotCreate);
  const mode_t mask = ::umask(077);  // the ticket is in it, at no moment for others
  const Status written = replace_file(*path, {Bytes::copy_of(std::string_view(lend_unit(*words, kept_variables())))});
  ::umask(mask);
  if (!written.ok()) return fail(written.error(), kExitCannotCreate);
  if (systemctl({"daemon-reload"}) != 0 || systemctl({"enable", kUnit}) != 0 || systemctl({"restart", kUnit}) != 0)
    return fail(make_error(ErrorCode::kUnreachable, std::string("systemd could not start ") + *path +
                                                        ". HINT: systemctl --user status " + kUnit));
  std::printf("lent: systemd starts %s now and with your session, and again when it fails\n", kUnit);
  log_info("it says more in: journalctl --user -fu ", kUnit,
           ". To have it run while you are not logged in: loginctl enable-linger. shoal lend --stop ends it");
  return kExitOk;
}

int stop_lending() {
  const auto path = unit_path();
  if (!path.ok()) return fail(path.error());
  if (!std::filesystem::exists(*path)) {
    std::printf("nothing is lent: there is no %s\n", path->c_str());
    return kExitOk;
  }
  // What is lent is given back in order: systemd waits until `join` has left.
  const bool stopped = systemctl({"disable", "--now", kUnit}) == 0;
  std::error_code failure;
  std::filesystem::remove(*path, failure);
  if (failure) return fail(error_of_errno("remove", *path, failure.value()));
  if (!stopped || systemctl({"daemon-reload"}) != 0)
    return fail(
        make_error(ErrorCode::kUnreachable,
                   *path + " is removed, and systemd did not answer. HINT: shoal finish ends a join that runs"));
  std::printf("lent no more: it left and its unit is removed; this machine's key stays\n");
  return kExitOk;
}

int tell_lending(const GlobalOptions& global) {
  const auto path = unit_path();
  if (!path.ok()) return fail(path.error());
  const bool is_there = std::filesystem::exists(*path);
  const bool runs = is_there && systemctl({"is-active", "--quiet", kUnit}) == 0;
  const std::string how = !is_there ? "not lent" : runs ? "lent, and its unit runs" : "lent, and its unit does not run";
  const auto said = ask_line(control_path(home_path(global)), std::string(kStatusWord));
  std::printf("%s; %s\n", how.c_str(), said.ok() ? text_of_answer(*said).c_str() : "no join runs with this home");
  return is_there ? kExitOk : kExitEnded;
}

}  // namespace

void add_lend(Command& app, Program& program) {
  Command command = app.add_subcommand("lend", "join a run now and whenever you are logged in, by systemd");
  auto arguments = std::make_shared<LendArguments>();
  Option ticket = command.add_option("ticket", arguments->ticket, "what `shoal launch` printed").type_name("TICKET");
  command.add_option("--hours", arguments->hours, "times of the day in which it takes part, as of join")
      .type_name("FROM-TO");
  command.add_option("--gpu-busy", arguments->gpu_busy, "pause: while another program computes on the GPU, as of join")
      .one_of({"pause"})
      .type_name("pause");
  add_line_caps(command, arguments->up, arguments->down);
  command.add_option("--device", arguments->device, "auto, cpu, cuda:N, all or a list, as of join (default: auto)")
      .type_name("NAME");
  command.add_option("--memory", arguments->memory, "MiB for the stage and its microbatches, as of join")
      .type_name("MIB");
  command.add_option("--listen", arguments->listen, "where to listen, as of join").type_name("HOST:PORT");
  command.add_option("--advertise", arguments->advertise, "address that others dial, repeatable, as of join")
      .type_name("HOST[:PORT]");
  command.add_option("--name", arguments->name, "what you call this machine, as of join").type_name("NAME");
  Option status = command.add_flag("--status", arguments->status, "whether this machine is lent, and what it does");
  Option stop = command.add_flag("--stop", arguments->stop, "leave in order and be started no more");
  status.excludes(ticket).excludes(stop);
  stop.excludes(ticket);
  run_when_named(command, program, [arguments](const GlobalOptions& global) {
    if (arguments->status) return tell_lending(global);
    if (arguments->stop) return stop_lending();
    if (arguments->ticket.empty())
      return fail(make_error(ErrorCode::kInput, "lend needs a TICKET, --status or --stop"), kExitUsage);
    return lend(*arguments, global);
  });
}

}  // namespace shoal
