#include "transport/mapping/map_words.h"

#include <gtest/gtest.h>

#include "tests/mapping/router_answers.h"

namespace shoal {
namespace {

using test::Datagram;

std::vector<std::uint8_t> vector_of(const Bytes& bytes) { return {bytes.view().begin(), bytes.view().end()}; }

// RFC 6887, figures 2 and 9.
TEST(MapWordsTest, APcpRequestIsThatOfTheRfc) {
  MapNonce nonce;
  for (std::size_t i = 0; i < nonce.size(); ++i) nonce[i] = static_cast<std::uint8_t>(0xa0 + i);
  const Datagram expected = {2,    1,    0,    0,    0,    0,    0x04, 0xb0,  // 1200 s
                             0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0xff, 0xff, 192, 168, 1, 7,
                             0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab,  // the nonce
                             6,    0,    0,    0,    0x12, 0x5c, 0x12, 0x5d,                          // TCP, 4700, 4701
                             0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0xff, 0xff, 0,   0,   0, 0};
  EXPECT_EQ(vector_of(pack_pcp_map({4700, 4701, 1200}, *ip_bytes("192.168.1.7"), nonce)), expected);
}

TEST(MapWordsTest, ARequestForIPv6WishesForNoAddressOfIPv4) {
  const Bytes request = pack_pcp_map({4700, 4700, 1200}, *ip_bytes("2001:db8::7"), {});
  EXPECT_EQ(vector_of(request.slice(44, 16)), Datagram(16, 0));
}

// RFC 6886, section 3.3.
TEST(MapWordsTest, ANatPmpRequestIsThatOfTheRfc) {
  EXPECT_EQ(vector_of(pack_pmp_map({4700, 0, 1200})), (Datagram{0, 2, 0, 0, 0x12, 0x5c, 0, 0, 0, 0, 0x04, 0xb0}));
  EXPECT_EQ(vector_of(pack_pmp_address()), (Datagram{0, 0}));
}

TEST(MapWordsTest, AnswersAreRead) {
  MapNonce nonce{};
  nonce.fill(7);
  const Bytes request = pack_pcp_map({4700, 4700, 1200}, *ip_bytes("10.0.0.2"), nonce);
  const auto pcp = parse_map_answer(test::pcp_answer(request, 0, 5800, "203.0.113.9", 600));
  ASSERT_TRUE(pcp.ok());
  EXPECT_EQ(pcp->word, MapWord::kPcpMap);
  EXPECT_EQ(pcp->nonce, nonce);
  EXPECT_EQ(pcp->inner, 4700);
  EXPECT_EQ(pcp->outer, 5800);
  EXPECT_EQ(pcp->lifetime_s, 600u);
  EXPECT_EQ(ip_text(pcp->host), "203.0.113.9");

  const auto pmp = parse_map_answer(test::pmp_answer(pack_pmp_map({4700, 0, 60}), 0, 5801, 60));
  ASSERT_TRUE(pmp.ok());
  EXPECT_EQ(pmp->word, MapWord::kPmpMap);
  EXPECT_EQ(pmp->inner, 4700);
  EXPECT_EQ(pmp->outer, 5801);
  const auto address = parse_map_answer(test::pmp_address_answer("198.51.100.4"));
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address->word, MapWord::kPmpAddress);
  EXPECT_EQ(ip_text(address->host), "198.51.100.4");
}

TEST(MapWordsTest, WhatARouterRefusesIsSaidInWords) {
  const Bytes request = pack_pcp_map({4700, 4700, 1200}, *ip_bytes("10.0.0.2"), {});
  const auto refused = parse_map_answer(test::pcp_answer(request, 2, 0, "0.0.0.0", 30));
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(why_not(*refused), "the router refuses to map ports (PCP code 2)");
  const auto other = parse_map_answer(test::pmp_version_answer());
  ASSERT_TRUE(other.ok());
  EXPECT_TRUE(lacks_pcp(*other));
}

TEST(MapWordsTest, EveryOtherSizeIsRefused) {
  MapNonce nonce{};
  const Bytes request = pack_pcp_map({4700, 4700, 1200}, *ip_bytes("10.0.0.2"), nonce);
  for (const Datagram& whole :
       {test::pcp_answer(request, 0, 5800, "203.0.113.9", 600),
        test::pmp_answer(pack_pmp_map({4700, 0, 60}), 0, 5801, 60), test::pmp_address_answer("198.51.100.4")})
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_FALSE(parse_map_answer(ByteView(whole).first(size)).ok()) << size;
  EXPECT_FALSE(parse_map_answer(request).ok()) << "a request is no answer";
  EXPECT_FALSE(parse_map_answer(Datagram(kRouterWordMax + 4, 2)).ok());
}

}  // namespace
}  // namespace shoal
