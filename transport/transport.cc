#include "transport/transport.h"

#include <algorithm>

#include "common/log.h"
#include "transport/envelope.h"

namespace shoal {
namespace {

// In one life of the peer; asked where we choose.
Status may_follow(const Link& old, const Link& link, TimePoint now) {
  const Duration stood = now - old.since();
  if (link.stats().relayed && !old.stats().relayed) return make_error(ErrorCode::kBusy, "a direct link to it is up");
  if (old.stats().relayed && !link.stats().relayed) {
    if (!old.stats().busy || stood >= limits::kRelayedLinkTime) return {};
    return make_error(ErrorCode::kBusy, "something is under way on the relayed link");
  }
  if (old.dialled() != link.dialled() && stood < limits::kHandshakeTime)
    return make_error(ErrorCode::kBusy, "both dialled at once; the other connection is used");
  return {};
}

}  // namespace

Transport::Transport(Wire& wire, EventLoop& loop, Options options)
    : wire_(wire), loop_(loop), options_(std::move(options)), trials_(wire) {
  wire_.set_listener(this);
}

Transport::~Transport() {
  wire_.set_listener(nullptr);
  for (const auto& [connection, link] : links_) wire_.disconnect(connection);
  for (const auto& [connection, peer] : dialling_) wire_.disconnect(connection);
}

void Transport::post(std::function<void()> task) { loop_.post(lifetime_.guard(std::move(task))); }

// ---- the book ----

Transport::Peer* Transport::find(const PeerId& peer) const {
  const auto found = peers_.find(peer);
  return found == peers_.end() ? nullptr : found->second.get();
}

Transport::Peer* Transport::find_or_make(const PeerId& id) {
  if (Peer* peer = find(id)) return peer;
  if (peers_.size() >= limits::kPeersMax) {
    // A link on which nothing is going on gives way.
    const auto idle = std::find_if(peers_.begin(), peers_.end(),
                                   [&](const auto& entry) { return !entry.second->link && !entry.second->pending(); });
    if (idle == peers_.end()) return nullptr;
    peers_.erase(idle);
  }
  return peers_.emplace(id, std::make_unique<Peer>(options_.self, id)).first->second.get();
}

void Transport::learn(const PeerId& id, Whereabouts whereabouts) {
  if (id == options_.self) return;
  Peer* const peer = find_or_make(id);
  if (peer == nullptr) return;
  peer->plan.follow(dialable_from(options_.whereabouts, usable(std::move(whereabouts))));
  seek_direct(*peer);
}

void Transport::hear(const PeerId& id, Whereabouts whereabouts) {
  whereabouts = relays_as_homes(usable(std::move(whereabouts)));
  if (id == options_.self || !whereabouts.reachable()) return;
  if (Peer* peer = find_or_make(id)) peer->plan.hear(std::move(whereabouts));
}

// ---- dialling ----

void Transport::dial(const PeerId& id) {
  Peer* peer = find(id);
  if (peer) seek_direct(*peer);
  if (!peer || peer->link || peer->pending() || !peer->plan.reachable()) return;
  if (loop_.now() < peer->plan.retry_at())
    return void(loop_.at(peer->plan.retry_at(), lifetime_.guard([this, id] { dial(id); })));
  peer->plan.begin();
  peer->attempt_reported = false;
  dial_next(*peer);
}

void Transport::seek_direct(Peer& peer) {
  if (!peer.by_relay() || !peer.plan.dialable() || loop_.now() < peer.direct_again) return;
  const TimePoint gives_way = peer.link->since() + limits::kRelayedLinkTime;  // also a link that is busy
  const TimePoint again = loop_.now() < gives_way ? gives_way : loop_.now() + peer.direct_pause.next();
  peer.direct_again = again;
  loop_.at(again, lifetime_.guard([this, id = peer.id, again] {
    if (Peer* const still = find(id); still != nullptr && still->direct_again == again) seek_direct(*still);
  }));
  if (peer.pending()) return;
  peer.plan.begin(false);
  dial_next(peer);
}

void Transport::dial_next(Peer& peer) {
  const ConnectionId dialling = peer.dialling = wire_.connect(peer.id, peer.plan.next());
  dialling_.emplace(dialling, peer.id);
  // A network that lets out one port, or nothing to strangers' ports, drops in silence what is dialled there. What is
  // not reached soon then is called, or dials us (Knock); beside a link a direct one has its whole time.
  const bool walled_in = counters_.dialled_direct == 0 && counters_.dialled_by_relay > 0;
  const bool shortly = walled_in && peer.link == nullptr && peer.plan.at_address();
  if (!shortly && !peer.plan.has_relay()) return;
  loop_.after(shortly ? limits::kWalledDialTime : limits::kBeforeRelayTime, lifetime_.guard([this, dialling] {
    if (!dialling_.contains(dialling)) return;
    wire_.disconnect(dialling);
    on_down(dialling, make_error(ErrorCode::kTimeout, "its address does not answer soon enough to wait for it"));
  }));
}

void Transport::attempt_failed(Peer& peer, const Error& cause) {
  peer.outbox.clear();
  peer.plan.failed(loop_.now());
  log_debug("no link to peer ", short_name(peer.id), ": ", cause.message);
  if (peer.attempt_reported) return;
  peer.attempt_reported = true;
  if (listener_) listener_->on_link_down(Remote{peer.id, {}, {}}, cause);
}

// ---- the wire ----

void Transport::on_up(ConnectionId connection, const PeerId& id, bool dialled) {
  if (trials_.on_up(connection)) return;
  if (dialled) ++(wire_.relayed(connection) ? counters_.dialled_by_relay : counters_.dialled_direct);
  dialling_.erase(connection);
  Peer* peer = id == options_.self ? nullptr : find_or_make(id);
  if (peer && peer->dialling == connection) {
    peer->dialling = 0;
    peer->plan.worked();
  }
  if (!peer || links_.size() >= 2 * limits::kPeersMax) {
    ++counters_.refused;
    wire_.disconnect(connection);
    return;
  }
  auto link = std::make_unique<Link>(Link::Parts{wire_, loop_, *this, peer->outbox, budget_, counters_}, connection,
                                     options_.self, id, options_.run, dialled);
  Link& started = *link;
  links_.emplace(connection, std::move(link));
  ++peer->greeting;
  started.start();
}

void Transport::on_bytes(ConnectionId connection, Lane lane, Bytes message) {
  if (const auto found = links_.find(connection); found != links_.end())
    found->second->on_bytes(lane, std::move(message));
}

void Transport::on_writable(ConnectionId connection, Lane) {
  if (const auto found = links_.find(connection); found != links_.end()) found->second->pump();
}

void Transport::on_down(ConnectionId connection, const Error& cause) {
  if (const auto found = links_.find(connection); found != links_.end()) {
    Link& link = *found->second;
    if (link.over()) return discard(link, false);  // it lingered
    const bool was_up = link.up();
    link.count(cause);
    link.close();
    if (was_up) {
      lose(link, cause);
    } else {
      on_link_failed(link, cause);
    }
    return discard(link, false);
  }
  if (trials_.on_down(connection, cause)) return;
  const auto found = dialling_.find(connection);
  if (found == dialling_.end()) return;
  Peer* peer = find(found->second);
  dialling_.erase(found);
  if (!peer || peer->dialling != connection) return;
  peer->dialling = 0;
  if ((peer->link && !peer->by_relay()) || peer->greeting > 0) return;
  if (peer->plan.has_next()) return dial_next(*peer);
  if (!peer->link) attempt_failed(*peer, cause);
}

// ---- links ----

Hello Transport::our_hello() const {
  return Hello{protocol_version(), options_.run, options_.session, options_.role, options_.whereabouts};
}

Status Transport::admit(Link& link, const Hello& hello) {
  Peer& peer = *find(link.peer());
  if (fenced_.contains(hello.session))
    return make_error(ErrorCode::kStale,
                      "session " + short_name(hello.session) + " was fenced; join again as a new one");
  if (std::find(peer.retired.begin(), peer.retired.end(), hello.session) != peer.retired.end()) {
    return make_error(ErrorCode::kStale, "session " + short_name(hello.session) + " ended when session " +
                                             short_name(peer.session) + " of the same peer began");
  }
  if (peer.link) SHOAL_TRY(admit_beside(peer, link, hello));
  if (peer.session != hello.session && peer.session != Session{}) {
    if (peer.retired.size() >= limits::kRetiredSessionsMax) peer.retired.erase(peer.retired.begin());
    peer.retired.push_back(peer.session);
  }
  peer.session = hello.session;
  // A relay is dialled on the word of the run's own process alone, which the list is of too.
  hear(peer.id, peer.id.bytes == options_.run.bytes ? hello.whereabouts : without_relays(hello.whereabouts));
  return Status::success();
}

// A second connection of a peer whose link is up.
Status Transport::admit_beside(Peer& peer, Link& link, const Hello& hello) {
  Link& old = *peer.link;
  const bool same_life = old.remote().session == hello.session;
  if (same_life && options_.self < peer.id) SHOAL_TRY(may_follow(old, link, loop_.now()));
  const Error cause = same_life ? make_error(ErrorCode::kUnreachable, "the other end connected anew")
                                : make_error(ErrorCode::kStale, "session " + short_name(old.remote().session) +
                                                                    " was followed by " + short_name(hello.session));
  old.close();
  lose(old, cause);
  discard(old, true);
  return Status::success();
}

void Transport::on_link_open(Link& link) {
  Peer& peer = *find(link.peer());
  --peer.greeting;
  peer.link = &link;
  peer.attempt_reported = true;
  peer.direct_again = loop_.now();
  if (link.stats().relayed)
    post([this, id = peer.id] {
      if (Peer* const still = find(id)) seek_direct(*still);
    });
  else
    peer.direct_pause.reset();
  log_debug("link to peer ", short_name(peer.id), link.dialled() ? " (dialled" : " (accepted",
            link.stats().relayed ? " over a relay)" : ")");
  if (listener_) listener_->on_link_up(link.remote());
}

void Transport::on_link_message(Link& link, Message message, TransferId transfer, std::uint64_t frame_bytes) {
  loop_.name_callback(name_of(message));
  if (listener_) listener_->on_message(link.remote(), std::move(message), transfer, frame_bytes);
}

void Transport::on_link_frames(Link& link, TransferId transfer, Result<std::vector<Bytes>> frames) {
  loop_.name_callback("frames");
  if (listener_) listener_->on_frames(link.remote(), transfer, std::move(frames));
}

void Transport::on_link_failed(Link& link, const Error& cause) {
  Peer& peer = *find(link.peer());
  if (peer.link == &link) {
    lose(link, cause);
  } else {
    --peer.greeting;
    if (!peer.link && !peer.pending()) attempt_failed(peer, cause);
  }
  discard(link, true);
}

void Transport::lose(Link& link, const Error& cause) {
  Peer& peer = *find(link.peer());
  peer.link = nullptr;
  peer.outbox.clear();
  if (peer.dialling != 0) {  // beside the link: now in its place
    peer.plan.add_relays();
    peer.attempt_reported = false;
  }
  if (loop_.now() - link.since() < limits::kHandshakeTime) {
    peer.plan.failed(loop_.now());
  } else {
    peer.plan.lasted(loop_.now());
  }
  report_down(link.remote(), link.abandon_inbound(), cause);
}

void Transport::report_down(const Remote& remote, std::vector<TransferId> transfers, const Error& cause) {
  log_debug("link to peer ", short_name(remote.peer), " is down: ", cause.message);
  for (const TransferId transfer : transfers) {
    if (listener_) listener_->on_frames(remote, transfer, cause);
  }
  if (listener_) listener_->on_link_down(remote, cause);
}

void Transport::discard(Link& link, bool linger) {
  const ConnectionId connection = link.connection();
  if (linger) {  // the wire still carries what was sent last
    loop_.after(limits::kLingerTime, lifetime_.guard([this, connection] {
      if (!links_.contains(connection)) return;
      wire_.disconnect(connection);
      links_.erase(connection);
    }));
    return;
  }
  auto node = links_.extract(connection);
  if (node.empty()) return;
  discarded_.push_back(std::move(node.mapped()));  // callers up the stack still use it
  post([this] { discarded_.clear(); });
}

// ---- sending ----

Result<TransferId> Transport::send(const PeerId& id, Message message, std::vector<Bytes> frames) {
  Peer* peer = find(id);
  if (id == options_.self) return make_error(ErrorCode::kUnreachable, "peer " + short_name(id) + " is this process");
  if (!reaches(id)) {
    return make_error(ErrorCode::kUnreachable, "no link to peer " + short_name(id) + ", no address and no relay");
  }
  if (!peer->link && !peer->pending()) {
    if (const Duration pause = peer->plan.retry_at() - loop_.now(); pause > Duration::zero()) {
      return make_error(ErrorCode::kUnreachable, "peer " + short_name(id) + " could not be reached; next attempt in " +
                                                     std::to_string(pause / 1ms) + " ms");
    }
    dial(id);
  }
  SHOAL_ASSIGN(const TransferId transfer, peer->outbox.push(message, std::move(frames)));
  peer->attempt_reported = peer->link != nullptr;
  if (peer->link) peer->link->pump();
  return transfer;
}

void Transport::drop(const PeerId& id, TransferId transfer) {
  Peer* peer = find(id);
  if (!peer) return;
  if (peer->link) return peer->link->drop(transfer);
  if (!peer->outbox.drop(transfer)) return;
  peer->outbox.push_link_message(DropTransfer{transfer});  // its header waits in the queue
}

void Transport::refuse(const PeerId& id, TransferId transfer) {
  Peer* peer = find(id);
  if (peer && peer->link) peer->link->refuse(transfer);
}

// The listener called, so it hears of it in a later turn.
void Transport::end_from_our_side(Link& link, const Error& cause, const Message* farewell) {
  Peer& peer = *find(link.peer());
  link.pump();
  link.close(farewell);
  peer.link = nullptr;
  peer.outbox.clear();
  post([this, remote = link.remote(), transfers = link.abandon_inbound(), cause] {
    report_down(remote, transfers, cause);
  });
  discard(link, true);
}

void Transport::close(const PeerId& id, const std::string& why) {
  Peer* peer = find(id);
  if (peer && peer->link)
    end_from_our_side(*peer->link, make_error(ErrorCode::kUnreachable, "closed: " + why), nullptr);
}

void Transport::fence(const Session& session) {
  if (fenced_.size() < limits::kFencedSessionsMax) fenced_.insert(session);
  for (const auto& [id, peer] : peers_) {
    if (!peer->link || peer->link->remote().session != session) continue;
    const Message farewell = Fenced{session, "fenced; join again as a new session"};
    end_from_our_side(*peer->link, make_error(ErrorCode::kStale, "session " + short_name(session) + " was fenced"),
                      &farewell);
  }
}

std::optional<Remote> Transport::remote(const PeerId& id) const {
  const Peer* peer = find(id);
  if (!peer || !peer->link) return std::nullopt;
  return peer->link->remote();
}

bool Transport::reaches(const PeerId& id) const {
  const Peer* peer = find(id);
  return peer && (peer->link || peer->pending() || peer->plan.reachable());
}

bool Transport::needs_relay(const PeerId& id) const {
  const Peer* peer = find(id);
  if (!peer) return false;
  return peer->link ? peer->by_relay() : !peer->plan.dialable() && peer->plan.reachable();
}

std::string Transport::other_host(const PeerId& id) const {
  const Peer* peer = find(id);
  return peer && peer->link ? wire_.other_host(peer->link->connection()) : std::string();
}

std::uint64_t Transport::ahead_of(const PeerId& id, TransferId transfer) const {
  const Peer* peer = find(id);
  return peer ? peer->outbox.ahead_of(transfer) : 0;
}

std::uint64_t Transport::received_of(const PeerId& id, TransferId transfer) const {
  const Peer* peer = find(id);
  return peer && peer->link ? peer->link->received_of(transfer) : 0;
}

LinkStats Transport::stats(const PeerId& id) const {
  const Peer* peer = find(id);
  return peer && peer->link ? peer->link->stats() : LinkStats{};
}

}  // namespace shoal
