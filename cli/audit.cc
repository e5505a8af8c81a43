// shoal audit DIR: judges the counting of a run from the event logs of its processes.
#include "events/audit/audit.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/outcome.h"
#include "cli/program.h"

namespace shoal {
namespace {

int run_audit(const std::string& folder, bool json) {
  const auto report = audit_folder(folder);
  if (!report.ok()) return fail(report.error());
  std::fputs((json ? audit_json(*report) : audit_table(*report)).c_str(), stdout);
  switch (report->verdict()) {
    case AuditVerdict::kClean:
      return kExitOk;
    case AuditVerdict::kIncomplete:
      return kExitIncomplete;
    case AuditVerdict::kViolated:
      break;
  }
  return kExitFailed;
}

}  // namespace

void add_audit(CLI::App& app, Program& program) {
  CLI::App* command =
      app.add_subcommand("audit",
                         "judge the counting from the event files (*.jsonl) in DIR; exits 1 on a violation, 2 "
                         "when lines are missing and nobody can tell");
  auto folder = std::make_shared<std::string>();
  command->add_option("folder", *folder, "folder with the files that --events wrote")->required()->type_name("DIR");
  run_when_named(*command, program, [folder](const GlobalOptions& global) { return run_audit(*folder, global.json); });
}

}  // namespace shoal
