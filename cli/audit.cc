// shoal audit DIR: judges the counting of a run from the event logs of its processes.
#include "events/audit/audit.h"

#include <cstdio>

#include "cli/program.h"
#include "common/log.h"
#include "common/program/outcome.h"
#include "common/status_line.h"
#include "events/audit/measured_delays.h"
#include "events/headway.h"

namespace shoal {
namespace {

struct AuditArguments {
  std::string folder, delay_profile;
};

Status write_delays(const AuditReport& report, const std::string& path) {
  SHOAL_ASSIGN(const DelayProfile delays, measured_delays(report));
  SHOAL_TRY(save_delay_profile(path, delays));
  log_info("delays of ", delays.stages.size(), " stages written to ", path);
  return {};
}

int run_audit(const AuditArguments& arguments, bool json) {
  HeadwayMeter meter;
  const auto report = audit_folder(arguments.folder, [&meter](std::uint64_t bytes, std::uint64_t of) {
    show_headway(meter, {.what = "reading event files", .done = bytes, .total = of, .bytes = true});
  });
  end_status();
  if (!report.ok()) return fail(report.error());
  std::fputs((json ? audit_json(*report) : audit_table(*report)).c_str(), stdout);
  if (!arguments.delay_profile.empty()) {
    if (const Status written = write_delays(*report, arguments.delay_profile); !written.ok())
      return fail(written.error());
  }
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

void add_audit(Command& app, Program& program) {
  Command command =
      app.add_subcommand("audit",
                         "judge the counting from the event files (*.jsonl) in DIR; exits 1 on a violation, 2 "
                         "when lines are missing and nobody can tell");
  auto arguments = std::make_shared<AuditArguments>();
  command.add_option("folder", arguments->folder, "folder with the files that --events wrote")
      .required()
      .type_name("DIR");
  command
      .add_option("--delay-profile", arguments->delay_profile,
                  "write how late the gradients were here, for solo --delay-profile")
      .type_name("FILE");
  run_when_named(command, program,
                 [arguments](const GlobalOptions& global) { return run_audit(*arguments, global.json); });
}

}  // namespace shoal
