#pragma once
// The processes that this one speaks with: who they are (Roster), over which link each is reached, what was measured of
// them (HopRates) and whether they may be asked (PeerHealth). Sessions become peers here, and only here.
//
// `now` is passed in, messages leave by Links. Thread: loop only.   Borrows: links.   Bounds: the list's members.
// Errors: what cannot be sent is logged and dropped, except where a Result says so.
#include <map>
#include <optional>
#include <vector>

#include "router/peer_health.h"
#include "router/rates.h"
#include "router/reverse_links.h"
#include "router/roster.h"
#include "transport/links.h"

namespace shoal {

class Neighbours {
 public:
  static constexpr Duration kMeasurePeriod = 250ms;  // of the links ahead, at most so often and while a hop waits
  static constexpr Duration kLearningPeriod = 10s;   // of addresses that were learned before
  static constexpr Duration kFullTime = 1s;          // all candidates: one more relayed link is opened

  // `authority` may speak and is spoken to although no list names it; none: this process is it.
  // REQUIRES: links outlive it.
  Neighbours(Links& links, const Session& self, std::optional<PeerId> authority = {})
      : links_(links), self_(self), authority_(authority), reverse_(links, self, authority) {}

  // ---- who they are ----
  // Learns where members are, and to which a link is kept. REQUIRES: the signature was checked.
  Roster::Change on_members(const MemberList& list, TimePoint now);
  const Roster& roster() const { return roster_; }
  const Session& self() const { return self_; }
  // Whether it may claim or answer: the authority, or a member under its own key. Decisions: is_trainer().
  bool admits(const Remote& from) const;
  // Whether its key is that of the launching process: the trainer's decisions are believed from it alone.
  bool is_trainer(const Remote& from) const { return from.peer == authority_; }
  std::optional<PeerId> peer_of(const Session& session) const;  // of a member, or of the authority while it is known

  // ---- their links ----
  void tick(TimePoint now) { reverse_.tick(now); }
  // The authority passed on that it wants a link: it is dialled where the list says.
  void on_knock(const Session& from);
  void on_link_up(const Remote& remote);
  // Returns the session that was at the other end; of a dial that failed: the member with that key.
  Session on_link_down(const Remote& remote, TimePoint now);
  // ERRORS: kUnreachable (no member), kStale (another session answers there), and those of Links::send.
  Result<TransferId> send_to(const Session& to, Message message, std::vector<Bytes> frames);
  void send(const Session& to, Message message);
  bool reach(const PeerId& peer);                     // whether a message can go there; else it is knocked at
  void drop(const Session& to, TransferId transfer);  // of ours
  std::uint64_t ahead_of(const Session& to, TransferId transfer) const;  // as Links::ahead_of
  // Whether frames of ours went on leaving our own queue since `ahead` was told of them, which becomes what it is now:
  // that time is not the peer's.
  bool leaves(const Session& to, TransferId transfer, std::uint64_t& ahead) const;
  void refuse(const Remote& from, TransferId transfer) { links_.refuse(from.peer, transfer); }

  // ---- how they are ----
  // Serving sessions of `stage` that can be reached, without those that are down or unfit; if there is no other, all of
  // them. Their links are measured; one that cannot be reached is knocked at. A session that only a relay leads to is
  // among them while its link is up. Such a link is opened when there is no candidate, or all were full, or fewer than
  // those that only a relay leads to, for kFullTime.
  std::vector<Session> candidates(StageId stage, TimePoint now);
  // Measures the links to a stage, when it is time.
  void measure(StageId stage, TimePoint now) { measure_links(roster_.serving(stage), now); }
  // Bytes a second that the slowest of the links to `stage` takes, of those that are up and were measured; 0: none was.
  double slowest_line(StageId stage) const;
  // How long the link to a member takes for so many bytes; 0: it was not measured.
  double line_seconds(const Session& session, std::uint64_t bytes) const;
  // The tensors of a member cannot be used: until then others are chosen.
  void unfit(const Session& session, TimePoint until);
  // Whether no other session that serves its stage can be asked: all are down or unfit.
  bool is_last(const Session& session, TimePoint now) const;
  // A finished part of a hop.
  void observe(const Session& session, HopKind kind, Duration took) {
    rates_.observe(session, kind, took, !health_.suspected(session));
  }
  void forget(const Session& session);  // its session is over
  PeerHealth& health() { return health_; }
  HopRates& rates() { return rates_; }

 private:
  void learn(const Session& session);
  // One to which a relayed link could be opened: each process has an order of its own.
  Session first_of(const std::vector<Session>& unopened) const;
  double line_rate(const Session& session) const;  // bytes a second; 0: it is down or was not measured
  void measure_links(const std::vector<Session>& sessions, TimePoint now);

  Links& links_;
  const Session self_;
  const std::optional<PeerId> authority_;
  std::optional<Session> authority_session_;
  Roster roster_;
  ReverseLinks reverse_;
  PeerHealth health_;
  HopRates rates_;
  std::map<StageId, TimePoint> full_since_;  // all candidates, or when a relayed link was opened last
  TimePoint next_measure_, next_learning_;
};

}  // namespace shoal
