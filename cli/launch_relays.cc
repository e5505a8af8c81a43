#include "cli/launch_relays.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/formatted.h"
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

constexpr int kLanes = 2;                  // the ports in front of the relay's
constexpr Duration kMappingPatience = 3s;  // for a router that is silent in both protocols

// The best place of each family, so that its ends need not share one: it counts as two relays then.
std::vector<HostPort> best_of_families(std::vector<HostPort> places) {
  std::ranges::stable_partition(places, [](const HostPort& place) { return !is_private_host(place.host); });
  std::vector<HostPort> best;
  bool seen[2] = {};
  for (HostPort& place : places)
    if (!std::exchange(seen[place.is_v6()], true)) best.push_back(std::move(place));
  return best;
}

}  // namespace

Result<std::unique_ptr<LaunchRelays>> LaunchRelays::open(const LaunchArguments& arguments, const KeyPair& key,
                                                         ZmqWire& wire, EventLoop& loop,
                                                         std::vector<std::string> addresses) {
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
  if (rate > 0 && !made->addresses_.empty()) SHOAL_TRY(made->open_own(arguments, rate));
  if (arguments.via.empty() && arguments.advertise.empty() && !arguments.no_map) made->map_ports(loop);
  made->contacts_ = made->addresses_;
  std::vector<std::string> over;
  if (made->own_) {
    made->name_own();
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
  if (const std::size_t room = kTicketContactsMax - over.size(); made->contacts_.size() > room) {
    // One of them is for machines beside this one, which a router may not lead back to itself.
    const auto near = std::ranges::find_if(made->contacts_, is_private_address);
    if (near >= made->contacts_.begin() + static_cast<std::ptrdiff_t>(room) && near != made->contacts_.end())
      std::iter_swap(near, made->contacts_.begin() + static_cast<std::ptrdiff_t>(room) - 1);
    made->contacts_.resize(room);
  }
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
  return {};
}

void LaunchRelays::map_ports(EventLoop& loop) {
  const auto bound = parse_host_port(wire_.listening_address());
  if (!bound.ok()) return;
  PortMappingOptions options{.ports = lane_ports(bound->port), .addresses = addresses_, .secret = mapping_secret(key_)};
  if (own_ && !options.ports.empty()) options.ports.push_back(own_->listening_at().port);
  mapping_ = std::make_unique<PortMapping>(loop, std::move(options), [this] { on_mapping(); });
  mapped_ = mapping_->await(kMappingPatience);
  addresses_ = beside(mapped_addresses(mapped_, bound->port), addresses_);
}

// The ticket cannot be changed any more, and the run's member list names relays as they were.
void LaunchRelays::on_mapping() {
  const auto bound = parse_host_port(wire_.listening_address());
  const std::vector<Mapping> before = std::exchange(mapped_, mapping_->now());
  const auto same = [](const Mapping& a, const Mapping& b) {
    return a.ports == b.ports && (a.by.empty() || a.host == b.host);
  };
  if (std::ranges::equal(before, mapped_, same)) return;
  const std::vector<std::string> now = mapped_addresses(mapped_, bound->port);
  log_warning("the router forwards ", now.empty() ? "nothing any more" : list_text(now) + " now",
              ", and the ticket was ",
              "printed before: who joins by it may not find this run. HINT: `shoal launch --resume` prints a new one");
}

void LaunchRelays::name_own() {
  const std::uint16_t port = own_->listening_at().port;
  std::vector<HostPort> places;
  for (const Mapping& mapping : mapped_)
    if (const auto outer = mapping.ports.find(port); outer != mapping.ports.end())
      places.push_back({mapping.host, outer->second});
  for (const std::string& address : addresses_)
    if (const auto parsed = parse_dial_address(address); parsed.ok()) places.push_back({parsed->control.host, port});
  for (const HostPort& place : best_of_families(std::move(places)))
    places_.push_back({place.text(), static_cast<std::uint32_t>(rate_ * 8 / 1000)});
}

void LaunchRelays::say_who_meets() const {
  const std::uint16_t port = own_ ? own_->listening_at().port : 0;
  if (own_)
    log_info("members that cannot dial each other meet at the relay of this process, ", places_.front().address, ", ",
             std::lround(rate_ * 8 / 1e6), " Mbit/s (--relay)");
  if (!via_.empty()) log_info("whoever cannot dial this process calls it at the relay ", via_);
  const auto outside = std::ranges::find_if_not(addresses_, is_private_address);
  if (!mapping_text(mapped_).empty() && outside != addresses_.end())
    log_info("others dial ", *outside, ", ", mapping_text(mapped_), ": nobody outside has tried that yet");
  if (!via_.empty() || outside != addresses_.end()) return;
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
                (mapped_.empty() ? "" : " (" + mapping_text(mapped_) + ")"),
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
