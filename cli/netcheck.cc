// shoal netcheck TICKET: what stands between this machine and a run, before it joins.
#include <algorithm>
#include <cstdio>
#include <future>

#include "cli/program.h"
#include "common/os/own_addresses.h"
#include "common/os/stop_signals.h"
#include "common/os/tcp_place.h"
#include "common/os/thread_loop.h"
#include "common/program/outcome.h"
#include "common/rng.h"
#include "runtime/config/ticket.h"
#include "runtime/peer/network_report.h"
#include "transport/mapping/port_mapping.h"
#include "transport/whereabouts.h"
#include "transport/zmq/zmq_wire.h"

namespace shoal {
namespace {

constexpr Duration kOutwardsPatience = 3s;
constexpr Duration kRouterPatience = 4s;  // for one that is silent in both protocols
constexpr std::uint16_t kHttpsPort = 443;

struct NetcheckArguments {
  std::string ticket, listen;
  std::vector<std::string> advertise;
  bool no_map = false, own_key = false;
};

std::string port_word(const Result<Duration>& dialled) {
  if (dialled.ok()) return "open";
  return dialled.code() == ErrorCode::kRefused ? "closed" : "silent";
}

NetworkReport::Outwards way_to(const std::string& contact) {
  const auto parsed = parse_dial_address(contact);
  if (!parsed.ok()) return {.place = contact, .why = parsed.error().message};
  const HostPort place = parsed->control;
  NetworkReport::Outwards way{.place = place.text(), .relay = parsed->via};
  const auto took = time_of_dial(place, kOutwardsPatience);
  if (took.ok()) {
    way.took = *took;
  } else {
    way.why = took.error().message;
    way.refused = took.code() == ErrorCode::kRefused;
  }
  if (place.port != kHttpsPort) way.port_443 = port_word(time_of_dial({place.host, kHttpsPort}, kOutwardsPatience));
  return way;
}

class Netcheck {
 public:
  Netcheck(const NetcheckArguments& arguments, const GlobalOptions& global) : arguments_(arguments), global_(global) {}

  int run() {
    if (const Status opened = open(); !opened.ok()) return fail(opened.error());
    std::vector<std::future<NetworkReport::Outwards>> ways;  // each waits for its own
    for (const std::string& contact : contacts_) ways.push_back(std::async(std::launch::async, way_to, contact));
    ask_router();
    for (auto& way : ways) report_.outwards.push_back(way.get());
    if (const Status asked = ask_run(); !asked.ok()) return fail(asked.error());
    if (stop_wanted()) return stop_exit_code();
    print();
    return report_.run.linked ? kExitOk : kExitUnavailable;
  }

 private:
  Status open() {
    SHOAL_ASSIGN(ticket_, parse_ticket(arguments_.ticket));
    SHOAL_ASSIGN(contacts_, contacts_of(ticket_));
    SHOAL_ASSIGN(key_, key_beside_join(global_, arguments_.own_key));
    SHOAL_ASSIGN(
        wire_, make_zmq_wire(loop_, {.key = key_,
                                     .listen = arguments_.listen.empty() ? listen_toward(contacts_) : arguments_.listen,
                                     .admission = Admission::kOpen,
                                     .admitted = {},
                                     .run = ticket_.run}));
    SHOAL_ASSIGN(const HostPort bound, parse_host_port(wire_->listening_address()));
    report_.port = bound.port;
    SHOAL_ASSIGN(report_.told, own_addresses(wire_->listening_address(), arguments_.advertise, contacts_));
    for (const std::string& address : report_.told) {
      const auto parsed = parse_dial_address(address);
      if (parsed.ok() && parsed->control.is_v6() && !is_private_address(address)) report_.ipv6 = parsed->control.host;
    }
    return {};
  }

  void ask_router() {
    report_.router_spared = arguments_.no_map || !arguments_.advertise.empty();
    if (report_.router_spared || std::ranges::all_of(contacts_, is_private_address)) return;
    const TimePoint begun = monotonic_now();
    const auto port = report_.port;
    mapping_ = std::make_unique<PortMapping>(
        loop_, PortMappingOptions{.ports = lane_ports(port), .addresses = report_.told, .secret = mapping_secret(key_)},
        [] {});
    const std::vector<Mapping> mappings = mapping_->await(kRouterPatience);
    report_.router_took = monotonic_now() - begun;
    report_.router_asked = !mappings.empty();
    for (const Mapping& mapping : mappings) {
      if (report_.mapped_by.empty()) report_.mapped_by = mapping.by;
      if (!mapping.host.empty() && mapping.host.find(':') == std::string::npos) report_.outer = mapping.host;
    }
    report_.router_why = report_.mapped_by.empty() ? mapping_text(mappings) : "";
    report_.mapped = mapped_addresses(mappings, port);
    report_.told = beside(report_.mapped, report_.told);
  }

  Status ask_run() {
    if (std::ranges::none_of(report_.outwards, [](const auto& way) { return way.took.has_value(); })) {
      report_.run.why = "nobody takes a connection at the ticket's places";
      return {};
    }
    ReachProbe probe({.run = ticket_.run,
                      .self = key_.id(),
                      .launching = {contacts_},
                      .told = {report_.told},
                      .incarnation = entropy_seed()},
                     *wire_, loop_, [this] { loop_.stop(); });
    SHOAL_ASSIGN(const auto signals, StopSignals::listen(
                                         loop_, [this] { loop_.stop(); }, [this] { loop_.stop(); }));
    loop_.post([&probe] { probe.start(); });
    loop_.run();
    report_.run = probe.found();
    return {};
  }

  void print() const {
    std::string text;
    if (global_.json)
      text = report_.json().text() + "\n";
    else
      for (const std::string& line : report_.lines()) text += line + "\n";
    std::fputs(text.c_str(), stdout);
  }

  const NetcheckArguments& arguments_;
  const GlobalOptions& global_;
  ThreadLoop loop_;
  Ticket ticket_;
  std::vector<std::string> contacts_;
  KeyPair key_ = KeyPair::generate();
  std::unique_ptr<ZmqWire> wire_;
  std::unique_ptr<PortMapping> mapping_;
  NetworkReport report_;
};

}  // namespace

void add_netcheck(Command& app, Program& program) {
  Command command = app.add_subcommand(
      "netcheck",
      "what stands between this machine and a run: its router, its provider, what is let out, and whether "
      "the run can dial it; with a remedy for each");
  auto arguments = std::make_shared<NetcheckArguments>();
  command.add_option("ticket", arguments->ticket, "what `shoal launch` printed").required().type_name("TICKET");
  command.add_option("--listen", arguments->listen, "where `join` would listen (default: any port)")
      .type_name("HOST:PORT");
  command.add_option("--advertise", arguments->advertise, "as of `join`, repeatable")
      .one_at_a_time()
      .type_name("HOST[:PORT]");
  command.add_flag("--no-map", arguments->no_map, "do not ask the router to forward ports (PCP, NAT-PMP)");
  command.add_flag("--own-key", arguments->own_key,
                   "with this machine's key, for a run that admits listed keys; not while `join` uses it");
  run_when_named(command, program,
                 [arguments](const GlobalOptions& global) { return Netcheck(*arguments, global).run(); });
}

}  // namespace shoal
