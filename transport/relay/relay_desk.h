#pragma once
// The connections of a relay: each says what it wants in one word, the book decides, and the bytes of what was joined
// are carried in the order of the shares. Every socket is in one epoll, by edges, under its connection's number.
//
// Thread: the relay's.   Borrows: the epoll.   Bounds: relay_book.h, relay.h.
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/time.h"
#include "transport/address_pace.h"
#include "transport/crowd.h"
#include "transport/relay/byte_shares.h"
#include "transport/relay/relay.h"
#include "transport/relay/relay_book.h"
#include "transport/relay/relay_socket.h"
#include "transport/token_bucket.h"

namespace shoal {

class RelayDesk {
 public:
  RelayDesk(const RelayOptions& options, int epoll);
  // Another connection was accepted.
  void take(Descriptor socket, const std::string& party, TimePoint now);
  void on_event(RelayConnection id, std::uint32_t events, TimePoint now);
  // Carries what the rate allows, for a moment. When it may go on; none: nothing is to be carried.
  std::optional<TimePoint> carry(TimePoint now);
  void sweep(TimePoint now);  // every kSweep: what is late or silent, and pings
  void follow(const RunId& run, const PeerId& open, const std::vector<PeerId>& members, TimePoint now);
  RelayStats stats() const;

  static constexpr Duration kSweep = 250ms;

 private:
  enum class Stage {
    kPreamble,
    kWord,
    kProof,  // the signature of a home's key
    kHome,   // registered: pings, and what else begins as one
    kOpen,   // of a run: whom strangers may call
    kTold,   // of a run: pings and lists
    kList,
    kCalling,  // waits for its callee
    kJoined,
    kEnding,  // the other end is over
  };
  struct Connection {
    RelaySocket socket;
    std::string party;
    Stage stage = Stage::kPreamble;
    RelayKind kind = RelayKind::kRegister;
    RelayHome home{};  // of kProof to kList
    RelayNonce nonce{};
    PeerId open{};  // of a run
    std::optional<Epoch> epoch{};
    TokenBucket lists{kListsPerSecond, kListsBurst}, pings{kPingsPerSecond, kPingsBurst};
    TimePoint heard_at{}, pinged_at{};  // registered
    TimePoint until{};                  // kEnding
    // kJoined
    RelayConnection other = 0, flow = 0;  // flow: the caller, by which the shares know the two
    Lane lane = Lane::kControl;
    bool first = false;  // of the caller: whether its direction is looked at first in the next turn
  };
  static constexpr double kListsPerSecond = 32, kListsBurst = 128, kPingsPerSecond = 1, kPingsBurst = 8;
  static bool is_registered(const Connection& c) { return c.stage >= Stage::kHome && c.stage <= Stage::kList; }

  void advance(RelayConnection id, TimePoint now);
  // What a whole word asks for. False: the connection is over.
  bool on_word(RelayConnection id, Connection& c, TimePoint now);
  bool on_preamble(RelayConnection id, Connection& c, TimePoint now);
  bool on_home(RelayConnection id, Connection& c, TimePoint now);
  bool on_proof(RelayConnection id, Connection& c, TimePoint now);
  bool on_list(RelayConnection id, Connection& c, TimePoint now);
  bool on_call(RelayConnection id, Connection& c, TimePoint now);
  bool on_answer(RelayConnection id, Connection& c, TimePoint now);
  void join(RelayConnection id, Connection& c, RelayConnection other, RelayConnection flow, Lane lane);
  void offer(Connection& c);
  bool may_carry(const Connection& from) const;
  void carry_turn(const ByteShares::Turn& turn, TimePoint now);
  bool give(Connection& c, RelayVerdict verdict);
  bool refuse(RelayConnection id, RelayVerdict verdict, TimePoint now);  // always false
  void end(RelayConnection id, TimePoint now);
  void end_all(const std::vector<RelayConnection>& ids, TimePoint now);

  const RelayOptions options_;
  const int epoll_;
  RelayConnection next_ = 1;
  std::unordered_map<RelayConnection, Connection> connections_;
  Crowd half_open_;
  AddressPace arrivals_;
  RelayBook book_;
  ByteShares shares_;
  std::vector<std::uint8_t> scratch_;  // of a turn
  RelayStats stats_;
};

}  // namespace shoal
