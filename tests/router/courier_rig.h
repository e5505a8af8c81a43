#pragma once
// A courier and its neighbours with everything around them recorded. The holder is session 1, the authority's key is 9,
// peers of the next stage are 10, 11, 12.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "names.h"
#include "router/courier.h"

namespace shoal {

// Asks peers in the order of the list, so that tests can name them.
class FirstOfList final : public RoutingPolicy {
 public:
  std::optional<Session> pick(SampleId, std::span<const Candidate> candidates) override {
    return candidates.empty() ? std::nullopt : std::optional(candidates.front().session);
  }
};

class CourierRig : public testing::Test, private HopOwner, private Links {
 protected:
  struct Out {
    Session to;
    Message message;
  };

  static constexpr std::uint64_t kAuthority = 9, kA = 10, kB = 11, kC = 12;

  explicit CourierRig(std::unique_ptr<RoutingPolicy> policy = std::make_unique<FirstOfList>())
      : courier(owner(), neighbours, {.ahead = StageId(1), .lease = 4s}, std::move(policy)) {
    serve({kA, kB, kC});
  }

  static Remote remote_of(std::uint64_t tag) { return {naming::peer(tag), naming::session(tag), PeerRole::kPeer}; }
  // These members serve; those of before stay members. over(): it is none any more.
  void serve(const std::vector<std::uint64_t>& tags) {
    members.insert(tags.begin(), tags.end());
    list(tags);
  }
  void over(std::uint64_t tag) {
    members.erase(tag);
    std::vector<std::uint64_t> rest;
    for (const Session& session : neighbours.roster().serving(StageId(1)))
      if (session.peer_tag != tag) rest.push_back(session.peer_tag);
    list(rest);
  }
  HopSpec spec_of(std::uint64_t serial) {
    HopSpec spec;
    spec.microbatch = naming::id(serial);
    spec.sample = SampleId(serial);
    spec.to = StageId(1);
    spec.above = {naming::session(99), naming::session(1)};
    return spec;
  }
  void open(std::uint64_t serial = 0, std::optional<GradientHint> hint = {}) {
    HopSpec spec = spec_of(serial);
    spec.hint = hint;
    courier.open(std::move(spec), now);
  }
  template <class T>
  std::vector<std::pair<Session, T>> take_out() {
    std::vector<std::pair<Session, T>> result;
    std::erase_if(out, [&](const Out& item) {
      const T* message = std::get_if<T>(&item.message);
      if (message != nullptr) result.emplace_back(item.to, *message);
      return message != nullptr;
    });
    return result;
  }
  // The one Forward since the last call.
  std::pair<Session, Forward> asked() {
    auto all = take_out<Forward>();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? std::pair<Session, Forward>{} : all[0];
  }
  bool asked_nobody() { return take_out<Forward>().empty(); }
  bool tell(std::uint64_t tag, const Message& message, TransferId transfer = 0) {
    heard[naming::peer(tag)] = now;
    return courier.on_message(remote_of(tag), message, transfer, now);
  }
  void busy(std::uint64_t tag, const Lease& lease, BusyReason why = BusyReason::kNoCredit) {
    tell(tag, Busy{lease, why, 0});
  }
  void progress(std::uint64_t tag, const Lease& lease, HopPhase phase) { tell(tag, Progress{{{lease, phase}}, 0}); }
  static Gradient gradient_of(std::uint64_t tag, const Lease& lease, std::uint64_t serial = 0) {
    Gradient message;
    message.lease = lease;
    message.microbatch = naming::id(serial);
    message.path = {naming::entry_name(tag, 5)};
    message.tags = {PathTag(5)};
    return message;
  }
  void gradient(std::uint64_t tag, const Lease& lease, std::uint64_t serial = 0) {
    tell(tag, gradient_of(tag, lease, serial));
  }
  // It says something that is for no courier.
  void hear(std::uint64_t tag) { EXPECT_FALSE(tell(tag, Renew{})); }
  // Time passes in ticks; `alive` peers are heard all the time.
  void pass(Duration time, std::vector<std::uint64_t> alive = {kA, kB, kC}) {
    for (const TimePoint end = now + time; now < end;) {
      now += 20ms;
      for (const std::uint64_t tag : alive) hear(tag);
      courier.tick(now);
    }
  }
  void measure(Duration took) {  // of everybody, so that deadlines are 3 x this
    for (const std::uint64_t tag : {kA, kB, kC})
      for (int i = 0; i < 8; ++i)
        for (const HopKind kind : {HopKind::kForward, HopKind::kBackward})
          neighbours.observe(naming::session(tag), kind, took);
  }
  std::uint32_t in_flight() { return rates.in_flight(naming::session(kA)) + rates.in_flight(naming::session(kB)); }

