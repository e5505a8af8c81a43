#include "transport/mapping/map_talk.h"

#include <algorithm>
#include <utility>

#include "common/ids.h"
#include "transport/whereabouts.h"

namespace shoal {

MapTalk::MapTalk(IpBytes client, const std::vector<std::uint16_t>& ports, std::uint64_t secret) : client_(client) {
  for (const std::uint16_t port : ports) {
    Port& one = ports_.emplace_back(Port{.inner = port, .outer = port});
    for (std::size_t i = 0; i < one.nonce.size(); ++i)
      one.nonce[i] = static_cast<std::uint8_t>(mix64(secret, port + (i / 8 << 16)) >> (8 * (i % 8)));
  }
}

void MapTalk::ask(Phase phase, TimePoint now) {
  phase_ = phase;
  if (phase != Phase::kLeaving) spoken_ = phase;
  tries_ = 0;
  wake_at_ = now;
  host_.reset();
  for (Port& port : ports_) port.answered = false;
}

std::vector<Bytes> MapTalk::turn(TimePoint now) {
  if (over() || now < wake_at_) return {};
  if (phase_ == Phase::kHeld) ask(spoken_, now);
  const bool heard_nothing = !renews() && std::ranges::none_of(ports_, &Port::answered);
  if (tries_ == (phase_ == Phase::kPcp && heard_nothing ? kPcpTries : kTries)) on_silence(now);
  if (!asks()) return {};
  std::vector<Bytes> words;
  const bool leaves = phase_ == Phase::kLeaving;
  if (phase_ == Phase::kPmp && !host_) words.push_back(pack_pmp_address());
  for (const Port& port : ports_) {
    // One word at a time in the older protocol (RFC 6886, section 3.1).
    if (port.answered || (spoken_ == Phase::kPmp && !words.empty())) continue;
    const MapRequest request{port.inner, leaves ? std::uint16_t{0} : port.outer, leaves ? 0 : kLifetimeSeconds};
    words.push_back(spoken_ == Phase::kPcp ? pack_pcp_map(request, client_, port.nonce) : pack_pmp_map(request));
  }
  wake_at_ = now + kFirstWait * (1 << tries_++);
  return words;
}

void MapTalk::on_silence(TimePoint now) {
  if (phase_ == Phase::kLeaving) return end("");
  if (!renews()) {
    if (phase_ == Phase::kPcp) return ask(Phase::kPmp, now);
    return end("the router answers neither PCP nor NAT-PMP");
  }
  if (now >= expires_at_) return end("the router does not answer any more");
  phase_ = Phase::kHeld;
  wake_at_ = std::min(expires_at_, now + std::max(kRenewalPauseMin, (expires_at_ - now) / 2));
}

void MapTalk::take(ByteView datagram, TimePoint now) {
  if (!asks()) return;
  if (const auto answer = parse_map_answer(datagram); answer.ok()) on_answer(*answer, now);
}

void MapTalk::on_answer(const MapAnswer& answer, TimePoint now) {
  const bool of_pcp = answer.word == MapWord::kPcpMap;
  if (phase_ == Phase::kPcp && lacks_pcp(answer) && !renews()) return ask(Phase::kPmp, now);
  // The second answer to requests of PCP that went out together speaks of these.
  if (of_pcp != (spoken_ == Phase::kPcp) || (!of_pcp && lacks_pcp(answer))) return;
  if (answer.word == MapWord::kPmpAddress && answer.code == 0 && phase_ == Phase::kPmp) {
    host_ = answer.host;
    tries_ = 0;
    wake_at_ = now;
    return look_whole(now);
  }
  const auto port = std::ranges::find_if(ports_, [&](const Port& one) {
    return !one.answered && one.inner == answer.inner && (!of_pcp || one.nonce == answer.nonce);
  });
  if (answer.code != 0) {
    // What a router answers to another nonce was asked by another program; an answer without one is to us.
    const bool ours = port != ports_.end() || (answer.inner == 0 && answer.nonce == MapNonce{});
    if (!ours || (renews() && phase_ != Phase::kLeaving)) return;  // what stands is believed until it expires
    return phase_ == Phase::kLeaving ? end("") : give_up(why_not(answer), now);
  }
  if (port == ports_.end()) return;
  if (phase_ == Phase::kLeaving) {
    if (answer.lifetime_s > 0) return;  // to what was asked before
  } else {
    if (answer.lifetime_s == 0 || answer.outer == 0) return give_up("the router maps no port", now);
    port->outer = answer.outer;
    port->lifetime_s = std::min(answer.lifetime_s, kLifetimeSeconds);
    if (of_pcp) host_ = answer.host;
  }
  port->answered = true;
  if (spoken_ == Phase::kPmp) {
    tries_ = 0;
    wake_at_ = now;
  }
  look_whole(now);
}

void MapTalk::look_whole(TimePoint now) {
  if (!std::ranges::all_of(ports_, &Port::answered)) return;
  if (phase_ == Phase::kLeaving) return end("");
  if (!host_) return;
  const std::string host = ip_text(*host_);
  if (is_private_host(host)) {             // another router stands in front of it, and maps nothing
    if (renews()) return on_silence(now);  // it may have lost its line for a moment
    mapping_.host = host;
    return give_up("the router's own address, " + host + ", is private", now);
  }
  mapping_.host = host;
  mapping_.by = spoken_ == Phase::kPcp ? "PCP" : "NAT-PMP";
  mapping_.ports.clear();
  std::uint32_t lifetime_s = kLifetimeSeconds;
  for (const Port& port : ports_) {
    mapping_.ports[port.inner] = port.outer;
    lifetime_s = std::min(lifetime_s, port.lifetime_s);
  }
  phase_ = Phase::kHeld;
  expires_at_ = now + std::chrono::seconds(lifetime_s);
  wake_at_ = now + std::max(kRenewalPauseMin, Duration(expires_at_ - now) / 2);
}

void MapTalk::on_refused() {
  if (phase_ == Phase::kLeaving) return end("");
  if (asks() && !renews()) end("the router speaks neither PCP nor NAT-PMP");
}

void MapTalk::leave(TimePoint now) {
  if (over()) return;
  const bool anything = std::ranges::any_of(ports_, [](const Port& port) { return port.lifetime_s > 0; });
  if (!anything) return end("");
  ask(Phase::kLeaving, now);
}

void MapTalk::give_up(std::string why, TimePoint now) {
  mapping_.by.clear();
  mapping_.ports.clear();
  mapping_.why = std::move(why);
  leave(now);
}

void MapTalk::end(std::string why) {
  phase_ = Phase::kOver;
  mapping_.by.clear();
  mapping_.ports.clear();
  if (!why.empty()) mapping_.why = std::move(why);
}

}  // namespace shoal
