// A wire with caps: the contracts over it, and what the caps do, in virtual time.
#include "transport/capped_wire.h"

#include <map>

#include "tests/transport/sim_lab.h"
#include "tests/transport/transport_contract.h"
#include "tests/transport/wire_contract.h"
#include "tests/transport/zmq_lab.h"

namespace shoal {
namespace {

constexpr double kHighCap = 1e9;
constexpr double kSharedMeter = 0.2;  // a mean of rates, which says more where chunks of other links lie between
constexpr std::uint64_t kPending = 2u << 20;  // so much waits in front of each link that is kept busy

template <class Inner>
class CappedLab final : public WireLab {
 public:
  EventLoop& loop() override { return inner_.loop(); }
  PeerId peer(int index) override { return inner_.peer(index); }
  Wire& wire(int index) override {
    auto& wire = wires_[index];
    const LineCaps caps = caps_.contains(index) ? caps_[index] : LineCaps{kHighCap, kHighCap};
    if (!wire && caps.any()) wire = std::make_unique<CappedWire>(inner_.wire(index), loop(), caps);
    if (wire) return *wire;
    return inner_.wire(index);
  }
  Address address(int index) override {
    (void)wire(index);
    return inner_.address(index);
  }
  Address nobody() override { return inner_.nobody(); }
  Address silent() override { return inner_.silent(); }
  void admit_only(int index, std::vector<PeerId> admitted) override { inner_.admit_only(index, std::move(admitted)); }
  void destroy(int index) override {
    wires_[index].reset();
    inner_.destroy(index);
  }
  bool run_until(const std::function<bool()>& done, Duration limit) override { return inner_.run_until(done, limit); }

  // Before its wire() is called first.
  void set_caps(int index, const LineCaps& caps) { caps_[index] = caps; }
  Inner& inner() { return inner_; }

 private:
  Inner inner_;
  std::map<int, LineCaps> caps_;
  std::map<int, std::unique_ptr<CappedWire>> wires_;
};

using CappedSimLab = CappedLab<SimLab>;
using CappedZmqLab = CappedLab<ZmqLab>;

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(CappedSim, WireContract, CappedSimLab);
INSTANTIATE_TYPED_TEST_SUITE_P(CappedSim, TransportContract, CappedSimLab);
INSTANTIATE_TYPED_TEST_SUITE_P(CappedZmq, WireContract, CappedZmqLab);
INSTANTIATE_TYPED_TEST_SUITE_P(CappedZmq, TransportContract, CappedZmqLab);

namespace {

// Host 0 has the caps; the others have none. All are 20 ms apart, without bounds of their own.
class CappedWireTest : public testing::Test {
 protected:
  static constexpr Duration kRoundTrip = 40ms;

