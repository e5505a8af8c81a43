#pragma once
// A ledger and its courier with everything around them recorded: what they send, what they ask of the peer, and a
// device that does what it is told. The next stage has no members until a test says so.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/route.h"
#include "names.h"
#include "router/ledger.h"

namespace shoal {

class LedgerRig : private LedgerPort, private HopOwner, private Links {
 public:
  struct Sent {
    Session to;
    Message message;
  };

  explicit LedgerRig(std::uint16_t stage = 1, std::uint16_t stages = 2, std::uint64_t inner_batch = 1,
                     std::size_t credits_at_a_time = 4, bool drain = false, std::uint64_t delay_max = 0)
      : courier(owner(), neighbours, {.ahead = StageId(static_cast<std::uint16_t>(stage + 1))}),
        windows({.inner_batch = inner_batch, .delay_max = delay_max, .drain = drain}),
        credits(credits_at_a_time, 1),
        ledger(port(), courier, windows, credits, options(stage, stages)) {}

  static constexpr std::uint64_t kSelf = 50;
  static Session self() { return naming::session(kSelf); }
  static EntryName own(std::uint64_t serial) { return naming::entry_name(kSelf, serial); }

  // These sessions are the members of `stage`.
  void list(std::uint16_t stage, const std::vector<std::uint64_t>& tags) {
    MemberList list;
    list.epoch = Epoch(1);
    StageMembers& members = list.stages.emplace_back();
    members.stage = StageId(stage);
    for (const std::uint64_t tag : tags) members.members.push_back(naming::member(tag));
    courier.on_members(list, now);
  }
  // Holder `tag` sends microbatch `serial` under a lease of the same serial (or `claim`).
  std::optional<EntrySerial> forward(std::uint64_t tag, std::uint64_t serial, std::uint64_t claim = 0,
                                     std::optional<GradientHint> hint = {}, StepId step = {},
                                     std::optional<Session> sender = {}) {
    Forward message;
    message.microbatch = naming::id(serial);
    message.sample = SampleId(serial);
    message.lease = naming::lease(tag, claim == 0 ? serial : claim);
    message.above = {naming::session(1), naming::session(tag)};
    message.hint = hint;
    message.step = step;
    message.stage = StageId(1);
    return ledger.on_forward(sender.value_or(naming::session(tag)), message, ++transfer, now);
  }
  EntrySerial accept(std::uint64_t tag, std::uint64_t serial, StepId step = {}) {
    const auto entry = forward(tag, serial, 0, {}, step);
    EXPECT_TRUE(entry) << "microbatch " << serial << " was refused";
    ledger.inputs_arrived(entry.value_or(0), now);
    return entry.value_or(0);
  }
  // Does the device's next job at once.
  std::optional<Job> work() {
    const auto job = ledger.next_job(false);
    if (job) finish(*job);
    return job;
  }
  void finish(const Job& job) {
    switch (job.kind) {
      case JobKind::kForward:
      case JobKind::kEvaluate:
        return ledger.forward_done(job.serial, forwarded(), now);
      case JobKind::kBackward:
        return ledger.backward_done(job.serial, true, stamp, false, 10);
      case JobKind::kUndo:
        return ledger.undo_done(job.serial, true);
      case JobKind::kInnerStep:
        return windows.note_step(job.slot, ++stamp);
      case JobKind::kApplyShift:
        return windows.wrote(++stamp);
      case JobKind::kRelease:
        settled.insert(job.settled.begin(), job.settled.end());
        dropped.insert(job.dropped.begin(), job.dropped.end());
    }
  }
  static ForwardResult forwarded() {
    ForwardResult result;
    result.ok = true;
    result.loss_sum = 2.0;
    result.targets = 1;
    result.took_us = 10;
    return result;
  }
  std::vector<JobKind> work_all() {
    std::vector<JobKind> kinds;
    while (const auto job = work()) kinds.push_back(job->kind);
    return kinds;
  }
  // Up to counted, at the last stage.
  EntrySerial count(std::uint64_t tag, std::uint64_t serial, StepId step = {}) {
    const EntrySerial entry = accept(tag, serial, step);
    work_all();
    EXPECT_EQ(state(entry), EntryState::kCounted);
    return entry;
  }
  void commit(std::uint64_t serial, std::vector<EntryName> path) {
    Commit message;
    message.items = {{naming::id(serial), std::move(path)}};
    ledger.on_commit(naming::session(1), message);
  }
  void release(std::uint64_t tag, std::uint64_t claim) {
    ledger.on_release(naming::session(tag), Release{naming::lease(tag, claim)});
  }
  void renew(std::uint64_t tag, std::uint64_t claim, bool want = true) {
    Renew message;
    message.leases = {{naming::lease(tag, claim), want}};
    ledger.on_renew(naming::session(tag), message, now);
  }
  Gradient gradient_from_below(std::uint64_t serial, std::vector<EntryName> path) {
    Gradient message;
    message.microbatch = naming::id(serial);
    message.path = std::move(path);
    for (const EntryName& element : message.path) message.tags.emplace_back(element.serial);
    message.loss_sum = 4;
    message.targets = 1;
    return message;
  }

