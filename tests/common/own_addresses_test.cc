// Which addresses a process tells others.
#include "common/os/own_addresses.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "common/log.h"

namespace shoal {
namespace {

using Addresses = std::vector<std::string>;

TEST(OwnAddressesTest, WhatIsAdvertisedWinsAndTakesTheListeningPort) {
  EXPECT_EQ(own_addresses("0.0.0.0:4700", {"198.51.100.7", "203.0.113.9:80", "[2001:db8::1]"}, {"127.0.0.1:1"}).value(),
            (Addresses{"198.51.100.7:4700", "203.0.113.9:80", "[2001:db8::1]:4700"}));
}

TEST(OwnAddressesTest, AnAdvertisedNameIsToldAsItsAddress) {
  EXPECT_EQ(own_addresses("0.0.0.0:4700", {"localhost", "localhost:80"}, {}).value(),
            (Addresses{"127.0.0.1:4700", "127.0.0.1:80"}));
  const auto unknown = own_addresses("0.0.0.0:4700", {"no-such-host.invalid"}, {});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.code(), ErrorCode::kInput);
  EXPECT_NE(unknown.error().message.find("no-such-host.invalid"), std::string::npos) << unknown.error().message;
}

TEST(OwnAddressesTest, AHostThatIsListenedOnIsTheOnlyOne) {
  EXPECT_EQ(own_addresses("198.51.100.7:4700", {}, {"127.0.0.1:1"}).value(), Addresses{"198.51.100.7:4700"});
}

TEST(OwnAddressesTest, OtherwiseItIsOurSideOfTheRoute) {
  EXPECT_EQ(own_addresses("0.0.0.0:4700", {}, {"127.0.0.1:9"}).value(), Addresses{"127.0.0.1:4700"});
}

TEST(OwnAddressesTest, EveryContactsRouteCounts) {
  const Addresses addresses = own_addresses("0.0.0.0:4700", {}, {"[::1]:9", "127.0.0.1:9", "127.0.0.1:10"}).value();
  EXPECT_EQ(std::count(addresses.begin(), addresses.end(), "127.0.0.1:4700"), 1) << "the second contact's, and once";
}

TEST(OwnAddressesTest, WithoutARouteLoopbackIsToldOnlyWhenThereIsNothingElse) {
  const Addresses addresses = own_addresses("0.0.0.0:4700", {}, {}).value();
  ASSERT_FALSE(addresses.empty());
  EXPECT_LE(addresses.size(), 3u);
  EXPECT_TRUE(addresses.size() == 1 || !all_loopback(addresses));
}

TEST(OwnAddressesTest, OneListensWhereOneWillBeDialled) {
  EXPECT_EQ(listen_toward({"127.0.0.1:9", "[::1]:9"}), "[::]:0") << "which takes IPv4 as well";
}

// In a network of its own: two links whose other end is down stand before the cards. 0: as it should be.
int among_idle_links() {
  constexpr int kNoNetwork = 77;
  const char* const made =
      "ip link set lo up && for i in 1 2; do ip link add b$i type veth peer name c$i && ip addr add 172.1$i.0.1/16 dev "
      "b$i && ip link set b$i up; done && ip link add e0 type veth peer name e1 && ip addr add 192.168.7.20/24 dev e0 "
      "&& ip addr add 100.64.3.7/24 dev e1 && ip link set e0 up && ip link set e1 up && for e in e0 e1; do timeout 5 "
      "sh "
      "-c \"until ip link show dev $e | grep -q 'state UP'; do :; done\"; done";
  if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return kNoNetwork;
  if (std::system(made) != 0) return kNoNetwork;
  std::string said;
  set_log_sink([&](LogLevel, std::string_view line) { said += line; });
  const Addresses addresses = own_addresses("0.0.0.0:4700", {}, {}).value();
  if (addresses.size() != 3 || std::count(addresses.begin(), addresses.begin() + 2, "192.168.7.20:4700") != 1) return 1;
  if (std::count(addresses.begin(), addresses.begin() + 2, "100.64.3.7:4700") != 1) return 2;
  if (said.find("172.12.0.1:4700") == std::string::npos) return 3;  // the one that is left out
  if (listen_toward({}) != "0.0.0.0:0") return 4;
  if (std::system("ip -6 addr add 2001:db8:7::2/64 dev e0 nodad") != 0) return kNoNetwork;
  if (listen_toward({"192.168.7.1:9"}) != "[::]:0") return 5;
  const Addresses both = own_addresses("[::]:4700", {}, {"192.168.7.1:9"}).value();
  return both == Addresses{"192.168.7.20:4700", "[2001:db8:7::2]:4700"} ? 0 : 6;
}

TEST(OwnAddressesTest, LinksWithoutACarrierAreToldLastAndWhatIsLeftOutIsSaid) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(among_idle_links());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no network of its own, or no `ip`, here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(OwnAddressesTest, NonsenseIsNamed) {
  const auto refused = own_addresses("0.0.0.0:4700", {"no host at all"}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), ErrorCode::kInput);
  EXPECT_NE(refused.error().message.find("no host at all"), std::string::npos);
}

TEST(OwnAddressesTest, WhereOneOnlyListensIsNoAddressToTell) {
  for (const std::string any : {"0.0.0.0", "0.0.0.0:80", "[::]"}) {
    const auto refused = own_addresses("0.0.0.0:4700", {any}, {});
    ASSERT_FALSE(refused.ok()) << any;
    EXPECT_EQ(refused.code(), ErrorCode::kInput);
    EXPECT_NE(refused.error().message.find("--advertise " + any), std::string::npos) << refused.error().message;
  }
}

// A link-local address without its interface is one that no machine has a route to.
TEST(OwnAddressesTest, WithoutARouteToAnyContactTheNetworkIsNamed) {
  EXPECT_TRUE(check_routes({"127.0.0.1:9"}).ok());
  EXPECT_TRUE(check_routes({"[fe80::1]:9", "127.0.0.1:9"}).ok()) << "one is enough";
  const Status cut = check_routes({"[fe80::1]:9"});
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.code(), ErrorCode::kUnreachable);
  for (const std::string part : {"no route to [fe80::1]:9", "HINT: is its network up?"})
    EXPECT_NE(cut.error().message.find(part), std::string::npos) << cut.error().message;
}

TEST(OwnAddressesTest, LoopbackIsKnownInAllItsForms) {
  EXPECT_TRUE(all_loopback({"127.0.0.1:1", "localhost:2", "[::1]:3", "127.9.9.9:4"}));
  EXPECT_FALSE(all_loopback({"127.0.0.1:1", "198.51.100.7:2"}));
}

}  // namespace
}  // namespace shoal
