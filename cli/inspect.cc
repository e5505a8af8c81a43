// shoal inspect TICKET|RUN: what the DHT tells any stranger about a run.
#include "dht/inspect.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/live.h"
#include "cli/outcome.h"
#include "cli/program.h"
#include "common/rng.h"
#include "common/thread_loop.h"
#include "dht/dht_child.h"
#include "dht/dht_directory.h"
#include "runtime/config/ticket.h"

namespace shoal {
namespace {

struct InspectArguments {
  std::string run;
  std::uint32_t network = 0;
  std::vector<std::string> bootstrap;
  double seconds = 5;
};

// A ticket brings network and addresses; a bare key needs them as options.
Status resolve(InspectArguments& arguments, RunId& run) {
  if (arguments.run.starts_with("shoal")) {
    SHOAL_ASSIGN(const Ticket ticket, parse_ticket(arguments.run));
    run = ticket.run;
    if (arguments.network == 0) arguments.network = ticket.network;
    for (const Contact& contact : ticket.contacts) arguments.bootstrap.push_back(contact.address);
    return {};
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

int run(InspectArguments arguments, bool json) {
  RunId run_id;
  const Status resolved = resolve(arguments, run_id);
  if (!resolved.ok())
    return resolved.code() == ErrorCode::kInput ? fail(resolved.error(), kExitUsage) : fail(resolved.error());
  if (const Status routes = check_routes(arguments.bootstrap); !routes.ok()) return fail(routes.error());
  ThreadLoop loop;
  DhtChildOptions child_options;
  child_options.network = arguments.network;
  auto child = DhtChild::start(loop, child_options);
  if (!child.ok()) return fail(child.error());
  DhtDirectory directory(loop, std::move(*child), nullptr,
                         {.run = run_id, .bootstrap = arguments.bootstrap, .cache_path = {}, .seed = entropy_seed()});
  int code = kExitUnavailable;
  inspect_run(directory, loop,
              {.run = run_id,
               .network = arguments.network,
               .budget = from_seconds(arguments.seconds),
               .counters = [&] { return directory.counters(); }},
              [&](const RunReport& report) {
                std::fputs((json ? json_of(report) : table_of(report)).c_str(), stdout);
                if (json) std::fputs("\n", stdout);
                bool found = report.record.has_value();
                for (const StageReport& stage : report.stages) found = found || !stage.peers.empty();
                code = found ? kExitOk : kExitUnavailable;
                loop.stop();
              });
  loop.run();
  if (code != kExitOk) {
    return fail(make_error(ErrorCode::kUnreachable,
                           "nobody in the DHT tells anything about this run. Is it up, and can UDP reach " +
                               (arguments.bootstrap.empty() ? "it" : arguments.bootstrap.front()) + "?"));
  }
  return code;
}

}  // namespace

void add_inspect(CLI::App& app, Program& program) {
  CLI::App* command =
      app.add_subcommand("inspect", "stages, peers, rates and versions of a run, as the DHT tells them to anybody");
  auto arguments = std::make_shared<InspectArguments>();
  command->add_option("run", arguments->run, "the run's ticket, or its key as 64 hex digits")
      ->required()
      ->type_name("TICKET|RUN");
  command->add_option("--network", arguments->network, "id of the DHT network (with a ticket: from it)");
  command->add_option("--bootstrap", arguments->bootstrap, "a DHT node to ask first, repeatable")
      ->type_name("HOST:PORT");
  command->add_option("--seconds", arguments->seconds, "patience for each of the two questions (default: 5)")
      ->check(CLI::Range(0.1, 600.0));
  run_when_named(*command, program, [arguments](const GlobalOptions& global) { return run(*arguments, global.json); });
}

}  // namespace shoal
