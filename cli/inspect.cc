// shoal inspect TICKET|RUN: what the DHT tells any stranger about a run.
#include "dht/inspect.h"

#include <unistd.h>

#include <cstdio>

#include "cli/inspect_watch.h"
#include "cli/program.h"
#include "common/formatted.h"
#include "common/os/host_probe.h"
#include "common/os/own_addresses.h"
#include "common/os/stop_signals.h"
#include "common/os/thread_loop.h"
#include "common/program/outcome.h"
#include "common/rng.h"
#include "dht/dht_child.h"
#include "dht/dht_directory.h"
#include "runtime/config/ticket.h"

namespace shoal {
namespace {

constexpr Duration kWatchPeriod = 2s;
constexpr Duration kProbePatience = 2s;

struct InspectArguments {
  std::string run;
  std::uint32_t network = 0;
  std::vector<std::string> bootstrap;
  double seconds = seconds_of(kInspectPatience);
  bool watch = false;
};

// A ticket brings network and addresses; a bare key needs them as options.
Status resolve(InspectArguments& arguments, RunId& run) {
  arguments.run = bare_ticket(arguments.run);
  if (arguments.run.starts_with("shoal")) {
    SHOAL_ASSIGN(const Ticket ticket, parse_ticket(arguments.run));
    run = ticket.run;
    if (arguments.network == 0) arguments.network = ticket.network;
    for (const Contact& contact : ticket.contacts)
      if (!is_via(contact.address)) arguments.bootstrap.push_back(contact.address);
    if (!arguments.bootstrap.empty()) return {};
    return make_error(
        ErrorCode::kInput,
        "this ticket names relays alone, and no relay knows a directory. HINT: --bootstrap HOST:PORT of a "
        "DHT node that a member was given too");
  }
  const auto key = parse_hex32(arguments.run);
  if (!key.ok())
    return make_error(ErrorCode::kMalformed, "neither a ticket (shoal1:...) nor a run's key: " + key.error().message);
  run.bytes = *key;
  if (arguments.network == 0 || arguments.bootstrap.empty()) {
    return make_error(
        ErrorCode::kInput,
        "a run's key alone does not say where to ask: add --network ID and --bootstrap HOST:PORT, or give the ticket");
  }
  return {};
}

class InspectProgram {
 public:
  InspectProgram(InspectArguments arguments, bool json) : arguments_(std::move(arguments)), json_(json) {}

  int run() {
    const Status resolved = resolve(arguments_, run_);
    if (!resolved.ok())
      return resolved.code() == ErrorCode::kInput ? fail(resolved.error(), kExitUsage) : fail(resolved.error());
    if (const Status opened = open(); !opened.ok()) return fail(opened.error());
    ask();
    loop_.run();
    if (stop_wanted()) return stop_exit_code();
    return written_.ok() ? judge() : fail(written_.error());
  }

 private:
  Status open() {
    SHOAL_TRY(check_routes(arguments_.bootstrap));
    DhtChildOptions child_options;
    child_options.network = arguments_.network;
    SHOAL_ASSIGN(std::unique_ptr<DhtChild> child, DhtChild::start(loop_, child_options));
    directory_ = std::make_unique<DhtDirectory>(
        loop_, std::move(child), nullptr,
        DhtDirectoryOptions{.run = run_, .bootstrap = arguments_.bootstrap, .cache_path = {}, .seed = entropy_seed()});
    const auto stop = [this] { loop_.stop(); };
    SHOAL_ASSIGN(signals_, StopSignals::listen(loop_, stop, stop));
    return {};
  }

  void ask() {
    inspect_run(*directory_, loop_,
                {.run = run_,
                 .network = arguments_.network,
                 .budget = from_seconds(arguments_.seconds),
                 .counters = [this] { return directory_->counters(); }},
                [this](RunReport report) {
                  report_ = std::move(report);
                  if (report_.found()) print();
                  written_ = write_output();
                  // A run that is over says nothing new, and what is not found is judged at once.
                  if (!arguments_.watch || report_.ended() || !report_.found() || !written_.ok()) return loop_.stop();
                  loop_.after(kWatchPeriod, [this] { ask(); });
                });
  }

