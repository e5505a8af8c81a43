#pragma once
#include <array>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include "common/os/thread_loop.h"
#include "tests/transport/silent_port.h"
#include "tests/transport/wire_lab.h"
#include "transport/zmq/zmq_wire.h"

namespace shoal {

// The loop runs on the test's own thread, while run_until() waits.
class ZmqLab final : public WireLab {
 public:
  EventLoop& loop() override { return loop_; }
  static KeyPair key(int index) {
    std::array<std::uint8_t, 32> seed{};
    seed.fill(static_cast<std::uint8_t>(40 + index));
    return KeyPair::from_seed(seed);
  }
  static RunId run() { return {KeyPair::from_seed({7}).id().bytes}; }
  PeerId peer(int index) override { return key(index).id(); }
  ZmqWire& wire(int index) override {
    auto& wire = wires_[index];
    if (wire) return *wire;
    ZmqWireOptions options{key(index),
                           addresses_.contains(index) ? addresses_[index] : Address("127.0.0.1:0"),
                           admitted_[index].empty() ? Admission::kOpen : Admission::kKeys,
                           admitted_[index],
                           favoured_[index],
                           run()};
    auto made = make_zmq_wire(loop_, options);
    // GoogleTest makes it the failure of this test; a check that fails would end the tests behind it too.
    if (!made.ok()) throw std::runtime_error("wire " + std::to_string(index) + ": " + made.error().message);
    wire = std::move(made).value();
    addresses_[index] = wire->listening_address();
    return *wire;
  }
  Address address(int index) override { return wire(index).listening_address(); }
  Address nobody() override { return "127.0.0.1:1"; }
  Address silent() override {
    const std::uint16_t port = listen_in_silence(silent_);
    if (port == 0) throw std::runtime_error("no port that answers nobody");
    return "127.0.0.1:" + std::to_string(port);
  }
  void admit_only(int index, std::vector<PeerId> admitted) override { admitted_[index] = std::move(admitted); }
  // Of a wire that is not made yet.
  void favour_from_start(int index, std::vector<PeerId> favoured) { favoured_[index] = std::move(favoured); }
  void destroy(int index) override { wires_[index].reset(); }
  bool run_until(const std::function<bool()>& done, Duration limit) override {
    const TimePoint end = monotonic_now() + limit;
    bool held = false;
    std::function<void()> look = [&] {
      held = done();
      if (held || monotonic_now() >= end) return loop_.stop();
      timer_ = loop_.after(1ms, look);
    };
    timer_ = loop_.after(0ms, look);
    loop_.run();
    loop_.cancel(timer_);
    return held;
  }

 private:
  ThreadLoop loop_;
  TimerId timer_ = 0;
  Descriptor silent_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::map<int, Address> addresses_;  // a restarted end takes its port again
  std::map<int, std::vector<PeerId>> admitted_, favoured_;
  std::map<int, std::unique_ptr<ZmqWire>> wires_;
};

}  // namespace shoal
