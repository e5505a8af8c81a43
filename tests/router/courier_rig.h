#pragma once
// A courier with everything around it recorded. The holder is session 1, peers of the next stage are 10, 11, 12.
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "names.h"
#include "router/courier.h"

namespace shoal {

// Asks peers in the order of the list, so that tests can name them.
class FirstOfList final : public RoutingPolicy {
 public:
  std::optional<Session> pick(SampleId, std::span<const Candidate> candidates) const override {
    return candidates.empty() ? std::nullopt : std::optional(candidates.front().session);
  }
};

class CourierRig : public testing::Test, private CourierPort {
 protected:
  struct Out {
    Session to;
    Message message;
  };

  static constexpr std::uint64_t kA = 10, kB = 11, kC = 12;

  void open(std::uint64_t serial = 0, std::optional<GradientHint> hint = {}) {
    HopSpec spec;
    spec.microbatch = naming::id(serial);
    spec.sample = SampleId(serial);
    spec.to = StageId(1);
    spec.above = {naming::session(99), naming::session(1)};
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
  void busy(std::uint64_t tag, const Lease& lease, BusyReason why = BusyReason::kNoCredit) {
    courier.on_busy(naming::session(tag), Busy{lease, why, 0}, now);
  }
  void progress(std::uint64_t tag, const Lease& lease, HopPhase phase) {
    courier.on_heard(naming::session(tag), now);
    courier.on_progress(naming::session(tag), Progress{{{lease, phase}}, 0}, now);
  }
  void gradient(std::uint64_t tag, const Lease& lease, std::uint64_t token_serial = 5) {
    Gradient message;
    message.lease = lease;
    message.microbatch = naming::id(0);
    message.path = {naming::entry_name(tag, token_serial)};
    if (courier.wants(naming::session(tag), message, now)) courier.on_gradient(naming::session(tag), message, {}, now);
  }
  // Time passes in ticks; `alive` peers are heard all the time.
  void pass(Duration time, std::vector<std::uint64_t> alive = {kA, kB, kC}) {
    for (const TimePoint end = now + time; now < end;) {
      now += 20ms;
      for (const std::uint64_t tag : alive) courier.on_heard(naming::session(tag), now);
      courier.tick(now);
    }
  }
  void measure(Duration took) {  // of everybody, so that deadlines are 3 x this
    for (const std::uint64_t tag : {kA, kB, kC})
      for (int i = 0; i < 8; ++i)
        for (const HopKind kind : {HopKind::kForward, HopKind::kBackward})
          rates.observe(naming::session(tag), kind, took);
  }

  TimePoint now = naming::at(0s);
  std::vector<Session> serving = {naming::session(kA), naming::session(kB), naming::session(kC)};
  std::vector<Out> out;
  std::vector<TransferId> dropped;
  std::vector<std::pair<MicrobatchId, bool>> parked;
  std::vector<Gradient> won;
  std::vector<bool> keys;                           // of the Forwards sent: as key frames
  std::vector<std::pair<Session, BranchEnd>> ends;  // what became of their frames
  std::optional<Session> unreachable;
  TransferId next_transfer = 1;
  FirstOfList policy;
  HopRates rates;
  Courier courier{port(), policy, rates, naming::session(1)};

 private:
  CourierPort& port() { return *this; }
  std::vector<Session> candidates(StageId, TimePoint) override { return serving; }
  Result<TransferId> send_forward(const Session& to, Forward message, bool key) override {
    if (unreachable == to) return make_error(ErrorCode::kUnreachable, "no link");
    keys.push_back(key);
    out.push_back({to, std::move(message)});
    return next_transfer++;
  }
  void send(const Session& to, Message message) override { out.push_back({to, std::move(message)}); }
  void on_branch(const MicrobatchId&, const Session& to, const Lease& lease, BranchEnd end) override {
    EXPECT_EQ(lease.session, naming::session(1));
    ends.emplace_back(to, end);
  }
  void drop_transfer(const Session&, TransferId transfer) override { dropped.push_back(transfer); }
  void on_won(const MicrobatchId&, const Gradient& gradient, std::vector<Bytes>) override { won.push_back(gradient); }
  void on_parked(const MicrobatchId& microbatch, StageId, bool is) override { parked.emplace_back(microbatch, is); }
  void write(const EventRecord&) override {}
};

}  // namespace shoal
