#include "cli/launch_relays.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/host_port.h"
#include "common/log.h"
#include "common/os/own_addresses.h"
#include "events/line_parts.h"
#include "runtime/config/ticket.h"
#include "transport/envelope.h"
#include "transport/line_caps.h"
#include "transport/signed_list.h"
#include "transport/whereabouts.h"

namespace shoal {
namespace {

constexpr int kLanes = 2;  // the ports in front of the relay's

std::string list_text(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

bool is_private(const std::string& address) {
  const auto parsed = parse_dial_address(address);
  return parsed.ok() && is_private_host(parsed->control.host);
}

// The best host of each family, so that its ends need not share one: it counts as two relays then.
std::vector<std::string> hosts_of_families(std::vector<std::string> addresses) {
  std::ranges::stable_partition(addresses, [](const std::string& address) { return !is_private(address); });
  std::vector<std::string> hosts;
  bool seen[2] = {};
  for (const std::string& address : addresses) {
    const auto parsed = parse_dial_address(address);
    if (parsed.ok() && !std::exchange(seen[parsed->control.is_v6()], true)) hosts.push_back(parsed->control.host);
  }
  return hosts;
}

}  // namespace

Result<std::unique_ptr<LaunchRelays>> LaunchRelays::open(const LaunchArguments& arguments, const KeyPair& key,
                                                         ZmqWire& wire, std::vector<std::string> addresses) {
  std::unique_ptr<LaunchRelays> made(new LaunchRelays(key, wire));
  double rate = 0;
  if (arguments.relay != "0") {
    SHOAL_ASSIGN(rate, parse_line_cap("--relay", arguments.relay));
  }
  std::vector<Address> called_at;
  if (!arguments.via.empty()) {
    SHOAL_ASSIGN(made->via_, resolved_address(arguments.via, true));
    called_at.push_back(made->via_);
  }
  if (arguments.via.empty() || !arguments.advertise.empty()) made->addresses_ = std::move(addresses);
  made->contacts_ = made->addresses_;
  std::vector<std::string> over;
  if (rate > 0 && !made->addresses_.empty()) {
    SHOAL_TRY(made->open_own(arguments, rate));
    const HostPort at = made->own_->listening_at();
    const bool any = at.host == "0.0.0.0" || at.host == "::";
    if (arguments.relay_port != 0) {
      called_at.push_back(HostPort{any ? "127.0.0.1" : at.host, at.port}.text());
      over.push_back("via/" + made->places_.front().address);
    }
  }
  if (!made->via_.empty()) {
    made->places_.push_back({made->via_, 0});
    over.push_back("via/" + made->via_);
  }
  made->contacts_.resize(std::min(made->contacts_.size(), kTicketContactsMax - over.size()));
  made->contacts_.insert(made->contacts_.end(), over.begin(), over.end());
  wire.be_called_at(called_at);
  return made;
}

// The port behind those of the lanes, where others look for it who forward three in a row; any other where that is in
// use and nobody asked for it.
Status LaunchRelays::open_own(const LaunchArguments& arguments, double rate) {
  SHOAL_ASSIGN(HostPort at, parse_host_port(wire_.listening_address()));
  const unsigned next = at.port + kLanes;
  at.port = static_cast<std::uint16_t>(arguments.relay_port != 0 ? arguments.relay_port : next > 65535 ? 0 : next);
  const RelayOptions options{.bytes_per_second = rate};
  auto own = Relay::start(at, options);
  if (!own.ok() && own.code() != ErrorCode::kInput && arguments.relay_port == 0) {
    at.port = 0;
    own = Relay::start(at, options);
  }
  SHOAL_ASSIGN(own_, std::move(own));
  rate_ = rate;
  for (const std::string& host : hosts_of_families(addresses_))
    places_.push_back({HostPort{host, own_->listening_at().port}.text(), static_cast<std::uint32_t>(rate * 8 / 1000)});
  return {};
}

void LaunchRelays::say_who_meets() const {
  const std::uint16_t port = own_ ? own_->listening_at().port : 0;
  if (own_)
    log_info("members that cannot dial each other meet at the relay of this process, ", places_.front().address, ", ",
             std::lround(rate_ * 8 / 1e6), " Mbit/s (--relay)");
  if (!via_.empty()) log_info("whoever cannot dial this process calls it at the relay ", via_);
  if (!via_.empty() || !std::ranges::all_of(addresses_, is_private)) return;
  const auto bound = parse_host_port(wire_.listening_address());
  const std::string first = std::to_string(bound.ok() ? bound->port : 0);
  const std::string last = std::to_string(std::max<int>(port, bound.ok() ? bound->port + 1 : 0));
  const std::string remedy = "one of three: forward the router's TCP ports " + first + " to " + last +
                             " to this machine, with --listen 0.0.0.0:" + first +
                             " and --advertise ITS-ADDRESS; IPv6 (--listen [::]:" + first +
                             ", with these ports open); `shoal relay` on a small server, and --via SERVER:PORT";
  if (all_loopback(addresses_))
    log_warning("this run is told under ", addresses_.front(),
                " only: peers on other machines cannot reach it. HINT: is the network up (`ip address`)? Else "
                "--advertise ADDRESS");
  else
    log_warning("this run is told under ", list_text(addresses_),
                ": machines outside this network cannot dial it. HINT: where some shall join, ", remedy);
}

void LaunchRelays::on_members(const MemberList& list) {
  if (own_) own_->follow(list.run, key_.id(), peers_of(list));
  if (via_.empty()) return;
  const auto body = pack_member_list(list);
  if (!body.ok()) return log_debug("no list for the relay: ", body.error().message);
  const Signature signature = key_.sign(*body);
  wire_.publish_list({via_}, {*body, {signature.begin(), signature.end()}});
}

std::optional<double> LaunchRelays::share(TimePoint now) {
  if (!own_) return std::nullopt;
  const std::uint64_t bytes = own_->stats().carried_bytes;
  const Duration passed = now - std::exchange(seen_at_, now);
  const double carried = static_cast<double>(bytes - std::exchange(seen_bytes_, bytes));
  if (passed <= Duration(0) || passed == now.time_since_epoch()) return std::nullopt;
  return carried / (rate_ * seconds_of(passed));
}

std::string LaunchRelays::carried() const {
  const std::uint64_t bytes = own_ ? own_->stats().carried_bytes : 0;
  return bytes == 0 ? "" : "the relay of this process carried " + short_number(bytes) + "B";
}

}  // namespace shoal
