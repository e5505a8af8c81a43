// shoal completion SHELL, shoal man [COMMAND]: what shells and the manual know of the program.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>

#include "cli/completion.h"
#include "cli/manual.h"
#include "cli/outcome.h"
#include "cli/program.h"
#include "common/os/posix_file.h"

namespace shoal {
namespace {

int write_pages(const CommandRow& program, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const CommandRow* command : every_command(program)) {
    const std::string path = folder + "/" + page_name(*command) + ".1";
    const std::string page = manual_page(program, *command, version_line());
    if (const Status written = replace_file(path, {Bytes::copy_of(std::string_view(page))}); !written.ok())
      return fail(written.error(), kExitCannotCreate);
  }
  return kExitOk;
}

int print_page(const CommandRow& program, const std::vector<std::string>& words) {
  std::string path = program.path;
  for (const std::string& word : words) path += " " + word;
  for (const CommandRow* command : every_command(program)) {
    if (command->path != path) continue;
    std::fputs(manual_page(program, *command, version_line()).c_str(), stdout);
    return kExitOk;
  }
  return fail(make_error(ErrorCode::kInput, "\"" + path + "\" is no command (see shoal --help)"), kExitUsage);
}

}  // namespace

void add_completion(CLI::App& app, Program& program) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "completion", "print what completes shoal's words in a shell: source <(shoal completion bash)");
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember(std::set<std::string>(std::begin(kShells), std::end(kShells))));
  run_when_named(*command, program, [&app, shell](const GlobalOptions&) {
    std::fputs(completion_script(table_of(app), *shell).c_str(), stdout);
    return kExitOk;
  });
}

void add_man(CLI::App& app, Program& program) {
  struct Arguments {
    std::vector<std::string> words;
    std::string folder;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("man", "print the manual page of a command: shoal man join | man -l -");
  command->add_option("command", arguments->words, "whose (default: shoal's own)")->type_name("COMMAND");
  command->add_option("--to", arguments->folder, "write the pages of all commands to this folder instead")
      ->type_name("DIR");
  run_when_named(*command, program, [&app, arguments](const GlobalOptions&) {
    const CommandRow table = table_of(app);
    return arguments->folder.empty() ? print_page(table, arguments->words) : write_pages(table, arguments->folder);
  });
}

}  // namespace shoal
