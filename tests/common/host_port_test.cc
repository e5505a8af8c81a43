#include "common/host_port.h"

#include <gtest/gtest.h>

#include "common/os/executable.h"

namespace shoal {
namespace {

TEST(HostPortTest, AddressesAreHostAndPort) {
  EXPECT_EQ(parse_host_port("[::1]:80")->host, "::1");
  EXPECT_EQ((HostPort{"::1", 80}).text(), "[::1]:80");
  for (const char* good : {"198.51.100.7:1", "[2001:db8::1]:65535", "a-b.example:4700"})
    EXPECT_EQ(parse_host_port(good)->text(), good);
  for (const char* bad : {"", ":1", "a", "a:", "a:0", "a:65536", "a:1x", "a:-1", "::1:80", "[a]:1", "[]:1", "a b:1",
                          "[::1]", "a/b:1", "a;b:1", "*:1", "tcp://1.2.3.4:5"}) {
    const auto parsed = parse_host_port(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(parsed.code(), ErrorCode::kInput);
    EXPECT_NE(parsed.error().message.find(bad), std::string::npos);
  }
}

TEST(HostPortTest, PortZeroIsForWhoListens) {
  EXPECT_EQ(parse_host_port("0.0.0.0:0", PortZero::kAllowed)->port, 0);
  EXPECT_FALSE(parse_host_port("0.0.0.0:0").ok());
  EXPECT_FALSE(parse_host_port("0.0.0.0:", PortZero::kAllowed).ok());
}

TEST(HostPortTest, OnlyIpAddressesAreLiterals) {
  for (const char* literal : {"127.0.0.1:1", "[::1]:1", "[2001:db8::7]:1"})
    EXPECT_TRUE(parse_host_port(literal)->is_literal()) << literal;
  for (const char* name : {"localhost:1", "example.org:1", "127.1:1", "2130706433:1", "1.2.3.4.5:1", "0x7f000001:1"})
    EXPECT_FALSE(parse_host_port(name)->is_literal()) << name;
}

TEST(HostPortTest, WhereOneIsDialledMayNameThePortOfTheBulkLane) {
  EXPECT_EQ(parse_dial_address("192.0.2.7:4700")->bulk_port, 0);
  EXPECT_EQ(parse_dial_address("192.0.2.7:4700+61001")->control.text(), "192.0.2.7:4700");
  EXPECT_EQ(parse_dial_address("192.0.2.7:4700+61001")->bulk_port, 61001);
  EXPECT_TRUE(parse_dial_address("via/192.0.2.7:443")->via);
  EXPECT_EQ(parse_dial_address("via/192.0.2.7:443")->control.text(), "192.0.2.7:443");
  for (const char* good : {"192.0.2.7:4700", "[2001:db8::1]:4700+4702", "a.example:1+2", "via/[2001:db8::1]:443"})
    EXPECT_EQ(parse_dial_address(good)->text(), good);
  for (const char* bad : {"", "+", "192.0.2.7:4700+", "192.0.2.7:4700+0", "192.0.2.7:4700+65536", "192.0.2.7:4700+x",
                          "192.0.2.7:4700+1+2", "192.0.2.7+4700", "+4700", "via/", "via/192.0.2.7", "via/192.0.2.7:1+2",
                          "via/via/192.0.2.7:1"}) {
    const auto parsed = parse_dial_address(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(parsed.code(), ErrorCode::kInput);
  }
}

TEST(ExecutableTest, WhatStandsBesideThisProgramIsFound) {
  const auto own = own_program();
  ASSERT_TRUE(own.ok()) << own.error().message;
  EXPECT_EQ(beside_own_program(own->substr(own->rfind('/') + 1)).value(), *own);
}

}  // namespace
}  // namespace shoal
