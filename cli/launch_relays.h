#pragma once
// How those meet in a run who cannot dial each other, or not the launching process: the relay in that process
// (--relay), the one elsewhere at which it is called (--via), and what this machine's router forwards. The relays
// follow the run's member list.
//
// Thread: loop only.   Borrows: the wire, the loop.   Bounds: those of transport/relay/relay.h.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/launch_arguments.h"
#include "common/crypto/sign.h"
#include "common/time.h"
#include "transport/mapping/port_mapping.h"
#include "transport/messages_membership.h"
#include "transport/relay/relay.h"
#include "transport/zmq/zmq_wire.h"

namespace shoal {

class LaunchRelays {
 public:
  // `addresses`: where others dial this process, as own_addresses() has them. From now on it can be called. Blocks for
  // 3 s at most, for what the router forwards.
  // ERRORS: kInput (a rate or an address that is none), kBusy (--relay-port is in use), kIo.
  static Result<std::unique_ptr<LaunchRelays>> open(const LaunchArguments& arguments, const KeyPair& key, ZmqWire& wire,
                                                    EventLoop& loop, std::vector<std::string> addresses);

  // Where this process is met, for its ticket and the directory: addresses, then relays.
  const std::vector<std::string>& contacts() const { return contacts_; }
  // For the member list.
  const std::vector<RelayPlace>& places() const { return places_; }
  // Says to people who can meet this process, with a remedy where that is not everybody.
  void say_who_meets() const;
  void on_members(const MemberList& list);

  // What part of its rate the relay in this process carried since the last call; nothing without a relay or time.
  std::optional<double> share(TimePoint now);
  // What it carried in all, for people; empty: nothing.
  std::string carried() const;

 private:
  LaunchRelays(const KeyPair& key, ZmqWire& wire) : key_(key), wire_(wire) {}
  Status open_own(const LaunchArguments& arguments, double rate);
  void map_ports(EventLoop& loop);
  void on_mapping();
  void name_own();

  const KeyPair key_;
  ZmqWire& wire_;
  std::vector<std::string> addresses_;  // where it is dialled; none with --via alone
  std::string via_;                     // the relay elsewhere; empty: none
  std::vector<std::string> contacts_;
  std::vector<RelayPlace> places_;
  double rate_ = 0;  // bytes a second
  std::unique_ptr<Relay> own_;
  std::unique_ptr<PortMapping> mapping_;  // null: no router is asked
  std::vector<Mapping> mapped_;           // as the ticket has it
  std::uint64_t seen_bytes_ = 0;
  TimePoint seen_at_{};
};

}  // namespace shoal
