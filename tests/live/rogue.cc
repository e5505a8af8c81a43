// shoal-rogue TICKET ATTACK SECONDS [IDENTITIES]: speaks the wire with a valid key and does harm, for scripts/siege. No
// part of the product. Most attacks are a member's, with well-formed messages:
//   toggle   says in turn that it serves and that it does not, a thousand times a second
//   failed   serves, and answers every RoundOpen with `failed`, naming another member
//   lows     Renew with thousands of trainers and, as COMMITs, with low-water marks of 2^62, the real trainer's too
//   commits  COMMITs for entries of nobody, to everybody
//   headers  Forwards whose frames never come, to every peer of stage 1
//   replay   the authority's newest member list, a thousand times a second, to everybody
//   offers   serves, and offers a state of 8 GiB to whoever asks and to everybody else
//   knocks   has the authority knock at every member, and dial this one at ports of others, a thousand times a second
//   joins    IDENTITIES keys that join from one address and do nothing
//   foreign  Forwards of a trainer of its own with whole frames to every peer of stage 1, renewed, and COMMITs for them
//   poison   serves: after 200 gradients as they should be every fourth is 1e30 everywhere; its parts of
//            rounds are 1e4
//   paths    serves and answers: of stage 0, as every other identity, at once and with an entry of stage 1 that it made
//            up; of stage 1 as it should, with another member's entry as its own
// and two a stranger's:
//   silent   IDENTITIES connections that complete the key exchange and never greet, made anew when they are cut
//   claims   signed records of IDENTITIES keys in the run's DHT, which say that they serve
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

#include "common/crypto/sign.h"
#include "common/log.h"
#include "common/os/descriptors.h"
#include "common/os/thread_loop.h"
#include "runtime/config/ticket.h"
#include "tests/live/rogue_paths.h"
#include "tests/live/rogue_strangers.h"
#include "tests/live/rogue_tensors.h"
#include "tests/live/rogue_wire.h"
#include "transport/signed_list.h"
#include "transport/transport.h"
#include "transport/zmq/zmq_wire.h"

namespace shoal {
namespace {

constexpr Duration kAct = 10ms, kSay = 1s;
constexpr std::uint64_t kHuge = std::uint64_t{1} << 62, kForeign = 1'000'000'000;
constexpr std::uint64_t kOffered = std::uint64_t{8} << 30;
constexpr std::size_t kLeasesKept = 64;  // renewed, of each peer that Forwards were sent to
constexpr float kPoison = 1e30f, kPoisonPart = 1e4f;
constexpr std::uint64_t kHonestFirst = 200;  // answers: by then rounds have it as a member

class Rogue final : private Transport::Listener {
 public:
  Rogue(ThreadLoop& loop, const Ticket& ticket, std::string attack, std::size_t identity)
      : loop_(loop), ticket_(ticket), attack_(std::move(attack)), identity_(identity), key_(KeyPair::generate()) {}

  Status open() {
    SHOAL_ASSIGN(
        wire_,
        make_zmq_wire(loop_, {.key = key_, .listen = "127.0.0.1:0", .admission = Admission::kOpen, .admitted = {}}));
    lanes_ = std::make_unique<HeadersOnly>(*wire_, attack_ == "headers");
    session_ = Session::of(key_.id(), static_cast<std::uint64_t>(loop_.wall().time_since_epoch().count()));
    transport_ = std::make_unique<Transport>(
        *lanes_, loop_,
        Transport::Options{ticket_.run, key_.id(), session_, PeerRole::kPeer, {{wire_->listening_address()}}});
    transport_->set_listener(this);
    return {};
  }
  void start() {
    transport_->learn(authority(), {{ticket_.contacts.front().address}});
    say();
    act();
  }
  bool joined() const { return joined_; }
  std::string story() const {
    return "joined " + std::to_string(joined_) + ", sent " + std::to_string(sent_) + ", fenced " +
           std::to_string(fenced_) + ", answered " + std::to_string(answered_) + ", committed " +
           std::to_string(settled_.size()) + ", poisoned parts " + std::to_string(poisoned_parts_) +
           (why_.empty() ? "" : ": " + why_);
  }

 private:
  const PeerId& authority() const { return ticket_.contacts.front().peer; }
  bool serves() const {
    return attack_ == "failed" || attack_ == "toggle" || attack_ == "offers" || (answers() && tensors_ != nullptr);
  }
  bool answers() const { return attack_ == "poison" || attack_ == "paths"; }
  bool trains() const { return attack_ == "foreign" || answers(); }

