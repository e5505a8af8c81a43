#pragma once
// One talk with a router about the ports of this machine: PCP first, NAT-PMP where it lacks that. What it maps is asked
// for again at half of its lifetime, and given back at the end. Its nonces follow from a secret of the process and the
// port, so that a later talk, and the next process with that key, may change what an earlier one left (RFC 6887, 11.3).
// A talk that came to nothing is over: its owner begins another one later, for the network may be another by then.
//
// Value without I/O: datagrams and the time are handed in. Thread: one.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/time.h"
#include "transport/mapping/map_words.h"

namespace shoal {

// What a router maps for us.
struct Mapping {
  std::string by;                                // "PCP", "NAT-PMP"; empty: nothing
  std::string host;                              // the router's outer address, as far as it said one
  std::map<std::uint16_t, std::uint16_t> ports;  // ours to the router's
  std::string why;                               // nothing is mapped; empty: not known yet
  bool settled() const { return !by.empty() || !why.empty(); }
  bool operator==(const Mapping&) const = default;
};

class MapTalk {
 public:
  // A restarted router has forgotten what it mapped, and says so to nobody who does not listen for it: half of this is
  // how long that lasts.
  static constexpr std::uint32_t kLifetimeSeconds = 1200;
  static constexpr Duration kFirstWait = 250ms;    // for an answer; it doubles (RFC 6886, section 3.1)
  static constexpr int kPcpTries = 2, kTries = 3;  // of PCP before the older protocol; of each word there
  static constexpr Duration kRenewalPauseMin = 10s;

  // `client`: our address on the way to the router.
  MapTalk(IpBytes client, const std::vector<std::uint16_t>& ports, std::uint64_t secret);

  // What is to be sent now, and when to ask for more.
  std::vector<Bytes> turn(TimePoint now);
  TimePoint wake_at() const { return wake_at_; }
  // What came from the router; anything else than an answer to us is dropped.
  void take(ByteView datagram, TimePoint now);
  // Nobody listens at the router's port (ICMP).
  void on_refused();
  void leave(TimePoint now);  // gives back what is mapped
  bool over() const { return phase_ == Phase::kOver; }
  const Mapping& mapping() const { return mapping_; }

 private:
  enum class Phase { kPcp, kPmp, kHeld, kLeaving, kOver };
  struct Port {
    std::uint16_t inner = 0, outer = 0;  // outer: as wished, then as granted
    MapNonce nonce{};
    bool answered = false;
    std::uint32_t lifetime_s = 0;
  };
  bool asks() const { return phase_ != Phase::kHeld && phase_ != Phase::kOver; }
  bool renews() const { return !mapping_.by.empty(); }
  void ask(Phase phase, TimePoint now);
  void on_silence(TimePoint now);
  void on_answer(const MapAnswer& answer, TimePoint now);
  void look_whole(TimePoint now);
  void give_up(std::string why, TimePoint now);  // and gives back what was granted
  void end(std::string why);

  IpBytes client_;
  std::vector<Port> ports_;
  Phase phase_ = Phase::kPcp, spoken_ = Phase::kPcp;  // spoken_: kPcp or kPmp
  int tries_ = 0;
  std::optional<IpBytes> host_;
  TimePoint wake_at_{}, expires_at_{};
  Mapping mapping_;
};

}  // namespace shoal
