// shoal-rogue TICKET ATTACK SECONDS [IDENTITIES]: speaks the wire with a valid key and does harm, for scripts/siege. No
// part of the product. Most attacks are a member's, with well-formed messages:
//   toggle   says in turn that it serves and that it does not, a thousand times a second
//   failed   serves, and answers every RoundOpen with `failed`, naming another member
//   lows     Renew with thousands of trainers and, as COMMITs, with low-water marks of 2^62, the real trainer's too
//   commits  COMMITs for entries of nobody, to everybody
//   headers  Forwards whose frames never come, to every peer of stage 1
//   replay   the authority's newest member list, a thousand times a second, to everybody
//   offers   serves, and offers a state of 8 GiB to whoever asks and to everybody else
//   joins    IDENTITIES keys that join from one address and do nothing
// and one a stranger's:
//   silent   IDENTITIES connections that complete the key exchange and never greet, made anew when they are cut
// Prints "begun" when it can do harm (a member: as the run takes it, with its session), one line an identity, and at
// the end what became of it, one line of words and numbers. Exit code 0: it did what it was told for SECONDS.
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/sign.h"
#include "common/thread_loop.h"
#include "runtime/config/ticket.h"
#include "sync/membership.h"
#include "transport/transport.h"
#include "transport/zmq/zmq_socket.h"
#include "transport/zmq/zmq_wire.h"

namespace shoal {
namespace {

constexpr Duration kAct = 10ms, kSay = 1s;
constexpr std::uint64_t kHuge = std::uint64_t{1} << 62, kForeign = 1'000'000'000;
constexpr std::uint64_t kOffered = std::uint64_t{8} << 30;
constexpr std::size_t kLeasesKept = 64;  // renewed, of each peer that headers were sent to

// Swallows what goes to the bulk lane.
class HeadersOnly final : public Wire {
 public:
  HeadersOnly(Wire& wire, bool mute) : wire_(wire), mute_(mute) {}
  void set_listener(Listener* listener) override { wire_.set_listener(listener); }
  ConnectionId connect(const PeerId& peer, const Address& address) override { return wire_.connect(peer, address); }
  Status send(ConnectionId connection, Lane lane, Bytes message) override {
    return mute_ && lane == Lane::kBulk ? Status() : wire_.send(connection, lane, std::move(message));
  }
  void disconnect(ConnectionId connection) override { wire_.disconnect(connection); }
  Status admit_only(const std::vector<PeerId>& peers) override { return wire_.admit_only(peers); }
  std::uint64_t bytes_sent() const override { return wire_.bytes_sent(); }

 private:
  Wire& wire_;
  bool mute_;
};

class Rogue final : private Transport::Listener {
 public:
  Rogue(ThreadLoop& loop, const Ticket& ticket, std::string attack)
      : loop_(loop), ticket_(ticket), attack_(std::move(attack)), key_(KeyPair::generate()) {}

  Status open() {
    SHOAL_ASSIGN(
        wire_,
        make_zmq_wire(loop_, {.key = key_, .listen = "127.0.0.1:0", .admission = Admission::kOpen, .admitted = {}}));
    lanes_ = std::make_unique<HeadersOnly>(*wire_, attack_ == "headers");
    session_ = Session::of(key_.id(), static_cast<std::uint64_t>(loop_.wall().time_since_epoch().count()));
    transport_ = std::make_unique<Transport>(
        *lanes_, loop_,
        Transport::Options{ticket_.run, key_.id(), session_, PeerRole::kPeer, {wire_->listening_address()}});
    transport_->set_listener(this);
    return {};
  }
  void start() {
    transport_->learn(authority(), {ticket_.contacts.front().address});
    say();
    act();
  }
  bool joined() const { return joined_; }
  std::string story() const {
    return "joined " + std::to_string(joined_) + ", sent " + std::to_string(sent_) + ", fenced " +
           std::to_string(fenced_) + (why_.empty() ? "" : ": " + why_);
  }

 private:
  const PeerId& authority() const { return ticket_.contacts.front().peer; }
  bool serves() const { return attack_ == "failed" || attack_ == "toggle" || attack_ == "offers"; }