  void start(int others, const LineCaps& caps) {
    SimHostShape shape;
    shape.latency = kRoundTrip / 4;
    lab.inner().network().set_default_shape(shape);
    lab.set_caps(0, caps);
    ends.resize(static_cast<std::size_t>(others) + 1);
    for (int i = 0; i <= others; ++i) {
      if (i > 0) lab.set_caps(i, {});
      start_transport(ends[i], lab, i);
    }
    for (int i = 1; i <= others; ++i) {
      ends[0].transport->learn(lab.peer(i), {{lab.address(i)}});
      ends[0].transport->dial(lab.peer(i));
    }
    ASSERT_TRUE(lab.run_until([&] { return ends[0].log.ups.size() == static_cast<std::size_t>(others); }, 10s));
    lab.inner().network().set_watch([this](const Address& from, Lane, const Bytes& message) {
      if (from == lab.address(0)) sent += message.size() + CappedWire::kFramingBytes;
    });
  }
  void TearDown() override { stop(); }
  void stop() {
    lab.loop().cancel(timer);
    for (TransportEnd& end : ends) end.transport.reset();
    for (int i = 0; i < static_cast<int>(ends.size()); ++i) lab.destroy(i);
    ends.clear();
    busy.clear();
  }
  // From now on frames wait at `from` for `to` all the time.
  void keep_busy(int from, int to) { busy.emplace_back(from, to); }
  void run_busy(Duration time) {
    feed();
    lab.run_for(time);
    lab.loop().cancel(timer);
  }
  struct Figures {
    double sent = 0, received = 0;                  // of host 0, bytes a second
    std::map<std::pair<int, int>, double> metered;  // the mean of what each busy link says of its line
  };
  Figures measure(Duration time) {
    Figures seen;
    const int parts = static_cast<int>(time / 100ms);
    sent = 0;
    const std::uint64_t before = received();
    for (int i = 0; i < parts; ++i) {
      run_busy(100ms);
      for (const auto& [from, to] : busy) seen.metered[{from, to}] += stats(from, to).bytes_per_second / parts;
    }
    seen.sent = static_cast<double>(sent) / seconds_of(time);
    seen.received = static_cast<double>(received() - before) / seconds_of(time);
    return seen;
  }
  std::uint64_t received() {  // by the links of host 0
    std::uint64_t bytes = 0;
    for (int i = 1; i < static_cast<int>(ends.size()); ++i) bytes += stats(0, i).received_bytes;
    return bytes;
  }
  LinkStats stats(int from, int to) { return ends[from].transport->stats(lab.peer(to)); }
  std::uint64_t frame_bytes(int end) {
    std::uint64_t bytes = 0;
    for (const TransportLog::Frames& got : ends[end].log.frames)
      if (got.frames.ok()) bytes += got.frames->front().size();
    return bytes;
  }

  CappedSimLab lab;
  std::vector<TransportEnd> ends;
  std::vector<std::pair<int, int>> busy;
  std::uint64_t sent = 0;  // by host 0, when they are given to the line
  TimerId timer = 0;

