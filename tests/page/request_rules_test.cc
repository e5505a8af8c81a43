// Which requests the page answers: the rules alone. Over a socket: loopback_http_test.cc.
#include "page/request_rules.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

constexpr std::uint16_t kPort = 8787;

unsigned judged(std::vector<std::pair<std::string_view, std::string_view>> headers, std::string_view method = "GET") {
  return judge({.method = method, .path = "/", .headers = std::move(headers)}, kPort).status;
}

TEST(RequestRulesTest, ABrowserThatWasPointedHereIsAnswered) {
  EXPECT_EQ(judged({{"Host", "127.0.0.1:8787"}}), 200u);
  EXPECT_EQ(judged({{"host", "LOCALHOST:8787"}}), 200u);
  EXPECT_EQ(judged({{"Host", "[::1]:8787"}}), 200u);
  EXPECT_EQ(judged({{"Host", "localhost:8787"}, {"Sec-Fetch-Site", "none"}}), 200u);
  EXPECT_EQ(
      judged({{"Host", "localhost:8787"}, {"Sec-Fetch-Site", "same-origin"}, {"Origin", "http://localhost:8787"}}),
      200u);
  EXPECT_EQ(judged({{"Host", "localhost:8787"}, {"Content-Length", "0"}}, "HEAD"), 200u);
}

TEST(RequestRulesTest, AnotherHostIsMisdirected) {
  for (const char* host :
       {"evil.example", "evil.example:8787", "127.0.0.1", "localhost", "127.0.0.1:8788", "127.0.0.2:8787",
        "localhost.evil.example:8787", "localhost:87870", "127.0.0.1:8787.evil.example", "", "user@127.0.0.1:8787",
        "localhost.:8787", "0x7f000001:8787", "[::ffff:127.0.0.1]:8787"})
    EXPECT_EQ(judged({{"Host", host}}), 421u) << host;
}

TEST(RequestRulesTest, OneHostIsWanted) {
  EXPECT_EQ(judged({}), 400u);
  EXPECT_EQ(judged({{"Host", "localhost:8787"}, {"Host", "evil.example"}}), 400u);
}

TEST(RequestRulesTest, NothingThatCouldChangeSomethingIsAMethod) {
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "PROPFIND", ""})
    EXPECT_EQ(judged({{"Host", "localhost:8787"}}, method), 405u) << method;
}

TEST(RequestRulesTest, OtherSitesGetNothing) {
  for (const char* site : {"cross-site", "same-site", "", "Same-Origin"})
    EXPECT_EQ(judged({{"Host", "localhost:8787"}, {"Sec-Fetch-Site", site}}), 403u) << site;
  for (const char* origin : {"null", "http://evil.example", "https://localhost:8787", "http://localhost:8788", ""})
    EXPECT_EQ(judged({{"Host", "localhost:8787"}, {"Origin", origin}}), 403u) << origin;
}

TEST(RequestRulesTest, ABodyIsNotRead) {
  EXPECT_EQ(judged({{"Host", "localhost:8787"}, {"Content-Length", "5"}}), 400u);
  EXPECT_EQ(judged({{"Host", "localhost:8787"}, {"Transfer-Encoding", "chunked"}}), 400u);
}

TEST(RequestRulesTest, ALongHeaderIsRefused) {
  PageRequest request{.method = "GET", .path = "/", .headers = {{"Host", "localhost:8787"}}};
  request.header_bytes = kHeaderBytesMax;
  EXPECT_EQ(judge(request, kPort).status, 200u);
  ++request.header_bytes;
  EXPECT_EQ(judge(request, kPort).status, 431u);
}

}  // namespace
}  // namespace shoal
