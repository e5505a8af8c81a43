#pragma once
// Transport over any Wire: an address book, one link per peer, dialling on demand with backoff, fencing.
// Two that dial each other at once: the end with the smaller PeerId keeps the connection it accepted first and refuses
// the other (link.h).
//
// Thread: loop only. Listener callbacks never run inside a call to this class, except from the Wire's own callbacks.
// Bounds: kPeersMax peers, kAddressesMax addresses each; memory per link in outbox.h and inbox.h.
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "common/lifetime.h"
#include "transport/dial_trials.h"
#include "transport/link.h"

namespace shoal {

class LinkTransport final : public Transport, private Wire::Listener, private Link::Owner {
 public:
  LinkTransport(Wire& wire, EventLoop& loop, Options options);
  ~LinkTransport() override;
  LinkTransport(const LinkTransport&) = delete;
  LinkTransport& operator=(const LinkTransport&) = delete;

  void set_listener(Transport::Listener* listener) override { listener_ = listener; }
  void set_addresses(std::vector<std::string> addresses) override { options_.addresses = std::move(addresses); }
  void learn(const PeerId& peer, std::vector<std::string> addresses) override;
  void dial(const PeerId& peer) override;
  void try_addresses(const PeerId& peer, const std::vector<std::string>& addresses,
                     std::function<void(Status)> done) override;
  Result<TransferId> send(const PeerId& peer, Message message, std::vector<Bytes> frames) override;
  void drop(const PeerId& peer, TransferId transfer) override;
  void refuse(const PeerId& peer, TransferId transfer) override;
  void close(const PeerId& peer, const std::string& why) override;
  void fence(const Session& session) override;
  std::optional<Remote> remote(const PeerId& peer) const override;
  LinkStats stats(const PeerId& peer) const override;
  const TransportCounters& counters() const override { return counters_; }

 private:
  struct Peer {
    Peer(const PeerId& id, bool odd_transfers) : id(id), outbox(odd_transfers) {}
    PeerId id;
    std::vector<std::string> addresses;
    Outbox outbox;
    Link* link = nullptr;             // the one that is up
    std::size_t greeting = 0;         // connections that stand, without a Hello yet
    ConnectionId dialling = 0;        // connect() under way
    std::size_t addresses_tried = 0;  // in this attempt
    std::size_t first_address = 0;    // the one that worked last
    std::uint32_t failures = 0;       // attempts since a link that lasted
    TimePoint retry_at{};
    bool attempt_reported = true;  // false while a dial or a send waits for the outcome
    Session session;               // newest seen
    std::vector<Session> retired;  // older ones
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

  Peer* find(const PeerId& peer);
  const Peer* find(const PeerId& peer) const;
  Peer* find_or_make(const PeerId& peer);  // null: the book is full
  bool pending(const Peer& peer) const { return peer.dialling != 0 || peer.greeting > 0; }
  void start_dialling(Peer& peer);
  void dial_next(Peer& peer);
  void attempt_failed(Peer& peer, const Error& cause);
  Duration backoff(const Peer& peer) const;
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
  Transport::Listener* listener_ = nullptr;
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
