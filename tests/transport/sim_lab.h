#pragma once
#include <map>
#include <memory>
#include <string>

#include "sim/sim_loop.h"
#include "sim/sim_network.h"
#include "tests/transport/wire_lab.h"

namespace shoal {

class SimLab final : public WireLab {
 public:
  explicit SimLab(std::uint64_t seed = 1) : network_(loop_, Rng(seed)) {}
  EventLoop& loop() override { return loop_; }
  SimLoop& sim_loop() { return loop_; }
  SimNetwork& network() { return network_; }
  PeerId peer(int index) override {
    PeerId id;
    id.bytes[0] = static_cast<std::uint8_t>(10 + index);
    id.bytes[31] = 1;
    return id;
  }
  Wire& wire(int index) override {
    auto& wire = wires_[index];
    if (!wire) wire = network_.make_wire(peer(index), name_of_host(index), admitted_[index]);
    return *wire;
  }
  Address address(int index) override {
    (void)wire(index);
    return name_of_host(index);
  }
  Address nobody() override { return "nobody:1"; }
  Address silent() override {
    network_.nats().set("silent:1", sim_firewall());
    return "silent:1";
  }
  void admit_only(int index, std::vector<PeerId> admitted) override {
    admitted_[index] = {admitted.begin(), admitted.end()};
  }
  void destroy(int index) override { wires_[index].reset(); }
  bool run_until(const std::function<bool()>& done, Duration limit) override {
    const TimePoint end = loop_.now() + limit;
    if (loop_.run_until_true(done, end)) return true;
    loop_.run_until(end);
    return done();
  }

 private:
  static Address name_of_host(int index) { return "host" + std::to_string(index) + ":1"; }

  SimLoop loop_;
  SimNetwork network_;
  std::map<int, std::set<PeerId>> admitted_;
  std::map<int, std::unique_ptr<Wire>> wires_;
};

// Ends that nobody dials: each is called at a relay.
class RelayedSimLab final : public WireLab {
 public:
  static constexpr double kBytesPerSecond = 20e6;
  RelayedSimLab() { network().relays().add("relay:443", "relay:1", kBytesPerSecond); }
  EventLoop& loop() override { return inner_.loop(); }
  SimNetwork& network() { return inner_.network(); }
  PeerId peer(int index) override { return inner_.peer(index); }
  Wire& wire(int index) override {
    Wire& wire = inner_.wire(index);
    if (!called_.insert(index).second) return wire;
    network().nats().set(inner_.address(index), sim_firewall());
    wire.be_called_at({"relay:443"});
    inner_.run_for(1s);
    return wire;
  }
  Address address(int index) override {
    (void)wire(index);
    return "via/relay:443";
  }
  Address nobody() override { return "via/nobody:443"; }
  Address silent() override { return "via/" + inner_.silent(); }
  bool relayed() const override { return true; }
  void admit_only(int index, std::vector<PeerId> admitted) override { inner_.admit_only(index, std::move(admitted)); }
  void destroy(int index) override {
    called_.erase(index);
    inner_.destroy(index);
  }
  bool run_until(const std::function<bool()>& done, Duration limit) override { return inner_.run_until(done, limit); }

 private:
  SimLab inner_;
  std::set<int> called_;
};

}  // namespace shoal
