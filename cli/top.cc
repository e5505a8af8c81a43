// shoal top TICKET|DIR: the page's first glance in a terminal.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "cli/inspect_watch.h"
#include "cli/program.h"
#include "common/log.h"
#include "common/os/descriptors.h"
#include "common/os/stop_signals.h"
#include "common/os/thread_loop.h"
#include "common/program/outcome.h"
#include "common/status_line.h"
#include "events/books/followed_run.h"
#include "page/glance_text.h"
#include "page/run_json.h"
#include "page/run_page.h"
#include "runtime/config/ticket.h"

namespace shoal {
namespace {

constexpr Duration kTopPeriod = 2s;

struct TopArguments {
  std::string run, file;
};

// Columns and lines of the terminal; none: stdout is none.
std::optional<GlanceSize> terminal_size() {
  if (::isatty(STDOUT_FILENO) == 0) return std::nullopt;
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return GlanceSize();
  return GlanceSize{.columns = size.ws_col, .lines = std::max<std::size_t>(size.ws_row, 2) - 1};
}

class TopProgram {
 public:
  TopProgram(const std::string& folder, RunFacts facts, bool json) : run_(folder, std::move(facts)), json_(json) {}

  int run() {
    if (const Status heard = listen(); !heard.ok()) return fail(heard.error());
    turn();
    loop_.run();
    end_status();
    return outcome_.ok() ? kExitOk : fail(outcome_.error());
  }

 private:
  Status listen() {
    const auto stop = [this] { loop_.stop(); };
    SHOAL_ASSIGN(signals_, StopSignals::listen(loop_, stop, stop));
    return {};
  }

  void turn() {
    outcome_ = read_on();
    if (stop_wanted()) return loop_.stop();
    if (outcome_.ok()) outcome_ = show();
    if (!outcome_.ok() || run_.view().ended()) return loop_.stop();
    loop_.after(kTopPeriod, [this] { turn(); });
  }

  Status read_on() {
    const TimePoint begin = loop_.now();
    Duration told{};
    SHOAL_TRY(run_.read_on(seconds_of(loop_.wall().time_since_epoch()), [&](std::uint64_t lines) {
      const Duration taken = monotonic_now() - begin;
      if (taken - told < kTopPeriod) return !stop_wanted();
      told = taken;
      show_status("reading event files: " + std::to_string(lines) + " lines, " +
                  std::to_string(static_cast<std::uint64_t>(static_cast<double>(lines) / seconds_of(taken))) + "/s");
      return !stop_wanted();
    }));
    end_status();
    return {};
  }

  // What stands there is drawn anew; where that cannot be, lines follow each other while something is written.
  Status show() {
    if (json_) {
      if (has_news()) std::printf("%s\n", moment_json(run_.view()).c_str());
    } else if (const auto size = terminal_size()) {
      std::printf("\x1b[H\x1b[J%s", glance_text(run_.view(), run_.told(), *size).c_str());
    } else if (has_news()) {
      tell_tales();
      std::printf("%s\n", glance_line(run_.view(), run_.told()).c_str());
    }
    return write_output();
  }

  bool has_news() { return std::exchange(lines_, run_.view().lines()) != run_.view().lines(); }

  void tell_tales() {
    const FaultStory& story = run_.view().story();
    const std::uint64_t all = story.forgotten() + story.tales().size();
    const std::size_t fresh = std::min<std::uint64_t>(all - std::exchange(tales_, all), story.tales().size());
    for (std::size_t i = story.tales().size() - fresh; i < story.tales().size(); ++i)
      std::printf("%s\n", tale_line(story.tales()[i], run_.view().begun()).c_str());
  }

  FollowedRun run_;
  const bool json_;
  std::uint64_t lines_ = 0, tales_ = 0;
  Status outcome_;
  ThreadLoop loop_;
  std::unique_ptr<StopSignals> signals_;
};

int run_top(const TopArguments& arguments, bool json) {
  std::error_code ignored;
  if (std::filesystem::is_directory(arguments.run, ignored)) {
    auto facts = facts_of_file(arguments.file);
    if (!facts.ok()) return fail_config(facts.error());
    if (const Status raised = raise_descriptors_max(); !raised.ok()) log_warning(raised.error().message);
    return TopProgram(arguments.run, *std::move(facts), json).run();
  }
  if (!bare_ticket(arguments.run).starts_with("shoal"))
    return fail(make_error(ErrorCode::kMissing, arguments.run + ": no such folder, and no ticket either (shoal1:...)"));
  if (!arguments.file.empty())
    return fail(make_error(ErrorCode::kInput, "--run is of event files; the DHT tells it of a ticket's run"),
                kExitUsage);
  return watch_run(arguments.run, json);
}

}  // namespace

void add_top(Command& app, Program& program) {
  Command command = app.add_subcommand(
      "top",
      "how a run stands, drawn anew every 2 s until it has ended: from the event files (*.jsonl) in DIR, which may "
      "grow, or from the DHT as `inspect --watch` has it; lines where stdout is no terminal");
  auto arguments = std::make_shared<TopArguments>();
  command.add_option("run", arguments->run, "folder with the files that --events writes, or the run's ticket")
      .required()
      .type_name("TICKET|DIR");
  command.add_option("--run", arguments->file, "with DIR, the run's file: name, end, and the entropies of its text")
      .type_name("RUN.toml");
  run_when_named(command, program,
                 [arguments](const GlobalOptions& global) { return run_top(*arguments, global.json); });
}

}  // namespace shoal
