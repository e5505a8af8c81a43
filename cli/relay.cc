// shoal relay: joins two connections that both dial it, for members of runs that nobody can dial.
#include "transport/relay/relay.h"

#include <cstdio>

#include "cli/program.h"
#include "common/formatted.h"
#include "common/log.h"
#include "common/os/descriptors.h"
#include "common/os/stop_signals.h"
#include "common/os/thread_loop.h"
#include "common/program/outcome.h"
#include "transport/line_caps.h"

namespace shoal {
namespace {

constexpr Duration kTellPeriod = 60s;

struct RelayArguments {
  std::string listen, rate;
};

// ":443" is that port of every address, of IPv4 alone where the system has no IPv6.
Result<std::unique_ptr<Relay>> start(const std::string& listen, const RelayOptions& options) {
  const bool everywhere = listen.starts_with(':');
  SHOAL_ASSIGN(const HostPort place, parse_host_port((everywhere ? "[::]" : "") + listen, PortZero::kAllowed));
  auto relay = Relay::start(place, options);
  if (!relay.ok() && everywhere) return Relay::start({"0.0.0.0", place.port}, options);
  return relay;
}

class Telling {
 public:
  Telling(const Relay& relay, ThreadLoop& loop) : relay_(relay), loop_(loop) { later(); }

  void tell() const {
    const RelayStats now = relay_.stats();
    log_info(formatted("%zu runs, %zu homes, %zu pairs, %.1f MB carried, %llu refused", now.runs, now.homes, now.pairs,
                       static_cast<double>(now.carried_bytes) / 1e6, static_cast<unsigned long long>(now.refused())));
  }

 private:
  void later() {
    loop_.after(kTellPeriod, [this] {
      tell();
      later();
    });
  }
  const Relay& relay_;
  ThreadLoop& loop_;
};

int run_relay(const RelayArguments& arguments) {
  RelayOptions options{.any_run = true};
  if (!arguments.rate.empty()) {
    const auto rate = parse_line_cap("--rate", arguments.rate);
    if (!rate.ok()) return fail(rate.error(), kExitUsage);
    options.bytes_per_second = *rate;
  }
  if (const Status raised = raise_descriptors_max(); !raised.ok()) log_warning(raised.error().message);
  ThreadLoop loop;
  const auto stop = [&loop] { loop.stop(); };
  const auto signals = StopSignals::listen(loop, stop, stop);
  if (!signals.ok()) return fail(signals.error());
  const auto relay = start(arguments.listen, options);
  if (!relay.ok()) return fail(relay.error());
  std::printf("relay listens on %s\n", (*relay)->listening_at().text().c_str());
  std::fflush(stdout);
  const Telling telling(**relay, loop);
  loop.run();
  telling.tell();
  return kExitOk;
}

}  // namespace

void add_relay(Command& app, Program& program) {
  Command command = app.add_subcommand(
      "relay",
      "a place where members of runs that nobody can dial are called; it sees who, when and how much, no text");
  auto arguments = std::make_shared<RelayArguments>();
  command.add_option("--listen", arguments->listen, "where; :PORT is that port of every address of this machine")
      .required()
      .type_name("HOST:PORT");
  command.add_option("--rate", arguments->rate, "most that it carries, 256kbit or more, as 100mbit (default: no cap)")
      .type_name("RATE");
  run_when_named(command, program, [arguments](const GlobalOptions&) { return run_relay(*arguments); });
}

}  // namespace shoal
