// Which ports a wire takes by itself, and what becomes of one whose port somebody else holds.
#include "transport/zmq/lasting_ports.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>

#include "common/host_port.h"
#include "common/os/posix_file.h"
#include "common/os/thread_loop.h"
#include "transport/zmq/zmq_wire.h"

namespace shoal {
namespace {

sockaddr_in on_loopback(std::uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

std::optional<Descriptor> bound(int type, std::uint16_t port) {
  Descriptor socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  const sockaddr_in address = on_loopback(port);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return std::nullopt;
  return socket;
}

// An established connection whose source port is `port`, as the kernel gives one to any program that connects.
class Borrower {
 public:
  explicit Borrower(std::uint16_t port) : listener_(bound(SOCK_STREAM, 0)), connection_(bound(SOCK_STREAM, port)) {
    if (!listener_ || !connection_) return;
    sockaddr_in there = {};
    socklen_t size = sizeof there;
    const linger gone_at_once{1, 0};  // no TIME_WAIT: the test would have to wait for it
    holds_ = ::listen(listener_->get(), 1) == 0 &&
             ::getsockname(listener_->get(), reinterpret_cast<sockaddr*>(&there), &size) == 0 &&
             ::connect(connection_->get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0 &&
             ::setsockopt(connection_->get(), SOL_SOCKET, SO_LINGER, &gone_at_once, sizeof gone_at_once) == 0;
  }
  bool holds() const { return holds_; }
  void give_back() { connection_.reset(); }

 private:
  std::optional<Descriptor> listener_, connection_;
  bool holds_ = false;
};

// The first of a free pair. A port whose earlier connections are in TIME_WAIT is free to a listener with SO_REUSEADDR
// and to nobody else; the tests' own sockets need one that is free to all.
std::uint16_t drawn_port() {
  Rng rng(entropy_seed());
  for (int draw = 0; draw < 100; ++draw) {
    const auto port = draw_port_pair(rng, ephemeral_ports());
    if (port.ok() && bound(SOCK_STREAM, *port) && bound(SOCK_STREAM, static_cast<std::uint16_t>(*port + 1)))
      return *port;
  }
  ADD_FAILURE() << "no pair of ports is free";
  return 0;
}

ZmqWireOptions options_at(std::uint16_t port) {
  return {KeyPair::generate(), HostPort{"127.0.0.1", port}.text(), Admission::kOpen, {}};
}

TEST(LastingPortsTest, ReadsWhatTheKernelWrites) {
  EXPECT_EQ(parse_port_range("32768\t60999\n").value(), (PortRange{32768, 60999}));
  EXPECT_EQ(parse_port_range("1 65535").value(), (PortRange{1, 65535}));
  EXPECT_EQ(parse_port_range("  40000   40000 ").value(), (PortRange{40000, 40000}));
}

TEST(LastingPortsTest, AnyOtherTextIsMalformed) {
  for (const char* text : {"", "\n", "32768", "32768\n60999", "32768 ", "a b", "32768 b", "60999 32768", "0 60999",
                           "32768 65536", "-1 5", "32768,60999", "32768 60999 1", "32768 60999x", "0x10 0x20"}) {
    const auto range = parse_port_range(text);
    ASSERT_FALSE(range.ok()) << text;
    EXPECT_EQ(range.code(), ErrorCode::kMalformed) << text;
  }
}

TEST(LastingPortsTest, NoCandidateTouchesTheEphemeralRange) {
  for (const PortRange range : {kLinuxEphemeralPorts, PortRange{32767, 61000}, PortRange{16000, 65535},
                                PortRange{1024, 40001}, PortRange{49152, 65535}, PortRange{1, 2}}) {
    const auto candidates = port_candidates(range);
    ASSERT_GE(candidates.size(), 256u);
    for (const std::uint16_t port : candidates) {
      EXPECT_EQ(port % 2, 0) << "two pairs would overlap";
      EXPECT_GE(port, 10'000);
      EXPECT_FALSE(range.holds(port) || range.holds(static_cast<std::uint16_t>(port + 1))) << port;
    }
  }
}

TEST(LastingPortsTest, WhereTheRangeLeavesNothingAnyPairWillDo) {
  for (const PortRange range : {PortRange{1024, 65535}, PortRange{1, 65535}, PortRange{10'100, 65'500}})
    EXPECT_GT(port_candidates(range).size(), 20'000u);
}

TEST(LastingPortsTest, ADrawnPairIsFreeAndDrawsDiffer) {
  Rng rng(7);
  std::vector<std::uint16_t> drawn;
  for (int i = 0; i < 20; ++i) {
    const auto port = draw_port_pair(rng, kLinuxEphemeralPorts);
    ASSERT_TRUE(port.ok()) << port.error().message;
    EXPECT_FALSE(kLinuxEphemeralPorts.holds(*port));
    drawn.push_back(*port);
  }
  std::sort(drawn.begin(), drawn.end());
  EXPECT_GT(std::unique(drawn.begin(), drawn.end()) - drawn.begin(), 15);
}

TEST(LastingPortsTest, APairIsFreeOnlyWhenAllOfItIs) {
  const std::uint16_t port = drawn_port(), next = static_cast<std::uint16_t>(port + 1);
  EXPECT_TRUE(port_pair_is_free(port));
  for (const auto& [type, taken] : {std::pair{SOCK_STREAM, port}, {SOCK_STREAM, next}, {SOCK_DGRAM, port}}) {
    const auto holder = bound(type, taken);
    ASSERT_TRUE(holder.has_value());
    EXPECT_FALSE(port_pair_is_free(port)) << type << " " << taken - port;
  }
  EXPECT_TRUE(port_pair_is_free(port));
}

TEST(LastingPortsTest, AWireThatMayChooseTakesAPairThatNoOutgoingConnectionGets) {
  ThreadLoop loop;
  const auto wire = make_zmq_wire(loop, options_at(0));
  ASSERT_TRUE(wire.ok()) << wire.error().message;
  const HostPort address = parse_host_port((*wire)->listening_address()).value();
  EXPECT_EQ(address.port % 2, 0);
  const PortRange range = ephemeral_ports();
  if (range.first > 11'000) {
    EXPECT_FALSE(range.holds(address.port)) << address.port;
  }
  const auto on_bulk_port = make_zmq_wire(loop, options_at(static_cast<std::uint16_t>(address.port + 1)));
  ASSERT_FALSE(on_bulk_port.ok()) << "the bulk lane's port is the next one";
  EXPECT_EQ(on_bulk_port.code(), ErrorCode::kBusy);
}

TEST(LastingPortsTest, APortThatAnOutgoingConnectionHoldsIsBusyAndTakenOnceItIsGivenBack) {
  for (const int lane : {0, 1}) {  // P, and P + 1 of the bulk lane
    const std::uint16_t port = drawn_port();
    Borrower borrower(static_cast<std::uint16_t>(port + lane));
    ASSERT_TRUE(borrower.holds());
    ThreadLoop loop;
    const auto refused = make_zmq_wire(loop, options_at(port));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.code(), ErrorCode::kBusy);
    EXPECT_NE(refused.error().message.find("port " + std::to_string(port + lane)), std::string::npos);
    int told = 0;
    const auto made = make_zmq_wire_when_free(loop, options_at(port), 20s, [&](const Error& error) -> Status {
      EXPECT_EQ(error.code, ErrorCode::kBusy);
      ++told;
      borrower.give_back();
      return {};
    });
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ(told, 1);
    EXPECT_EQ((*made)->listening_address(), HostPort({"127.0.0.1", port}).text());
  }
}

TEST(LastingPortsTest, TheWaitForAPortEndsAtItsLimitAndBeforeItBegins) {
  const std::uint16_t port = drawn_port();
  const auto holder = bound(SOCK_STREAM, port);
  ASSERT_TRUE(holder.has_value());
  ThreadLoop loop;
  int told = 0;
  const auto late = make_zmq_wire_when_free(loop, options_at(port), 600ms, [&](const Error&) -> Status {
    ++told;
    return {};
  });
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.code(), ErrorCode::kBusy);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(late.error().message.find("HINT"), std::string::npos) << "the caller knows a better one";
  const TimePoint begin = monotonic_now();
  const auto refused = make_zmq_wire_when_free(
      loop, options_at(port), 100s, [](const Error&) -> Status { return make_error(ErrorCode::kGone, "no use"); });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), ErrorCode::kGone);
  EXPECT_LT(monotonic_now() - begin, 50s);
}

TEST(LastingPortsTest, AWireThatEndsLeavesItsPortToTheNextOne) {
  ThreadLoop loop;
  std::string address = "127.0.0.1:0";
  for (int life = 0; life < 20; ++life) {
    const auto wire = make_zmq_wire(loop, {KeyPair::generate(), address, Admission::kOpen, {}});
    ASSERT_TRUE(wire.ok()) << "life " << life << ": " << wire.error().message;
    address = (*wire)->listening_address();
  }
}

}  // namespace
}  // namespace shoal
