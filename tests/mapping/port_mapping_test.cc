#include "transport/mapping/port_mapping.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "common/os/posix_file.h"
#include "common/os/tcp_place.h"
#include "common/os/thread_loop.h"
#include "tests/mapping/router_answers.h"

namespace shoal {
namespace {

using namespace std::chrono_literals;
using test::Datagram;

// A router on loopback that answers as `answer` says.
class UdpRouter {
 public:
  using Answer = std::function<Datagram(ByteView request)>;
  explicit UdpRouter(Answer answer) : answer_(std::move(answer)), socket_(::socket(AF_INET, SOCK_DGRAM, 0)) {
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    place_ = own_place(socket_).value();
    thread_ = std::thread([this] { run(); });
  }
  ~UdpRouter() {
    stopping_ = true;
    thread_.join();
  }
  HostPort place() const { return place_; }
  std::vector<Datagram> heard() const {
    const std::lock_guard lock(mutex_);
    return heard_;
  }

 private:
  void run() {
    while (!stopping_) {
      pollfd waited{socket_.get(), POLLIN, 0};
      if (::poll(&waited, 1, 10) < 1) continue;
      Datagram request(1100);
      sockaddr_in from = {};
      socklen_t size = sizeof from;
      const ssize_t got =
          ::recvfrom(socket_.get(), request.data(), request.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (got < 0) continue;
      request.resize(static_cast<std::size_t>(got));
      {
        const std::lock_guard lock(mutex_);
        heard_.push_back(request);
      }
      const Datagram answer = answer_(request);
      if (!answer.empty())
        ::sendto(socket_.get(), answer.data(), answer.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
    }
  }

  const Answer answer_;
  Descriptor socket_;
  HostPort place_;
  mutable std::mutex mutex_;
  std::vector<Datagram> heard_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

Datagram granted(ByteView request) {
  return test::pcp_answer(request, 0, test::inner_port_of(request), "198.51.100.9", test::lifetime_of(request));
}

TEST(PortMappingTest, MapsAndGivesBack) {
  UdpRouter router(granted);
  ThreadLoop loop;
  {
    PortMapping mapping(loop, {.ports = {4700, 4701}, .addresses = {}, .router = router.place()},
                        [&loop] { loop.stop(); });
    loop.run();
    const auto mapped = mapping.now();
    ASSERT_EQ(mapped.size(), 1u);
    EXPECT_EQ(mapped[0].by, "PCP");
    EXPECT_EQ(mapped_addresses(mapped, 4700), std::vector<std::string>{"198.51.100.9:4700"});
    EXPECT_EQ(mapping_text(mapped), "mapped by PCP");
  }
  const auto heard = router.heard();
  ASSERT_GE(heard.size(), 4u);
  EXPECT_EQ(test::lifetime_of(heard[heard.size() - 2]), 0u);
  EXPECT_EQ(test::lifetime_of(heard.back()), 0u);
}

TEST(PortMappingTest, ARouterThatAnswersNothingKeepsNobody) {
  UdpRouter router([](ByteView) { return Datagram(); });
  ThreadLoop loop;
  PortMapping mapping(loop, {.ports = {4700}, .addresses = {}, .router = router.place()}, [] {});
  EXPECT_FALSE(mapping.await(10ms).at(0).settled());
}

TEST(PortMappingTest, NobodyAtTheRoutersPortIsKnownAtOnce) {
  HostPort nobody;
  {
    const UdpRouter router([](ByteView) { return Datagram(); });
    nobody = router.place();
  }
  ThreadLoop loop;
  PortMapping mapping(loop, {.ports = {4700}, .addresses = {}, .router = nobody}, [] {});
  EXPECT_EQ(mapping.await(60s).at(0).why, "the router speaks neither PCP nor NAT-PMP");
}

TEST(PortMappingTest, NoRouterIsAskedForAnAddressThatNeedsNone) {
  ThreadLoop loop;
  for (const std::string address : {"198.51.100.4:4700", "127.0.0.1:4700", "via/198.51.100.4:443", "[::1]:4700"}) {
    PortMapping mapping(loop, {.ports = {4700, 4701}, .addresses = {address}}, [] {});
    EXPECT_TRUE(mapping.await(60s).empty()) << address;
  }
}

TEST(PortMappingTest, OtherNumbersAreTold) {
  const Mapping mapping{"PCP", "198.51.100.9", {{4700, 5700}, {4701, 5733}}, ""};
  EXPECT_EQ(mapped_addresses({mapping}, 4700), std::vector<std::string>{"198.51.100.9:5700+5733"});
  EXPECT_TRUE(mapped_addresses({mapping}, 4701).empty()) << "nothing is known of the port behind it";
  const Mapping v6{"PCP", "2001:db8::7", {{4700, 4700}, {4701, 4701}}, ""};
  EXPECT_EQ(mapped_addresses({mapping, v6}, 4700).back(), "[2001:db8::7]:4700");
  EXPECT_EQ(mapping_text({{"", "", {}, "the router refuses"}, v6}), "the router refuses; mapped by PCP");
}

TEST(PortMappingTest, NothingIsAskedWithoutANextPort) {
  EXPECT_EQ(lane_ports(4700), (std::vector<std::uint16_t>{4700, 4701}));
  EXPECT_TRUE(lane_ports(65535).empty()) << "port 0 stands for all of them";
  ThreadLoop loop;
  PortMapping mapping(loop, {.ports = {}, .addresses = {"192.168.1.7:65535"}}, [] {});
  EXPECT_TRUE(mapping.await(60s).empty());
}

TEST(PortMappingTest, WhatIsMappedIsToldOnceAndFirst) {
  EXPECT_EQ(beside({"1.2.3.4:5", "[2001:db8::7]:4700"}, {"192.168.1.7:4700", "[2001:db8::7]:4700"}),
            (std::vector<std::string>{"1.2.3.4:5", "[2001:db8::7]:4700", "192.168.1.7:4700"}));
}

}  // namespace
}  // namespace shoal
