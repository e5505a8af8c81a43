#include "runtime/peer/network_report.h"

#include <algorithm>
#include <cstdio>

#include "common/formatted.h"
#include "common/host_port.h"

namespace shoal {
namespace {

double ms_of(Duration time) { return 1000 * seconds_of(time); }
std::string ms_text(Duration time) { return formatted("%.0f ms", ms_of(time)); }

// 100.64/10, RFC 6598.
bool is_carriers(const std::string& host) {
  unsigned second = 0;
  return std::sscanf(host.c_str(), "100.%u.", &second) == 1 && second >= 64 && second < 128;
}

std::string row(const char* name, const std::string& text) { return formatted("%-9s ", name) + text; }

std::string outwards_text(const NetworkReport::Outwards& way) {
  const std::string what = way.relay ? "relay " + way.place : way.place;
  const std::string how = way.took ? "passes, " + ms_text(*way.took) : "does not pass: " + way.why;
  return what + " " + how + (way.port_443.empty() ? "" : "; its port 443 is " + way.port_443);
}

}  // namespace

std::optional<bool> NetworkReport::carrier_nat() const {
  if (!outer) return std::nullopt;
  if (is_private_host(*outer)) return is_carriers(*outer) ? std::optional(true) : std::nullopt;
  const bool v4 = run.answer && run.answer->host.find(':') == std::string::npos && !run.answer->host.empty();
  if (!v4 || is_private_host(run.answer->host)) return std::nullopt;
  return run.answer->host != *outer;
}

std::optional<Reach> NetworkReport::reach() const {
  if (!run.answer) return std::nullopt;
  if (run.answer->reach != Reach::kNone) return run.answer->reach;
  const auto is_seen = [this](const std::string& address) {
    const auto parsed = parse_dial_address(address);
    return parsed.ok() && parsed->control.host == run.answer->host;
  };
  const bool dialled =
      !run.relayed && !run.answer->host.empty() && (mapped.empty() || std::ranges::any_of(mapped, is_seen));
  return dialled ? std::optional(Reach::kNone) : std::nullopt;
}

std::string NetworkReport::reach_text() const {
  if (!run.answer) return "not known: " + run.why;
  if (!reach())
    return "not known: who is no member is dialled at the address that it comes from alone. `shoal join` says it";
  return std::string(name_of(*reach())) + (run.answer->reason.empty() ? "" : " (" + run.answer->reason + ")");
}

bool NetworkReport::behind_router() const {
  return router_asked || (!told.empty() && std::ranges::all_of(told, is_private_address) && run.answer &&
                          !is_private_host(run.answer->host));
}

std::vector<std::string> NetworkReport::remedies() const {
  std::vector<std::string> all;
  const auto passes = [](const Outwards& way) { return way.took.has_value(); };
  const bool out = std::ranges::any_of(outwards, passes);
  const bool refused = std::ranges::any_of(outwards, &Outwards::refused);
  const bool open = std::ranges::any_of(
      outwards, [](const Outwards& way) { return way.port_443 == "open" || way.port_443 == "closed"; });
  if (!out && !refused && open)
    all.push_back(
        "this network lets out no connection to the ticket's ports: whoever launched the run can give it a "
        "way in at one that is let out, with --relay-port 443");
  else if (!out)
    all.push_back(
        "nothing of the run answers: is the run still on, is the ticket its newest, and is this machine "
        "online (`ping 1.1.1.1`)?");
  if (out && !run.linked)
    all.push_back("the run's machine answers and does not let this one in: " + run.why +
                  ". With [admission] mode = \"keys\" ask its owner to add `shoal key`, and try --own-key");
  if (!run.linked || reach() == Reach::kDirect) return all;
  const char* const all_the_same =
      "it can join all the same: it dials those who can be dialled, and the others meet it at the run's relay";
  if (!reach()) return {all_the_same};
  const std::string ports = std::to_string(port) + " and " + std::to_string(port + 1);
  if (carrier_nat().value_or(false))
    all.push_back("the provider's router stands in front of this one, so that no port can be forwarded by IPv4: " +
                  std::string(ipv6 ? "open ports " + ports + " for IPv6 in the router"
                                   : "ask the provider for a public address or IPv6"));
  else if (outer && is_private_host(*outer))
    all.push_back(
        "another router stands in front of this one: forward TCP ports 4700 and 4701 in both, or make one of "
        "them a bridge, and join with --listen 0.0.0.0:4700");
  else if (behind_router() && mapped_by.empty())
    all.push_back(
        "switch on PCP, NAT-PMP or \"port sharing\" in the router, or forward TCP ports 4700 and 4701 to this "
        "machine and join with --listen 0.0.0.0:4700");
  else
    all.push_back("open TCP ports " + ports + " in this machine's firewall, or choose others with --listen");
  all.push_back(all_the_same);
  return all;
}

std::vector<std::string> NetworkReport::lines() const {
  std::vector<std::string> lines{row("told", list_text(told))};
  if (!router_asked)
    lines.push_back(
        row("router", std::string("not asked") + (router_spared ? "" : ": others dial this machine's own address")));
  else if (mapped_by.empty())
    lines.push_back(row("router", "forwards nothing: " + router_why));
  else
    lines.push_back(
        row("router", "forwards " + list_text(mapped) + " by " + mapped_by + ", in " + ms_text(router_took)));
  if (carrier_nat())
    lines.push_back(
        row("provider", *carrier_nat() ? "translates too: the router's address is " + *outer : "does not translate"));
  lines.push_back(row("ipv6", ipv6 ? *ipv6 : "no public address"));
  for (const Outwards& way : outwards) lines.push_back(row("outwards", outwards_text(way)));
  if (!run.linked)
    lines.push_back(row("run", "no link: " + run.why));
  else
    lines.push_back(row("run", std::string("linked") + (run.relayed ? " over a relay" : " directly") +
                                   (run.round_trip > Duration(0) ? ", round trip " + ms_text(run.round_trip) : "") +
                                   (run.answer && !run.answer->host.empty() ? "; it sees " + run.answer->host : "")));
  lines.push_back(row("reach", reach_text()));
  for (const std::string& remedy : remedies()) lines.push_back(row("HINT", remedy));
  return lines;
}

Json NetworkReport::json() const {
  Json ways = Json::array();
  for (const Outwards& way : outwards)
    ways.add({{"place", way.place},
              {"relay", way.relay},
              {"passes", way.took.has_value()},
              {"ms", way.took ? Json(ms_of(*way.took)) : Json()},
              {"why", way.why},
              {"port_443", way.port_443.empty() ? Json() : Json(way.port_443)}});
  const Json router = {{"asked", router_asked},    {"mapped_by", mapped_by.empty() ? Json() : Json(mapped_by)},
                       {"forwards", mapped},       {"outer_address", outer},
                       {"ms", ms_of(router_took)}, {"why", router_why}};
  const Json link = {{"linked", run.linked},
                     {"relayed", run.relayed},
                     {"round_trip_ms", run.round_trip > Duration(0) ? Json(ms_of(run.round_trip)) : Json()},
                     {"sees", run.answer ? Json(run.answer->host) : Json()},
                     {"why", run.why}};
  return {{"schema", "shoal.netcheck/1"},
          {"told", told},
          {"ipv6", ipv6},
          {"router", router},
          {"provider_translates", carrier_nat()},
          {"outwards", ways},
          {"run", link},
          {"reach", reach() ? Json(name_of(*reach())) : Json()},
          {"reason", run.answer ? Json(run.answer->reason) : Json()},
          {"remedies", remedies()}};
}

}  // namespace shoal
