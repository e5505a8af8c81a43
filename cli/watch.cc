// shoal watch DIR: a run's event files on the page, at any moment of it.
#include <cstdio>

#include "cli/program.h"
#include "common/log.h"
#include "common/os/descriptors.h"
#include "common/os/stop_signals.h"
#include "common/os/thread_loop.h"
#include "common/program/outcome.h"
#include "common/status_line.h"
#include "events/headway.h"
#include "events/line_parts.h"
#include "page/page_port.h"
#include "page/replay.h"
#include "page/run_page.h"

namespace shoal {
namespace {

struct WatchArguments {
  std::string folder, run;
  double speed = 16;
  std::optional<PagePort> page;
};

// Until Ctrl-C.
Status serve(const Replay& replay, const PagePort& port) {
  SHOAL_ASSIGN(const auto http, LoopbackHttp::open({.at = port, .stays = false, .answers = replay.answers()}));
  tell_page(http->port());
  ThreadLoop loop;
  const auto stop = [&loop] { loop.stop(); };
  SHOAL_ASSIGN(const auto signals, StopSignals::listen(loop, stop, stop));
  loop.run();
  return {};
}

int run_watch(const WatchArguments& arguments, bool json) {
  auto facts = facts_of_file(arguments.run);
  if (!facts.ok()) return fail_config(facts.error());
  if (const Status raised = raise_descriptors_max(); !raised.ok()) log_warning(raised.error().message);
  HeadwayMeter meter;
  auto replay = Replay::read(arguments.folder, *std::move(facts), [&meter](std::uint64_t bytes, std::uint64_t of) {
    show_headway(meter, {.what = "reading event files", .done = bytes, .total = of, .bytes = true});
  });
  end_status();
  if (!replay.ok()) return fail(replay.error());
  replay->set_speed(arguments.speed);
  if (json) {
    std::printf("%s\n", replay->snapshot().c_str());
    return kExitOk;
  }
  log_info(short_number(replay->lines()), " events of ", span_text(from_seconds(replay->to() - replay->from())),
           "; Ctrl-C ends it");
  const Status served = serve(*replay, arguments.page.value_or(PagePort()));
  return served.ok() ? kExitOk : fail(served.error());
}

}  // namespace

void add_watch(Command& app, Program& program) {
  Command command = app.add_subcommand(
      "watch", "show a run in a browser from the event files (*.jsonl) in DIR, at any moment of it and at any speed");
  auto arguments = std::make_shared<WatchArguments>();
  command.add_option("folder", arguments->folder, "folder with the files that --events wrote")
      .required()
      .type_name("DIR");
  command.add_option("--run", arguments->run, "the run's file: name, end, and the entropies of its text")
      .type_name("RUN.toml");
  command.add_option("--speed", arguments->speed, "seconds of the run in one of yours, at the beginning")
      .within(0.1, 100000.0)
      .show_default();
  add_page_option(command, arguments->page, "the page is");
  run_when_named(command, program,
                 [arguments](const GlobalOptions& global) { return run_watch(*arguments, global.json); });
}

}  // namespace shoal
