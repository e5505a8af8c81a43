#include "common/os/gateway.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

constexpr char kHead[] = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

TEST(GatewayTest, OfIPv4TheDefaultRouteWithTheLeastMetricCounts) {
  const std::string table = std::string(kHead) +
                            "wlan0\t00000000\t0107A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
                            "eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
                            "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
  EXPECT_EQ(gateway_in_v4_routes(table), "192.0.2.1");
}

TEST(GatewayTest, ARouteWithoutARouterHasNone) {
  EXPECT_EQ(gateway_in_v4_routes(std::string(kHead) + "tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0\n"),
            "");
  EXPECT_EQ(gateway_in_v4_routes(kHead), "");
  EXPECT_EQ(gateway_in_v4_routes(""), "");
  EXPECT_EQ(gateway_in_v4_routes("nonsense\n\n a b c d e f g h i\n"), "");
}

TEST(GatewayTest, OfIPv6ALinkLocalOneHasItsInterface) {
  const std::string zeros(32, '0');
  const std::string way = " 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n";
  EXPECT_EQ(gateway_in_v6_routes(zeros + " 00 " + zeros + way), "fe80::1%eth0");
  const std::string other = " 00 20010db8000000000000000000000001 00000100 00000001 00000000 00000003     eth1\n";
  EXPECT_EQ(gateway_in_v6_routes(zeros + " 00 " + zeros + way + zeros + " 00 " + zeros + other), "2001:db8::1");
  EXPECT_EQ(gateway_in_v6_routes(zeros + " 40 " + zeros + way), "") << "no default route";
  EXPECT_EQ(gateway_in_v6_routes(zeros + " 00 " + zeros + " 00 " + zeros + " ffffffff 00000001 00000000 00200200 lo\n"),
            "");
}

}  // namespace
}  // namespace shoal