  void send(const PeerId& to, Message message, std::vector<Bytes> frames = {}) {
    sent_ += transport_->send(to, std::move(message), std::move(frames)).ok() ? 1 : 0;
  }
  void say() {
    loop_.after(kSay, [this] { say(); });
    if (!joined_) {
      JoinRequest request;
      request.wish = StageId(attack_ == "headers" ? 0 : 1);
      request.addresses = {wire_->listening_address()};
      return send(authority(), std::move(request));
    }
    send(authority(), beat(serves()));
    send(authority(), MembersQuery{});
    for (const auto& [peer, leases] : leases_) {
      Renew renew;
      for (const Lease& lease : leases) renew.leases.push_back({lease, true});
      send(peer, std::move(renew));
    }
  }
  Beat beat(bool serving) {
    Beat beat;
    beat.stage = stage_;
    beat.serving = serving;
    beat.progress = ++progress_;
    for (const StageMembers& stage : list_.stages)
      if (stage.stage == stage_) beat.version = stage.version;
    return beat;
  }
  void act() {
    loop_.after(kAct, [this] { act(); });
    ++turn_;
    if (!joined_) return;
    if (attack_ == "toggle")
      for (int i = 0; i < 10; ++i) send(authority(), beat(i % 2 == 0));
    for (const StageMembers& stage : list_.stages)
      for (const Member& member : stage.members)
        if (member.peer != key_.id()) harm(stage.stage, member);
  }
  void harm(StageId stage, const Member& member) {
    transport_->learn(member.peer, member.addresses);
    if (attack_ == "lows" && turn_ % 10 == 0) {
      Renew renew;
      Commit commit;
      for (std::uint64_t i = 0; i < 8000; ++i) renew.lows.push_back({kForeign + i, kHuge});
      if (trainer_) renew.lows.push_back({*trainer_, kHuge});
      commit.lows = {{trainer_.value_or(1), kHuge}};
      commit.run_targets = kHuge;
      send(member.peer, std::move(renew));
      send(member.peer, std::move(commit));
    } else if (attack_ == "commits" && turn_ % 10 == 0) {
      Commit commit;
      for (std::uint64_t i = 0; i < 1000; ++i)
        commit.items.push_back({{kForeign, ++serial_}, {EntryName{member.session, serial_}}});
      send(member.peer, std::move(commit));
    } else if (attack_ == "replay" && newest_) {
      for (int i = 0; i < 10; ++i) send(member.peer, *newest_);
    } else if (attack_ == "offers") {
      send(member.peer, offer(stage));
    } else if (attack_ == "headers" && stage == StageId(1)) {
      Forward forward;
      forward.microbatch = {kForeign, ++serial_};
      forward.lease = {session_, serial_};
      forward.above = {session_};
      forward.stage = stage;
      send(member.peer, std::move(forward),
           {Bytes::from_vector(std::vector<std::uint8_t>(64)), Bytes::from_vector(std::vector<std::uint8_t>(64))});
      std::deque<Lease>& leases = leases_[member.peer];
      leases.push_back({session_, serial_});
      if (leases.size() > kLeasesKept) leases.pop_front();
    }
  }

  StateOffer offer(StageId stage) {
    StateOffer offer;
    offer.stage = stage;
    offer.has = true;
    offer.bytes = kOffered;
    offer.chunks = static_cast<std::uint32_t>(kOffered >> 20);
    for (const StageMembers& at : list_.stages)
      if (at.stage == stage) offer.version = at.version, offer.digest = at.digest;
    offer.root = offer.digest;
    return offer;
  }

  // Flushed: the siege ends this process without a word, and must know that there was an attack.
  void note_joined(StageId stage) {
    stage_ = stage;
    if (std::exchange(joined_, true)) return;
    std::ostringstream name;
    name << session_;
    std::printf("begun %s\n", name.str().c_str());
    std::fflush(stdout);
  }

  void on_link_up(const Remote&) override {}
  void on_link_down(const Remote&, const Error& cause) override { why_ = cause.message; }
  void on_message(const Remote& from, Message message, TransferId transfer, std::uint64_t) override {
    if (transfer != 0) transport_->refuse(from.peer, transfer);
    if (const auto* answer = std::get_if<JoinAnswer>(&message)) {
      if (answer->accepted) note_joined(answer->stage);
      why_ = answer->reason;
    } else if (const auto* members = std::get_if<Members>(&message)) {
      if (auto list = open_member_list(*members, ticket_.run); list.ok()) {
        list_ = *std::move(list);
        newest_ = *members;
      }
    } else if (const auto* query = std::get_if<StateQuery>(&message)) {
      if (attack_ == "offers") send(from.peer, offer(query->stage));
    } else if (const auto* open = std::get_if<RoundOpen>(&message); open != nullptr && attack_ == "failed") {
      RoundReport report;
      report.stage = open->stage;
      report.round = open->round;
      report.silent = open->members.front();
      report.reason = "no";
      send(authority(), std::move(report));
    } else if (const auto* forward = std::get_if<Forward>(&message)) {
      send(from.peer, Busy{forward->lease, BusyReason::kNoCredit, 0});
    } else if (const auto* renew = std::get_if<Renew>(&message); renew != nullptr && !renew->lows.empty()) {
      trainer_ = renew->lows.front().trainer;
    } else if (const auto* over = std::get_if<Fenced>(&message)) {
      ++fenced_;
      why_ = over->reason;
    }
  }
  void on_frames(const Remote&, TransferId, Result<std::vector<Bytes>>) override {}

