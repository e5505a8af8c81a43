// The program's own getsockopt; libzmq and pipes against every ICMP answer that a dial may get.
#include "transport/zmq/socket_errors.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

#include "common/os/posix_file.h"
#include "common/os/thread_loop.h"
#include "tests/transport/silent_port.h"
#include "transport/relay/relay_words.h"
#include "transport/zmq/relay_talk.h"
#include "transport/zmq/zmq_socket.h"

namespace shoal {
namespace {

TEST(SocketErrorsTest, AnAnswerThatEndsLibzmqIsToldAsARefusedConnection) {
  EXPECT_EQ(told_socket_error(ENOPROTOOPT), ECONNREFUSED);
  for (const int other : {0, ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT, EMSGSIZE, EOPNOTSUPP})
    EXPECT_EQ(told_socket_error(other), other);
}

TEST(SocketErrorsTest, LibzmqAsksOurs) {
  EXPECT_TRUE(asked_by_libraries());
  Dl_info ours = {}, found = {};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&told_socket_error), &ours), 0);
  ASSERT_NE(::dladdr(::dlsym(RTLD_DEFAULT, "getsockopt"), &found), 0);
  EXPECT_EQ(found.dli_fbase, ours.dli_fbase) << "it is that of " << found.dli_fname;
}

TEST(SocketErrorsTest, EverythingElseIsTheSystemsOwnAnswer) {
  const Descriptor one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int value = -1;
  socklen_t size = sizeof value;
  ASSERT_EQ(::getsockopt(one.get(), SOL_SOCKET, SO_TYPE, &value, &size), 0);
  EXPECT_EQ(value, SOCK_STREAM);
  ASSERT_EQ(::getsockopt(one.get(), SOL_SOCKET, SO_ERROR, &value, &size), 0);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(::getsockopt(-1, SOL_SOCKET, SO_ERROR, &value, &size), -1);
  EXPECT_EQ(errno, EBADF);
}

// ---- every ICMP code, in a network of the test's own ----

enum Fate : int { kAlive = 0, kNoNamespace = 77, kNothingHeard = 78, kNoSetup = 79 };

bool loopback_up() {
  const Descriptor any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  if (::ioctl(any.get(), SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  return ::ioctl(any.get(), SIOCSIFFLAGS, &request) == 0;
}

// The packet, with its IP header, of a SYN to the port; empty: none came.
std::vector<std::uint8_t> hear_syn(const Descriptor& raw_tcp, std::uint16_t port) {
  for (int packets = 0; packets < 64; ++packets) {
    std::vector<std::uint8_t> packet(2048);
    const ssize_t bytes = ::recv(raw_tcp.get(), packet.data(), packet.size(), 0);
    if (bytes < static_cast<ssize_t>(sizeof(iphdr) + sizeof(tcphdr))) return {};
    iphdr ip;
    tcphdr tcp;
    std::memcpy(&ip, packet.data(), sizeof ip);
    std::memcpy(&tcp, packet.data() + 4 * ip.ihl, sizeof tcp);
    packet.resize(static_cast<std::size_t>(bytes));
    if (tcp.syn != 0 && ntohs(tcp.dest) == port) return packet;
  }
  return {};
}

std::uint16_t internet_checksum(const std::vector<std::uint8_t>& bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) sum += static_cast<std::uint32_t>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

bool send_unreachable(const Descriptor& raw_icmp, int code, const std::vector<std::uint8_t>& about) {
  std::vector<std::uint8_t> message(8);
  message[0] = ICMP_DEST_UNREACH;
  message[1] = static_cast<std::uint8_t>(code);
  message.insert(message.end(), about.begin(), about.end());
  const std::uint16_t sum = internet_checksum(message);
  message[2] = static_cast<std::uint8_t>(sum >> 8);
  message[3] = static_cast<std::uint8_t>(sum);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::sendto(raw_icmp.get(), message.data(), message.size(), 0, reinterpret_cast<sockaddr*>(&to), sizeof to) ==
         static_cast<ssize_t>(message.size());
}

// A dial of libzmq's, and one of the pipe desk's, which `tell` has answered. kAlive: the dial ended.
Fate dial_by_libzmq(std::uint16_t port, const std::function<bool()>& tell) {
  ZmqContext context;
  const KeyPair key = KeyPair::generate();
  ZmqSocket socket = ZmqSocket::make(context, ZmqSocket::Kind::kDealer).value();
  socket.configure(Lane::kControl, key, false);
  socket.expect_peer(key.curve_public());
  if (!socket.start_monitor(context, "icmp").ok() || !socket.connect({"127.0.0.1", port}).ok()) return kNoSetup;
  if (!tell()) return kNoSetup;
  for (const TimePoint end = monotonic_now() + 5s; monotonic_now() < end;) {
    zmq_wait({{&socket, false}}, -1, 50ms);
    while (const auto event = socket.monitor_event())
      if (event->kind == ZmqMonitorEvent::Kind::kConnectFailed) return kAlive;
  }
  return kNothingHeard;
}

Fate dial_by_desk(std::uint16_t port, const std::function<bool()>& tell) {
  auto talk = RelayTalk::begin({"127.0.0.1", port});
  if (!talk.ok()) return kNoSetup;
  talk->say(pack_relay_ping());
  talk->await(kRelayPingBytes);
  if (!talk->turn().ok() || !tell()) return kNoSetup;
  for (const TimePoint end = monotonic_now() + 5s; monotonic_now() < end;) {
    pollfd ready = {talk->waits().fd, POLLIN | POLLOUT, 0};
    (void)::poll(&ready, 1, 50);
    if (!talk->turn().ok()) return kAlive;
  }
  return kNothingHeard;
}

// In a child: dials where nothing is said, and has the dial answered by that ICMP message.
Fate dial_and_be_told(int code, bool by_desk) {
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 || !loopback_up()) return kNoNamespace;
  const Descriptor raw_tcp(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_TCP));
  const Descriptor raw_icmp(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
  const Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const std::uint16_t port = listen_in_silence(listener);
  const timeval patience = {5, 0};
  if (raw_tcp.get() < 0 || raw_icmp.get() < 0) return kNoNamespace;
  if (port == 0 || ::setsockopt(raw_tcp.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0)
    return kNoSetup;
  const auto tell = [&] {
    const std::vector<std::uint8_t> syn = hear_syn(raw_tcp, port);
    return !syn.empty() && send_unreachable(raw_icmp, code, syn);
  };
  return by_desk ? dial_by_desk(port, tell) : dial_by_libzmq(port, tell);
}

TEST(SocketErrorsTest, NoIcmpAnswerToADialEndsTheProcess) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "TSan does not allow threads in a child of a process that had some";
#endif
  for (int dial = 0; dial < 2 * (NR_ICMP_UNREACH + 1); ++dial) {
    const int code = dial / 2;
    const bool by_desk = dial % 2 == 1;
    if (code == ICMP_FRAG_NEEDED) continue;  // ends no dial: the segment is sent again, smaller
    SCOPED_TRACE("ICMP unreachable, code " + std::to_string(code) + (by_desk ? ", to a pipe" : ""));
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(dial_and_be_told(code, by_desk));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
    if (WEXITSTATUS(status) == kNoNamespace) GTEST_SKIP() << "no network of its own is allowed here";
    EXPECT_EQ(WEXITSTATUS(status), kAlive);
  }
}

}  // namespace
}  // namespace shoal
