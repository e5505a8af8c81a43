// shoal audit DIR: judges the counting of a run from the event logs of its processes.
#include "events/audit.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/outcome.h"
#include "cli/program.h"

namespace shoal {
namespace {

int run_audit(const std::string& folder, bool json) {
  const auto events = read_events(folder);
  if (!events.ok()) return fail(events.error());
  const AuditReport report = audit(*events);
  std::fputs((json ? audit_json(report) : audit_table(report)).c_str(), stdout);
  return report.clean() ? kExitOk : kExitFailed;
}

}  // namespace

void add_audit(CLI::App& app, Program& program) {
  CLI::App* command =
      app.add_subcommand("audit", "judge the counting from the event files (*.jsonl) in DIR; exits 1 on a violation");
  auto folder = std::make_shared<std::string>();
  command->add_option("folder", *folder, "folder with the files that --events wrote")->required()->type_name("DIR");
  command->fallthrough();
  command->callback(
      [&program, folder] { program.run = [&program, folder] { return run_audit(*folder, program.global.json); }; });
}

}  // namespace shoal