  std::optional<EntryState> state(EntrySerial serial) const {
    const auto* entry = ledger.entries().find(serial);
    return entry == nullptr ? std::nullopt : std::optional(entry->state);
  }
  template <class T>
  std::vector<T> take_sent(std::uint64_t tag) {  // what it told that session since the last call
    std::vector<T> result;
    std::erase_if(sent, [&](const Sent& item) {
      const T* message = std::get_if<T>(&item.message);
      if (item.to != naming::session(tag) || message == nullptr) return false;
      result.push_back(*message);
      return true;
    });
    return result;
  }
  bool told_busy(std::uint64_t tag, BusyReason why) {
    const auto busy = take_sent<Busy>(tag);
    return busy.size() == 1 && busy[0].reason == why;
  }

  TimePoint now = naming::at(Duration(0));
  WeightStamp stamp = 0;
  TransferId transfer = 0;
  std::vector<Sent> sent;
  std::vector<TransferId> refused;
  std::vector<EntrySerial> discarded;
  std::map<EventKind, std::uint64_t> written;
  std::set<EntrySerial> settled, dropped;
  bool link_up = true;
  Neighbours neighbours{links(), self()};
  Courier courier;
  Windows windows;
  EntryCredits credits;
  Ledger ledger;

 private:
  LedgerPort& port() { return *this; }
  HopOwner& owner() { return *this; }
  Links& links() { return *this; }
  static LedgerOptions options(std::uint16_t stage, std::uint16_t stages) {
    LedgerOptions result;
    result.self = self();
    result.stage = StageId(stage);
    result.next = route_of(result.stage, stages).next;
    result.tag_of = [](const MicrobatchId& microbatch, EntrySerial serial) { return 100 * microbatch.serial + serial; };
    return result;
  }
  void send(const Session& to, Message message) override { sent.push_back({to, std::move(message)}); }
  bool ask_trainer(Waiting message) override {
    if (link_up) sent.push_back({naming::session(1), message});
    return link_up;
  }
  bool send_gradient(const Session& to, Gradient message, EntrySerial) override {
    if (link_up) sent.push_back({to, std::move(message)});
    return link_up;
  }
  void refuse_frames(const Session&, TransferId id) override { refused.push_back(id); }
  void discard(EntrySerial serial) override { discarded.push_back(serial); }
  void write(const EventRecord& event) override { ++written[event.event]; }  // serves both ports
  // HopOwner
  std::vector<Bytes> frames_of(const Session&, const Forward&, bool) override { return std::vector<Bytes>(2); }
  void on_branch(const MicrobatchId&, const Session&, const Lease&, BranchEnd) override {}
  void on_won(const MicrobatchId& id, const Gradient& gradient, std::vector<Bytes>) override {
    ledger.gradient_arrived(id, gradient);
  }
  void on_parked(const MicrobatchId&, StageId, bool) override {}
  // Links
  void learn(const PeerId&, Whereabouts) override {}
  Result<TransferId> send(const PeerId& peer, Message message, std::vector<Bytes> frames) override {
    if (!link_up) return make_error(ErrorCode::kUnreachable, "no link");
    sent.push_back({naming::session(peer.bytes[0]), std::move(message)});
    return frames.empty() ? 0 : ++transfer;
  }
  void drop(const PeerId&, TransferId) override {}
  void refuse(const PeerId&, TransferId id) override { refused.push_back(id); }
  std::optional<Remote> remote(const PeerId&) const override { return std::nullopt; }
  std::uint64_t ahead_of(const PeerId&, TransferId) const override { return 0; }
  LinkStats stats(const PeerId&) const override { return {}; }
};

}  // namespace shoal