  TimePoint now = naming::at(0s);
  std::vector<Out> out;
  std::vector<TransferId> dropped, refused;
  std::vector<std::pair<MicrobatchId, bool>> parked;
  std::vector<Gradient> won;
  std::map<EventKind, std::uint64_t> written;
  std::vector<bool> keys;                           // of the Forwards sent: as key frames
  std::vector<std::pair<Session, BranchEnd>> ends;  // what became of their frames
  std::optional<Session> unreachable;
  std::optional<Remote> answers;         // whose session is at the other end of every link; none: unknown
  mutable std::size_t measured = 0;      // links
  std::map<PeerId, LinkStats> stats_of;  // others are up and bring what is told
  std::map<PeerId, TimePoint> heard;
  std::map<TransferId, std::uint64_t> ahead;  // what of them is in our own queue
  TransferId next_transfer = 1;
  Neighbours neighbours{links(), naming::session(1), naming::peer(kAuthority)};
  PeerHealth& health = neighbours.health();
  HopRates& rates = neighbours.rates();
  Courier courier;

 private:
  HopOwner& owner() { return *this; }
  Links& links() { return *this; }
  void list(const std::vector<std::uint64_t>& serving) {
    MemberList list;
    list.epoch = Epoch(++epoch);
    StageMembers& stage = list.stages.emplace_back();
    stage.stage = StageId(1);
    for (const std::uint64_t tag : members) {
      stage.members.push_back(naming::member(tag));
      stage.members.back().serving = std::find(serving.begin(), serving.end(), tag) != serving.end();
    }
    courier.on_members(list, now);
  }
  // HopOwner
  std::vector<Bytes> frames_of(const Session&, const Forward&, bool key) override {
    keys.push_back(key);
    return std::vector<Bytes>(1);
  }
  void on_branch(const MicrobatchId&, const Session& to, const Lease& lease, BranchEnd end) override {
    EXPECT_EQ(lease.session, naming::session(1));
    ends.emplace_back(to, end);
  }
  void on_won(const MicrobatchId&, const Gradient& gradient, std::vector<Bytes>) override { won.push_back(gradient); }
  void on_parked(const MicrobatchId& microbatch, StageId, bool is) override { parked.emplace_back(microbatch, is); }
  void write(const EventRecord& event) override { ++written[event.event]; }
  // Links
  void learn(const PeerId&, Whereabouts) override {}
  Result<TransferId> send(const PeerId& to, Message message, std::vector<Bytes> frames) override {
    const Session session = naming::session(to.bytes[0]);
    if (unreachable == session) return make_error(ErrorCode::kUnreachable, "no link");
    out.push_back({session, std::move(message)});
    return frames.empty() ? 0 : next_transfer++;
  }
  void drop(const PeerId&, TransferId transfer) override { dropped.push_back(transfer); }
  void refuse(const PeerId&, TransferId transfer) override { refused.push_back(transfer); }
  std::optional<Remote> remote(const PeerId&) const override { return answers; }
  std::uint64_t ahead_of(const PeerId&, TransferId transfer) const override {
    const auto at = ahead.find(transfer);
    return at == ahead.end() ? 0 : at->second;
  }
  LinkStats stats(const PeerId& to) const override {
    ++measured;
    if (const auto at = stats_of.find(to); at != stats_of.end()) return at->second;
    LinkStats link;
    link.up = true;
    if (const auto at = heard.find(to); at != heard.end()) link.heard = at->second;
    return link;
  }

  std::uint64_t epoch = 0;
  std::set<std::uint64_t> members;
};

}  // namespace shoal