  void print() {
    if (arguments_.watch && !json_ && ::isatty(STDOUT_FILENO) != 0) std::fputs("\x1b[H\x1b[J", stdout);
    const JsonLines lines = arguments_.watch ? JsonLines::kOne : JsonLines::kMany;
    std::fputs((json_ ? json_of(report_, lines) + "\n" : table_of(report_)).c_str(), stdout);
    if (arguments_.watch && !json_ && ::isatty(STDOUT_FILENO) == 0) std::fputs("\n", stdout);
  }

  int judge() const {
    if (report_.ended()) return kExitEnded;
    if (report_.record || report_.standing) return kExitOk;
    const std::string network = std::to_string(arguments_.network);
    const std::string run = "run " + short_name(run_);
    if (report_.found())
      return fail(make_error(ErrorCode::kUnreachable,
                             "only claims of peers were found, and nothing that " + run +
                                 "'s key signed: its launching process has been away for more than a minute"));
    if (const std::string apart = directory_->clocks_apart(); !apart.empty())
      return fail(make_error(ErrorCode::kMissing,
                             "DHT network " + network + " has records of " + run + ", and " + apart +
                                 ". HINT: is this machine's clock right (`timedatectl`)? Else the run has just ended"));
    if (directory_->good_nodes() > 0)
      return fail(make_error(ErrorCode::kMissing,
                             "DHT network " + network + " answers, and knows nothing of " + run +
                                 ". HINT: is the key right? Of a run that is over the records last a minute"));
    return judge_silence(network);
  }

  // No DHT node answered at all.
  int judge_silence(const std::string& network) const {
    std::string closed;
    for (const std::string& address : arguments_.bootstrap) {
      const HostProbe probe = probe_host(address, kProbePatience);
      if (probe == HostProbe::kSilent)
        return fail(make_error(ErrorCode::kUnreachable,
                               address + " is there, and no DHT node of network " + network +
                                   " answers: it is of another network, or UDP is blocked on the way. HINT: the "
                                   "ticket names the right network; else `launch` said it with --network"),
                    kExitWrongNetwork);
      if (probe == HostProbe::kClosed) closed += (closed.empty() ? "" : ", ") + address;
    }
    if (!closed.empty())
      return fail(make_error(
          ErrorCode::kUnreachable,
          "nobody listens at " + closed +
              " (UDP): the run has ended and its last process is gone, or that process has moved or was started with "
              "--no-dht. HINT: `launch` tells the end of a run for --linger, and FOLDER/summary.json keeps it"));
    return fail(make_error(ErrorCode::kUnreachable,
                           "no answer from " + list_text(arguments_.bootstrap) +
                               ": the host is down, or a firewall keeps TCP and UDP from it. HINT: can this machine "
                               "reach it at all?"));
  }

  InspectArguments arguments_;
  const bool json_;
  RunId run_;
  RunReport report_;
  Status written_;

  // Destroyed from the last to the first: each borrows from those above it.
  ThreadLoop loop_;
  std::unique_ptr<DhtDirectory> directory_;
  std::unique_ptr<StopSignals> signals_;
};

}  // namespace

int watch_run(const std::string& ticket, bool json) {
  InspectArguments arguments;
  arguments.run = ticket;
  arguments.watch = true;
  const int code = InspectProgram(std::move(arguments), json).run();
  return code == kExitEnded || stop_wanted() ? kExitOk : code;
}

void add_inspect(Command& app, Program& program) {
  Command command =
      app.add_subcommand("inspect", "how a run stands, who serves and who does not, as the DHT tells it to anybody");
  auto arguments = std::make_shared<InspectArguments>();
  command.add_option("run", arguments->run, "the run's ticket, or its key as 64 hex digits")
      .required()
      .type_name("TICKET|RUN");
  command.add_option("--network", arguments->network, "id of the DHT network (with a ticket: from it)");
  command.add_option("--bootstrap", arguments->bootstrap, "a DHT node to ask first, repeatable").type_name("HOST:PORT");
  command.add_option("--seconds", arguments->seconds, "patience for each of the two questions (default: 5)")
      .within(0.1, 600.0);
  command.add_flag("--watch", arguments->watch, "ask again every 2 s until the run has ended");
  run_when_named(command, program,
                 [arguments](const GlobalOptions& global) { return InspectProgram(*arguments, global.json).run(); });
}

}  // namespace shoal
