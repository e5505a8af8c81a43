#include "layout/link_table.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(LinkTableTest, ReadsWhatPublishedTablesHave) {
  const auto table =
      parse_links("a,b,delay_ms,bandwidth_gbps\nOregon,Ohio,49,1.1\r\nOhio, Tokyo,130,0.694\n\nTokyo,Oregon,96,0.523\n",
                  "links.csv");
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->regions, (std::vector<std::string>{"Oregon", "Ohio", "Tokyo"}));
  const std::size_t ohio = *table->region("Ohio"), tokyo = *table->region("Tokyo");
  EXPECT_DOUBLE_EQ(table->lines[tokyo * 3 + ohio].delay, 0.130);
  EXPECT_DOUBLE_EQ(table->lines[ohio * 3 + tokyo].rate, 0.694e9 / 8);
  EXPECT_DOUBLE_EQ(table->lines[ohio * 3 + ohio].rate, kInsideRegion.rate) << "nothing is said of its inside";
  EXPECT_FALSE(table->region("Paris"));
}

TEST(LinkTableTest, RoundTripsAreHalvedAndALineOfARegionIsItsInside) {
  const auto table = parse_links("x,y,rtt_ms,bandwidth_mbps\nhome,home,2,1000\nhome,lab,30,80\n", "links.csv");
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_DOUBLE_EQ(table->lines[0].delay, 0.001);
  EXPECT_DOUBLE_EQ(table->lines[1].delay, 0.015);
  EXPECT_DOUBLE_EQ(table->lines[1].rate, 1e7);
}

TEST(LinkTableTest, WhatIsWrongIsNamedWithItsLine) {
  const std::string heading = "a,b,delay_ms,bandwidth_gbps\n";
  const auto said = [](const std::string& text) {
    const auto table = parse_links(text, "links.csv");
    return table.ok() ? std::string("ok") : table.error().message;
  };
  EXPECT_TRUE(said("").starts_with("links.csv:1: a heading is missing"));
  EXPECT_TRUE(said("a,b,delay,rate\nx,y,1,1\n").starts_with("links.csv:1: a heading is missing"));
  EXPECT_TRUE(said(heading).starts_with("links.csv:1: there is no line"));
  EXPECT_TRUE(said(heading + "x,y,1\n").starts_with("links.csv:2: two regions"));
  EXPECT_TRUE(said(heading + "x,y,-1,1\n").starts_with("links.csv:2: two regions"));
  EXPECT_TRUE(said(heading + "x,y,1,0\n").starts_with("links.csv:2: two regions"));
  EXPECT_TRUE(said(heading + "x,y,nan,1\n").starts_with("links.csv:2: two regions"));
  EXPECT_TRUE(said(heading + "x,y,1,1\ny,x,2,2\n").starts_with("links.csv:3: a second line between y and x"));
  EXPECT_EQ(said(heading + "x,y,1,1\nx,z,1,1\n"), "links.csv:1: no line between y and z: each two need one");
}

}  // namespace
}  // namespace shoal
