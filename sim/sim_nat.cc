#include "sim/sim_nat.h"

namespace shoal {
namespace {

std::string host_part(const Address& address) { return address.substr(0, address.rfind(':')); }
std::string port_part(const Address& address) { return address.substr(address.rfind(':') + 1); }
// An address that a home's router gives.
bool is_private(const Address& address) { return address.starts_with("10.") || address.starts_with("192.168."); }

}  // namespace

std::string broken_by(const SimDial& dial) {
  if (dial.to_nat.dialable() || (!dial.to_nat.home.empty() && dial.to_nat.home == dial.from_nat.home)) return {};
  return dial.from + " dialled " + dial.to + ", which answers nobody outside its home";
}

const SimNat& SimNats::of(const Address& host) const {
  static const SimNat open;
  const auto found = nats_.find(host);
  return found == nats_.end() ? open : found->second;
}

bool SimNats::same_home(const Address& a, const Address& b) const {
  return !of(a).home.empty() && of(a).home == of(b).home;
}

std::vector<Address> SimNats::hosts_of(const std::string& home) const {
  std::vector<Address> hosts;
  for (const auto& [host, nat] : nats_)
    if (nat.home == home) hosts.push_back(host);
  return hosts;
}

std::string SimNats::outer_of(const std::string& home) const {
  const auto moved = outer_.find(home);
  return moved == outer_.end() ? home : home + "-" + std::to_string(moved->second);
}

std::string SimNats::outer_host(const Address& host) const {
  const std::string& home = of(host).home;
  return home.empty() ? host_part(host) : outer_of(home);
}

SimNats::Route SimNats::route(const Address& from, const Address& dialled) const {
  for (const auto& [host, nat] : nats_) {
    if (nat.home.empty()) continue;
    if (nat.inner == dialled && same_home(from, host)) return {host, true};
    if (nat.dialable() && host_part(dialled) == outer_of(nat.home) && port_part(dialled) == port_part(nat.inner))
      return {host};
  }
  return {dialled};
}

SimNats::Answer SimNats::answer(const Address& from, const Address& dialled, const Route& route) const {
  if (route.inside) return Answer::kAnswered;
  const auto stopped_by = [](const SimNat& nat) { return nat.resets ? Answer::kRefused : Answer::kSilent; };
  if (of(from).kind == NatKind::kOnly443 && port_part(dialled) != "443") return stopped_by(of(from));
  if (is_private(dialled)) return Answer::kSilent;  // nobody of this home has it
  if (!of(route.to).dialable()) return stopped_by(of(route.to));
  for (const auto& [host, nat] : nats_)
    if (route.to == dialled && !nat.home.empty() && outer_of(nat.home) == host_part(dialled)) return stopped_by(nat);
  return Answer::kAnswered;
}

void SimNats::note_answered(const Address& from, const Address& to) {
  if (!of(to).dialable()) answered_.push_back({from, to, of(from), of(to)});
}

}  // namespace shoal
