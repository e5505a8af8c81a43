#pragma once
// Messages with frames between processes of one run, over any Wire: an address book, one Link a peer, dialling on
// demand with backoff, fencing. A Link is chunking, byte credits, refusal of duplicates, of old sessions, of other runs
// and versions, checksums and reassembly limits. The same code runs over ZeroMQ and in the simulator.
//
// A message's header goes on the control lane, its frames in chunks on the bulk lane. The receiver sees the header at
// once and may refuse the frames: chunks not sent yet are then dropped by the sender, the rest is discarded unread.
// What a link carried when it went down is lost in both directions; nothing is repeated here. Two that dial each other
// at once: the end with the smaller PeerId keeps the connection it accepted first and refuses the other (link.h).
//
// A peer's addresses are dialled first, then the relays that it is called at. While its link goes over a relay, a
// direct one is tried again and again, and takes its place when nothing is under way on it or after kRelayedLinkTime.
// The end with the smaller PeerId decides that too.
//
// Thread: loop only. Listener callbacks never run inside a call to this class, except from the Wire's own callbacks.
// Bounds: kPeersMax peers, kAddressesMax addresses each; memory per link in outbox.h and inbox.h.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "common/event_loop.h"
#include "common/ids.h"
#include "common/lifetime.h"
#include "transport/dial_plan.h"
#include "transport/dial_trials.h"
#include "transport/link.h"
#include "transport/links.h"
#include "transport/messages.h"
#include "transport/wire.h"

namespace shoal {

class Transport final : public Links, private Wire::Listener, private Link::Owner {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_link_up(const Remote& remote) = 0;
    // `remote.session` is zero when it never came up. Messages of this link will not be seen any more.
    virtual void on_link_down(const Remote& remote, const Error& cause) = 0;
    // `transfer` != 0: frames of `frame_bytes` in all follow by on_frames, unless refuse(remote.peer, transfer) is
    // called.
    virtual void on_message(const Remote& remote, Message message, TransferId transfer, std::uint64_t frame_bytes) = 0;
    // All frames of a message, checked. Error: they will not come (link down, sender dropped them, corrupt).
    virtual void on_frames(const Remote& remote, TransferId transfer, Result<std::vector<Bytes>> frames) = 0;
  };

  struct Options {
    RunId run;
    PeerId self;
    Session session;
    PeerRole role = PeerRole::kPeer;
    Whereabouts whereabouts;  // told to others in Hello
  };

  // REQUIRES: wire and loop outlive it.
  Transport(Wire& wire, EventLoop& loop, Options options);
  ~Transport() override;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  void set_listener(Listener* listener) { listener_ = listener; }
  // Where to dial `peer` by a ticket's or a record's word; not heeded once a list named it (learn).
  void hear(const PeerId& peer, Whereabouts whereabouts);
  // Dials each of its addresses anew, whatever links stand, and hangs up when `peer` answers there with its key proved;
  // nothing is learnt. `tried` runs for each, in later turns (never after this object is gone).
  // REQUIRES: `whereabouts` is usable and dialable.
  void try_dialling(const PeerId& peer, const Whereabouts& whereabouts, AddressTried tried) {
    trials_.begin(peer, whereabouts, std::move(tried));
  }
  void close(const PeerId& peer, const std::string& why);
  // Sessions that were fenced: their connections are closed and later Hellos refused by name (kStale).
  void fence(const Session& session);
  // Connections of others than these peers are kept only so far as there is room (Wire::favour).
  void favour(const std::vector<PeerId>& peers) { wire_.favour(peers); }
  // The host that its link comes from, as this end sees it (Wire::other_host); empty: no link is up, or not known.
  std::string other_host(const PeerId& peer) const;
  const TransportCounters& counters() const { return counters_; }
  // Frame bytes that are here of a transfer of theirs that is not whole; 0: there is none.
  std::uint64_t received_of(const PeerId& peer, TransferId transfer) const;

  // Links
  void learn(const PeerId& peer, Whereabouts whereabouts) override;
  Result<TransferId> send(const PeerId& peer, Message message, std::vector<Bytes> frames = {}) override;
  bool reaches(const PeerId& peer) const override;
  bool needs_relay(const PeerId& peer) const override;
  void dial(const PeerId& peer) override;
  void drop(const PeerId& peer, TransferId transfer) override;
  void refuse(const PeerId& peer, TransferId transfer) override;
  std::optional<Remote> remote(const PeerId& peer) const override;
  std::uint64_t ahead_of(const PeerId& peer, TransferId transfer) const override;
  LinkStats stats(const PeerId& peer) const override;

 private:
  struct Peer {
    Peer(const PeerId& self, const PeerId& id) : id(id), plan(self, id), outbox(self < id) {}
    PeerId id;
    DialPlan plan;
    Outbox outbox;
    Link* link = nullptr;          // the one that is up
    std::size_t greeting = 0;      // connections that stand, without a Hello yet
    ConnectionId dialling = 0;     // connect() under way
    bool attempt_reported = true;  // false while a dial or a send waits for the outcome
    Backoff direct_pause{limits::kRelayedLinkTime, limits::kDirectAgainMax};
    TimePoint direct_again{};      // while its link goes over a relay: when a direct one is tried
    Session session;               // newest seen
    std::vector<Session> retired;  // older ones
    bool pending() const { return dialling != 0 || greeting > 0; }
    bool by_relay() const { return link != nullptr && link->stats().relayed; }
  };

  // Wire::Listener
  void on_up(ConnectionId connection, const PeerId& peer, bool dialled) override;
  void on_bytes(ConnectionId connection, Lane lane, Bytes message) override;
  void on_writable(ConnectionId connection, Lane lane) override;
  void on_down(ConnectionId connection, const Error& cause) override;
  // Link::Owner
  Hello our_hello() const override;
  Status admit(Link& link, const Hello& hello) override;
  void on_link_open(Link& link) override;
  void on_link_message(Link& link, Message message, TransferId transfer, std::uint64_t frame_bytes) override;
  void on_link_frames(Link& link, TransferId transfer, Result<std::vector<Bytes>> frames) override;
  void on_link_failed(Link& link, const Error& cause) override;

  Peer* find(const PeerId& peer) const;
  Peer* find_or_make(const PeerId& peer);  // null: the book is full
  // Dials beside its relayed link, and again in pauses that double for as long as the link is one.
  void seek_direct(Peer& peer);
  void dial_next(Peer& peer);
  void attempt_failed(Peer& peer, const Error& cause);
  Status admit_beside(Peer& peer, Link& link, const Hello& hello);
  // The link is not used any more.
  void lose(Link& link, const Error& cause);
  void report_down(const Remote& remote, std::vector<TransferId> transfers, const Error& cause);
  void end_from_our_side(Link& link, const Error& cause, const Message* farewell);
  void discard(Link& link, bool linger);
  void post(std::function<void()> task);  // dropped when this is gone by then

  Wire& wire_;
  EventLoop& loop_;
  Options options_;
  Listener* listener_ = nullptr;
  TransportCounters counters_;
  InboundBudget budget_{limits::kInboundBytesMax, 0};
  std::map<PeerId, std::unique_ptr<Peer>> peers_;
  std::map<ConnectionId, PeerId> dialling_;
  DialTrials trials_;
  std::map<ConnectionId, std::unique_ptr<Link>> links_;  // greeting, up and lingering
  std::set<Session> fenced_;
  std::vector<std::unique_ptr<Link>> discarded_;  // until the end of the turn that discarded them
  Lifetime lifetime_;
};

}  // namespace shoal
