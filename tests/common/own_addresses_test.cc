// Which addresses a process tells others.
#include "common/os/own_addresses.h"

#include <gtest/gtest.h>

#include <algorithm>

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
