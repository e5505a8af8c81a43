#include "runtime/peer/network_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace shoal {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ReachAnswer answer(Reach reach, const std::string& host) {
  return {reach, host, reach == Reach::kDirect ? "" : "silent"};
}

NetworkReport at_home() {
  NetworkReport report;
  report.told = {"192.168.7.2:4700"};
  report.port = 4700;
  report.router_asked = true;
  report.router_why = "the router speaks neither PCP nor NAT-PMP";
  report.outwards = {{.place = "198.51.100.4:4700", .took = 41ms, .port_443 = "silent"}};
  report.run = {.linked = true, .round_trip = 40ms, .answer = answer(Reach::kNone, "203.0.113.9")};
  return report;
}

TEST(NetworkReportTest, AHomeThatMapsNothingIsToldWhatHelps) {
  const NetworkReport report = at_home();
  const auto lines = report.lines();
  EXPECT_THAT(lines, Contains("router    forwards nothing: the router speaks neither PCP nor NAT-PMP"));
  EXPECT_THAT(lines, Contains("outwards  198.51.100.4:4700 passes, 41 ms; its port 443 is silent"));
  EXPECT_THAT(lines, Contains("run       linked directly, round trip 40 ms; it sees 203.0.113.9"));
  EXPECT_THAT(lines, Contains("reach     none (silent)"));
  EXPECT_THAT(lines, Contains(HasSubstr("switch on PCP")));
  EXPECT_THAT(lines, Contains(HasSubstr("it can join all the same")));
}

TEST(NetworkReportTest, WhoCanBeDialledNeedsNoRemedy) {
  NetworkReport report = at_home();
  report.mapped_by = "PCP";
  report.mapped = {"203.0.113.9:4700"};
  report.outer = "203.0.113.9";
  report.router_took = 12ms;
  report.run.answer = answer(Reach::kDirect, "203.0.113.9");
  EXPECT_THAT(report.remedies(), IsEmpty());
  EXPECT_EQ(report.carrier_nat(), false);
  EXPECT_THAT(report.lines(), Contains("router    forwards 203.0.113.9:4700 by PCP, in 12 ms"));
  EXPECT_THAT(report.lines(), Contains("reach     direct"));
}

TEST(NetworkReportTest, ARouterBehindAnotherOneIsFound) {
  NetworkReport report = at_home();
  EXPECT_FALSE(report.carrier_nat().has_value()) << "nothing says so";
  report.outer = "192.168.178.20";
  EXPECT_FALSE(report.carrier_nat().has_value()) << "it may be one of one's own";
  EXPECT_THAT(report.remedies(), Contains(HasSubstr("in both, or make one of them a bridge")));
  report.outer = "100.64.3.4";
  EXPECT_EQ(report.carrier_nat(), true);
  report.outer = "198.51.100.200";
  EXPECT_EQ(report.carrier_nat(), true) << "the run sees another address";
  EXPECT_THAT(report.remedies(), Contains(HasSubstr("ask the provider")));
  report.ipv6 = "2001:db8::7";
  EXPECT_THAT(report.remedies(), Contains(HasSubstr("open ports 4700 and 4701 for IPv6")));
}

TEST(NetworkReportTest, ANetworkThatLetsNothingOutIsToldFromARunThatIsOver) {
  NetworkReport report = at_home();
  report.run = {.why = "no route"};
  report.outwards[0].took.reset();
  report.outwards[0].port_443 = "closed";
  EXPECT_THAT(report.remedies(), Contains(HasSubstr("--relay-port 443")));
  report.outwards[0].port_443 = "silent";
  EXPECT_THAT(report.remedies(), Contains(HasSubstr("is the run still on")));
  EXPECT_THAT(report.lines(), Contains("run       no link: no route"));
}

TEST(NetworkReportTest, APlaceThatRefusesIsARunThatIsOver) {
  NetworkReport report = at_home();
  report.run = {.why = "refused"};
  report.outwards[0].took.reset();
  report.outwards[0].refused = true;
  report.outwards[0].port_443 = "closed";
  EXPECT_THAT(report.remedies(), Contains(HasSubstr("is the run still on")));
}

TEST(NetworkReportTest, WhatNobodyDialledIsNotCalledUnreachable) {
  NetworkReport report = at_home();
  report.run.relayed = true;
  report.run.answer->host.clear();
  EXPECT_FALSE(report.reach().has_value());
  EXPECT_THAT(report.lines(), Contains(HasSubstr("reach     not known: who is no member")));
  EXPECT_EQ(report.remedies().size(), 1u) << "and no port is to be opened";
  report = at_home();
  report.mapped_by = "PCP";
  report.mapped = {"203.0.113.77:4700"};
  EXPECT_FALSE(report.reach().has_value()) << "the run sees another address than the one that is mapped";
}

TEST(NetworkReportTest, AKeyThatIsNotAdmittedIsSaid) {
  NetworkReport report = at_home();
  report.run = {.why = "this key is not admitted"};
  EXPECT_THAT(report.remedies(), Contains(HasSubstr("shoal key")));
}

TEST(NetworkReportTest, AllOfItStandsInTheJson) {
  const auto json = nlohmann::json::parse(at_home().json().text());
  EXPECT_EQ(json["schema"], "shoal.netcheck/1");
  EXPECT_EQ(json["reach"], "none");
  EXPECT_EQ(json["router"]["asked"], true);
  EXPECT_TRUE(json["router"]["mapped_by"].is_null());
  EXPECT_TRUE(json["provider_translates"].is_null());
  EXPECT_EQ(json["outwards"][0]["ms"], 41.0);
  EXPECT_EQ(json["run"]["sees"], "203.0.113.9");
  EXPECT_EQ(json["remedies"].size(), 2u);
}

}  // namespace
}  // namespace shoal