  ThreadLoop& loop_;
  const Ticket& ticket_;
  const std::string attack_;
  KeyPair key_;
  Session session_;
  std::unique_ptr<ZmqWire> wire_;
  std::unique_ptr<HeadersOnly> lanes_;
  std::unique_ptr<Transport> transport_;
  bool joined_ = false;
  StageId stage_;
  MemberList list_;
  std::optional<Members> newest_;  // list_, as the authority signed it
  std::optional<std::uint64_t> trainer_;
  std::map<PeerId, std::deque<Lease>> leases_;
  std::uint64_t turn_ = 0, serial_ = 0, progress_ = 0, sent_ = 0, fenced_ = 0;
  std::string why_;
};

int fail(const std::string& text) {
  std::fprintf(stderr, "shoal-rogue: %s\n", text.c_str());
  return 1;
}

int keep_silent(const Ticket& ticket, double seconds, std::size_t connections) {
  const auto address = parse_host_port(ticket.contacts.front().address);
  const auto listener = curve_public_of(ticket.contacts.front().peer);
  if (!address.ok() || !listener.ok()) return fail("the ticket's first contact cannot be dialled");
  ZmqContext context;
  const KeyPair key = KeyPair::generate();
  std::vector<ZmqSocket> sockets(connections);
  std::size_t dialled = 0;
  for (const TimePoint end = monotonic_now() + from_seconds(seconds); monotonic_now() < end;) {
    for (ZmqSocket& socket : sockets) {
      while (socket.open()) {
        const auto event = socket.monitor_event();
        if (!event) break;
        if (event->kind == ZmqMonitorEvent::Kind::kDisconnected) socket = ZmqSocket();
      }
      if (socket.open()) continue;
      auto made = ZmqSocket::make(context, ZmqSocket::Kind::kDealer);
      if (!made.ok()) return fail(made.error().message);
      made->configure(Lane::kControl, key, address->is_v6());
      made->expect_peer(*listener);
      const Status watched = made->start_monitor(context, "silent" + std::to_string(dialled));
      if (!watched.ok()) return fail(watched.error().message);
      if (made->connect(*address).ok() && dialled++ == 0) std::puts("begun"), std::fflush(stdout);
      socket = *std::move(made);
    }
    std::vector<ZmqWaiting> waiting;
    for (ZmqSocket& socket : sockets) waiting.push_back({&socket, false});
    zmq_wait(waiting, -1, 100ms);
  }
  std::printf("%zu connections in turn\n", dialled);
  std::fflush(nullptr);
  std::_Exit(0);
}

int run(const std::string& ticket_text, const std::string& attack, double seconds, std::size_t identities) {
  set_log_level(LogLevel::kError);
  (void)raise_descriptors_max();
  const auto ticket = parse_ticket(ticket_text);
  if (!ticket.ok()) return fail(ticket.error().message);
  if (attack == "silent") return keep_silent(*ticket, seconds, identities);
  ThreadLoop loop;
  std::vector<std::unique_ptr<Rogue>> rogues;
  for (std::size_t i = 0; i < identities; ++i) {
    rogues.push_back(std::make_unique<Rogue>(loop, *ticket, attack));
    if (const Status opened = rogues.back()->open(); !opened.ok()) return fail(opened.error().message);
  }
  loop.post([&] {
    for (const auto& rogue : rogues) rogue->start();
    loop.after(from_seconds(seconds), [&] { loop.stop(); });
  });
  loop.run();
  std::size_t joined = 0;
  for (const auto& rogue : rogues) joined += rogue->joined() ? 1 : 0;
  std::printf("%zu of %zu joined; the first: %s\n", joined, identities, rogues.front()->story().c_str());
  std::fflush(nullptr);
  std::_Exit(0);  // as a process that dies: nobody is told
}

}  // namespace
}  // namespace shoal

int main(int count, char** words) {
  if (count < 4) return shoal::fail("shoal-rogue TICKET ATTACK SECONDS [IDENTITIES]");
  return shoal::run(words[1], words[2], std::atof(words[3]),
                    count > 4 ? static_cast<std::size_t>(std::atol(words[4])) : 1);
}