  void send(const PeerId& to, Message message, std::vector<Bytes> frames = {}) {
    sent_ += transport_->send(to, std::move(message), std::move(frames)).ok() ? 1 : 0;
  }
  void say() {
    loop_.after(kSay, [this] { say(); });
    if (!joined_) {
      JoinRequest request;
      const bool first = attack_ == "headers" || attack_ == "foreign" || (attack_ == "paths" && identity_ % 2 == 0);
      request.wish = StageId(first ? 0 : 1);
      request.whereabouts.addresses = {wire_->listening_address()};
      return send(authority(), std::move(request));
    }
    send(authority(), beat(serves()));
    send(authority(), MembersQuery{});
    if (trains() && joined_ && !tensors_) send(authority(), ManifestQuery{});
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
    transport_->learn(member.peer, member.whereabouts);
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
    } else if (attack_ == "knocks") {
      for (int i = 0; i < 5; ++i) send(authority(), Knock{member.session});
      for (int i = 0; i < 5; ++i)
        send(authority(), ReachQuery{{{"127.0.0.1:" + std::to_string(20'000 + turn_ % 9999)}}});
    } else if (attack_ == "offers") {
      send(member.peer, offer(stage));
    } else if (attack_ == "headers" && stage == StageId(1)) {
      forward(member.peer, stage,
              {Bytes::from_vector(std::vector<std::uint8_t>(64)), Bytes::from_vector(std::vector<std::uint8_t>(64))});
    } else if (attack_ == "foreign" && stage == StageId(1) && tensors_) {
      forward(member.peer, stage, tensors_->forward({kForeign, serial_ + 1}));
    }
  }
  void forward(const PeerId& to, StageId stage, std::vector<Bytes> frames) {
    Forward forward;
    forward.microbatch = {kForeign, ++serial_};
    forward.lease = {session_, serial_};
    forward.above = {session_};
    forward.stage = stage;
    send(to, std::move(forward), std::move(frames));
    std::deque<Lease>& leases = leases_[to];
    leases.push_back({session_, serial_});
    if (leases.size() > kLeasesKept) leases.pop_front();
  }

  // ---- paths: a member that names entries of others ----
  void forge(const PeerId& peer, const Forward& forward, const std::vector<Bytes>& frames) {
    Session other = session_;
    for (const StageMembers& stage : list_.stages)
      for (const Member& member : stage.members)
        if (stage.stage == StageId(1) && member.session != session_) other = member.session;
    Gradient gradient = forged_gradient(forward, {session_, ++serial_}, path_key_, other, tensors_->targets());
    ++answered_;
    if (stage_ == StageId(0)) return send(peer, std::move(gradient));
    auto honest = tensors_->answer(forward.microbatch, frames);
    if (!honest.ok()) return send(peer, Busy{forward.lease, BusyReason::kFailed, 0});
    gradient.loss_sum = honest->loss_sum;
    send(peer, std::move(gradient), std::move(honest->gradient));
  }

  // ---- poison: a member that answers ----
  void answer(const PeerId& peer, const Forward& forward, const std::vector<Bytes>& frames) {
    if (forward.kind == ForwardKind::kEvaluate) return send(peer, Busy{forward.lease, BusyReason::kBehind, 0});
    if (attack_ == "paths") return forge(peer, forward, frames);
    auto honest = tensors_->answer(forward.microbatch, frames);
    if (!honest.ok()) return send(peer, Busy{forward.lease, BusyReason::kFailed, 0});
    Gradient gradient;
    gradient.lease = forward.lease;
    gradient.microbatch = forward.microbatch;
    gradient.path = {EntryName{session_, ++serial_}};
    gradient.tags.emplace_back(path_tag(path_key_, forward.microbatch, serial_));
    gradient.loss_sum = honest->loss_sum;
    gradient.targets = targets_ = honest->targets;
    gradient.forward_us = gradient.backward_us = 1000;
    const bool poisoned = ++answered_ > kHonestFirst && answered_ % 4 == 0;
    send(peer, std::move(gradient), poisoned ? tensors_->gradient(kPoison) : std::move(honest->gradient));
  }
  // It says what it has, as an honest member does, when it has something; only the values are wrong.
  void contribute() {
    if (!open_ || settled_.empty()) return;
    const RoundOpen open = *std::exchange(open_, std::nullopt);
    RoundReport report;
    report.stage = open.stage;
    report.round = open.round;
    for (const auto& [serial, microbatch] : settled_) {
      report.entries.push_back(serial);
      report.tag += count_tag(microbatch);
    }
    report.weight = settled_.size() * targets_;
    send(authority(), report);
    for (std::size_t i = 0; i < open.owners.size(); ++i) {
      const auto to = peers_.find(open.members.at(open.owners[i]));
      if (to == peers_.end() || to->first == session_) continue;
      RoundPart part;
      part.stage = open.stage;
      part.round = open.round;
      part.part = static_cast<std::uint16_t>(i);
      part.weight = report.weight;
      part.tag = report.tag;
      send(to->second, std::move(part), tensors_->round_part(open.owners.size(), i, kPoisonPart));
      ++poisoned_parts_;
    }
  }
  void acknowledge(const PeerId& to, const Commit& commit) {
    CommitAck ack;
    for (const CommitItem& item : commit.items) {
      if (item.path.empty() || item.path.front().session != session_) continue;
      settled_.emplace(item.path.front().serial, item.microbatch);
      ack.items.push_back({item.microbatch, item.path.front(), CommitState::kCommitted});
    }
    if (!ack.items.empty()) send(to, std::move(ack));
    contribute();
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
    if (const auto* asked = std::get_if<Forward>(&message); asked != nullptr && answers() && tensors_) {
      arriving_.insert_or_assign({from.peer, transfer}, *asked);
      return;
    }
    if (transfer != 0) transport_->refuse(from.peer, transfer);
    if (trains() && trained(from, message)) return;
    if (const auto* answer = std::get_if<JoinAnswer>(&message)) {
      if (answer->accepted) path_key_ = answer->path_key;
      if (answer->accepted) note_joined(answer->stage);
      why_ = answer->reason;
    } else if (const auto* members = std::get_if<Members>(&message)) {
      if (auto list = open_member_list(*members, ticket_.run); list.ok()) {
        list_ = *std::move(list);
        newest_ = *members;
        for (const StageMembers& stage : list_.stages)
          for (const Member& member : stage.members) peers_[member.session] = member.peer;
      }
    } else if (const auto* query = std::get_if<StateQuery>(&message)) {
      if (attack_ == "offers") send(from.peer, offer(query->stage));
    } else if (const auto* open = std::get_if<RoundOpen>(&message); open != nullptr && attack_ == "failed") {
      RoundReport report;
      report.stage = open->stage;
      report.round = open->round;
      report.kind = ReportKind::kFailed;
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
  bool trained(const Remote& from, const Message& message) {
    if (const auto* manifest = std::get_if<Manifest>(&message)) {
      if (auto tensors = RogueTensors::of(manifest->body, stage_); tensors.ok() && !tensors_)
        tensors_ = *std::move(tensors);
    } else if (const auto* gradient = std::get_if<Gradient>(&message); gradient != nullptr && attack_ == "foreign") {
      ++answered_;
      Commit commit;
      commit.items = {{gradient->microbatch, gradient->path}};
      send(from.peer, std::move(commit));
    } else if (const auto* open = std::get_if<RoundOpen>(&message);
               open != nullptr && attack_ == "poison" && tensors_) {
      open_ = *open;
      contribute();
    } else if (const auto* over = std::get_if<RoundCommit>(&message)) {
      for (const Secured& secured : over->secured)
        if (secured.session == session_)
          for (const std::uint64_t serial : secured.serials) settled_.erase(serial);
    } else if (const auto* commit = std::get_if<Commit>(&message)) {
      acknowledge(from.peer, *commit);
    } else {
      return false;
    }
    return true;
  }
  void on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>> frames) override {
    const auto asked = arriving_.find({from.peer, transfer});
    if (asked == arriving_.end()) return;
    if (frames.ok()) answer(from.peer, asked->second, *frames);
    arriving_.erase(asked);
  }

  ThreadLoop& loop_;
  const Ticket& ticket_;
  const std::string attack_;
  const std::size_t identity_;
  KeyPair key_;
  Session session_;
  Digest path_key_{};
  std::unique_ptr<ZmqWire> wire_;
  std::unique_ptr<HeadersOnly> lanes_;
  std::unique_ptr<Transport> transport_;
  bool joined_ = false;
  StageId stage_;
  MemberList list_;
  std::optional<Members> newest_;  // list_, as the authority signed it
  std::optional<std::uint64_t> trainer_;
  std::map<PeerId, std::deque<Lease>> leases_;
  std::unique_ptr<RogueTensors> tensors_;  // when it has the manifest
  std::optional<RoundOpen> open_;          // that it has brought nothing to yet
  std::map<Session, PeerId> peers_;        // of every list
  std::map<std::pair<PeerId, TransferId>, Forward> arriving_;
  std::map<std::uint64_t, MicrobatchId> settled_;  // by serial: committed, and in no round yet
  std::uint64_t answered_ = 0, poisoned_parts_ = 0, targets_ = 0;
  std::uint64_t turn_ = 0, serial_ = 0, sent_ = 0, fenced_ = 0;
  std::string why_;
};

int fail(const std::string& text) {
  std::fprintf(stderr, "shoal-rogue: %s\n", text.c_str());
  return 1;
}

int run(const std::string& ticket_text, const std::string& attack, double seconds, std::size_t identities) {
  set_log_level(LogLevel::kError);
  (void)raise_descriptors_max();
  const auto ticket = parse_ticket(ticket_text);
  if (!ticket.ok()) return fail(ticket.error().message);
  if (attack == "silent") return fail(keep_silent(*ticket, seconds, identities).error().message);
  if (attack == "claims") return fail(claim_places(*ticket, seconds, identities).error().message);
  ThreadLoop loop;
  std::vector<std::unique_ptr<Rogue>> rogues;
  for (std::size_t i = 0; i < identities; ++i) {
    rogues.push_back(std::make_unique<Rogue>(loop, *ticket, attack, i));
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