 private:
  void feed() {
    for (const auto& [from, to] : busy)
      while (stats(from, to).up && stats(from, to).queued_bytes < kPending)
        ASSERT_TRUE(ends[from].transport->send(lab.peer(to), Have{}, {frame_}).ok());
    timer = lab.loop().after(10ms, [this] { feed(); });
  }
  Bytes frame_ = numbered_bytes(96u << 10, 1).summed();
};

// The rate of host 0's line, out or in, while bulk fills it to or from each of 1 and of 4 others.
TEST_F(CappedWireTest, WhatIsSentKeepsToItsCapAndFillsItAndControlDoesNotWait) {
  for (const int others : {1, 4}) {
    for (const double cap : {62.5e3, 2.5e6, 25e6}) {
      SCOPED_TRACE(std::to_string(cap) + " to " + std::to_string(others));
      start(others, {cap, 0});
      for (int i = 1; i <= others; ++i) keep_busy(0, i);
      run_busy(10s);
      const Figures seen = measure(20s);
      EXPECT_NEAR(seen.sent / cap, 1, 0.02);
      for (int i = 1; i <= others; ++i) {
        EXPECT_NEAR(seen.metered.at(std::pair(0, i)) * others / cap, 1, others == 1 ? 0.1 : kSharedMeter) << i;
        EXPECT_LE(stats(0, i).rtt, kRoundTrip + 2ms) << i;
      }
      stop();
    }
  }
}

TEST_F(CappedWireTest, WhatComesKeepsToItsCapAndFillsItAndSendersSeeASlowLine) {
  for (const int others : {1, 4}) {
    for (const double cap : {62.5e3, 2.5e6, 25e6}) {
      SCOPED_TRACE(std::to_string(cap) + " from " + std::to_string(others));
      start(others, {0, cap});
      for (int i = 1; i <= others; ++i) keep_busy(i, 0);
      run_busy(10s);
      const Figures seen = measure(20s);
      EXPECT_NEAR(seen.received / cap, 1, 0.03);
      for (int i = 1; i <= others; ++i) {
        EXPECT_NEAR(seen.metered.at(std::pair(i, 0)) * others / cap, 1, others == 1 ? 0.1 : kSharedMeter) << i;
        EXPECT_LE(stats(i, 0).rtt, kRoundTrip + 2ms) << i;
      }
      stop();
    }
  }
}

TEST_F(CappedWireTest, BothWaysHaveTheirOwnCapsAndLinksEqualParts) {
  start(2, {1e6, 2e6});
  for (const int i : {1, 2}) {
    keep_busy(0, i);
    keep_busy(i, 0);
  }
  run_busy(10s);
  const std::uint64_t before[] = {frame_bytes(1), frame_bytes(2)};
  const Figures seen = measure(30s);
  EXPECT_NEAR(seen.sent / 1e6, 1, 0.02);
  EXPECT_NEAR(seen.received / 2e6, 1, 0.03);
  for (const int i : {1, 2}) EXPECT_NEAR(static_cast<double>(frame_bytes(i) - before[i - 1]) / 15e6, 1, 0.05) << i;
}

TEST_F(CappedWireTest, ControlIsPaidForByBulk) {
  start(1, {1e6, 0});
  keep_busy(0, 1);
  run_busy(5s);
  sent = 0;
  for (int i = 0; i < 50; ++i) {
    for (int k = 0; k < 200; ++k) (void)ends[0].transport->send(lab.peer(1), End{std::string(400, 'x')});
    run_busy(100ms);
  }
  EXPECT_NEAR(static_cast<double>(sent) / 5e6, 1, 0.03);
  EXPECT_GT(count_of<End>(ends[1].log), 9800u) << "and did not wait";
}

TEST_F(CappedWireTest, ALinkThatGoesDownTakesItsQueueAlongAndTheOthersHaveItsPart) {
  start(2, {1e6, 0});
  for (const int i : {1, 2}) keep_busy(0, i);
  run_busy(5s);
  lab.inner().network().cut(lab.address(0), lab.address(1));
  ASSERT_TRUE(lab.run_until([&] { return !ends[0].log.downs.empty() && !ends[1].log.downs.empty(); }, 10s));
  busy = {{0, 2}};
  run_busy(5s);
  const std::uint64_t before = frame_bytes(2);
  run_busy(10s);
  EXPECT_NEAR(static_cast<double>(frame_bytes(2) - before) / 10e6, 1, 0.03);
}

// Below byte credits, which no link goes beyond.
class CappedFloodTest : public testing::Test {
 protected:
  static constexpr int kWires = 26;
  void TearDown() override {
    for (int i = 0; i < kWires; ++i) lab.destroy(i);
  }
  WireLog log[kWires];
  CappedSimLab lab;
};

TEST_F(CappedFloodTest, WhatIsSentWithoutCreditsIsHeldToABoundAndThenEndedByName) {
  lab.set_caps(0, {0, 1e6});
  lab.set_caps(1, {});
  for (const int i : {0, 1}) lab.wire(i).set_listener(&log[i]);
  const ConnectionId connection = lab.wire(1).connect(lab.peer(0), lab.address(0));
  ASSERT_TRUE(lab.run_until([&] { return !log[1].ups.empty() && !log[0].ups.empty(); }, 10s));
  const Bytes chunk = numbered_bytes(limits::kChunkBytes, 1);
  std::uint64_t given = 0;
  while (log[1].downs.empty() && given < 4 * limits::kUnreadBytesMax) {
    while (lab.wire(1).send(connection, Lane::kBulk, chunk).ok()) given += chunk.size();
    lab.run_for(10ms);
  }
  ASSERT_EQ(log[0].downs.size(), 1u);
  EXPECT_EQ(log[0].downs[0].cause.code, ErrorCode::kTooLarge);
  EXPECT_EQ(lab.wire(0).refusals()[static_cast<std::size_t>(Refusal::kFlood)], 1u);
  EXPECT_EQ(log[1].downs.size(), 1u);
  EXPECT_GT(given, limits::kByteCreditsMax);
  const std::size_t seen = log[0].messages.size();
  lab.run_for(5s);
  EXPECT_EQ(log[0].messages.size(), seen) << "nothing comes of a connection that is over";
}

TEST_F(CappedFloodTest, WhatAllConnectionsSendWithoutCreditsIsHeldToOneBoundAndTheLargestIsEnded) {
  constexpr int kFloods = 24, kLittle = 25;  // the last wire sends as a link does
  constexpr std::uint64_t kEach = 2 * limits::kUnreadBytesMax / kFloods;
  lab.set_caps(0, {0, 32e3});
  lab.wire(0).set_listener(&log[0]);
  std::map<PeerId, std::uint64_t> given;
  const Bytes chunk = numbered_bytes(limits::kChunkBytes, 1);
  for (int i = 1; i <= kLittle; ++i) {
    lab.set_caps(i, {});
    lab.wire(i).set_listener(&log[i]);
    const ConnectionId connection = lab.wire(i).connect(lab.peer(0), lab.address(0));
    ASSERT_TRUE(lab.run_until([&] { return !log[i].ups.empty(); }, 10s));
    const std::uint64_t most = i == kLittle ? 2 * chunk.size() : kEach;
    for (std::uint64_t& bytes = given[lab.peer(i)]; bytes < most && log[i].downs.empty(); lab.run_for(10ms))
      while (bytes < most && lab.wire(i).send(connection, Lane::kBulk, chunk).ok()) bytes += chunk.size();
  }
  lab.run_for(1s);
  for (const WireLog::Down& down : log[0].downs) EXPECT_EQ(down.cause.code, ErrorCode::kTooLarge);
  EXPECT_EQ(lab.wire(0).refusals()[static_cast<std::size_t>(Refusal::kFlood)], log[0].downs.size());
  std::uint64_t held = 0;
  for (int i = 1; i <= kLittle; ++i)
    if (log[i].downs.empty()) held += given[lab.peer(i)];
  EXPECT_LE(held, limits::kUnreadBytesMax);
  EXPECT_GT(held, limits::kUnreadBytesMax / 2) << "and no more are ended than must be";
  EXPECT_TRUE(log[kLittle].downs.empty()) << "one that holds little stays";
}

// A listener that ends the connection, or the wire, from its callback.
struct EndsAtFirst final : Wire::Listener {
  std::function<void(ConnectionId)> on_first = [](ConnectionId) {};
  std::size_t messages = 0;
  void on_up(ConnectionId, const PeerId&, bool) override {}
  void on_bytes(ConnectionId connection, Lane, Bytes) override {
    if (++messages == 1) on_first(connection);
  }
  void on_writable(ConnectionId, Lane) override {}
  void on_down(ConnectionId, const Error&) override {}
};

TEST_F(CappedFloodTest, AConnectionOrTheWireMayEndInACallbackOfMessagesThatWaited) {
  for (const bool whole : {false, true}) {
    EndsAtFirst ends;
    lab.set_caps(0, {0, 1e6});
    lab.set_caps(1, {});
    ends.on_first = [&](ConnectionId connection) {
      if (whole)
        lab.destroy(0);
      else
        lab.wire(0).disconnect(connection);
    };
    lab.wire(0).set_listener(&ends);
    lab.wire(1).set_listener(&log[1]);
    log[1] = WireLog{};
    const ConnectionId connection = lab.wire(1).connect(lab.peer(0), lab.address(0));
    ASSERT_TRUE(lab.run_until([&] { return !log[1].ups.empty(); }, 10s));
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(lab.wire(1).send(connection, Lane::kBulk, numbered_bytes(100'000, 1)).ok());
    lab.run_for(3s);
    EXPECT_EQ(ends.messages, 1u) << whole;
    EXPECT_EQ(log[1].downs.size(), 1u) << whole;
  }
}

}  // namespace
}  // namespace shoal
