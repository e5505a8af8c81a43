// The page's server over real sockets: what it answers, what it refuses, and that no viewer makes it wait.
#include "page/loopback_http.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <filesystem>

#include "common/os/posix_file.h"
#include "page/page_assets.h"
#include "page/page_port.h"
#include "page/request_rules.h"

namespace shoal {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr int kPatienceMs = 20000;  // never waited for where all is well

// A browser, or worse.
class Dialler {
 public:
  explicit Dialler(std::uint16_t port, int receive_bytes = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_bytes > 0) ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  void say(const std::string& text) { ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL); }
  void finish() { ::shutdown(socket_.get(), SHUT_WR); }
  // Until `mark` is there, or the server closes.
  std::string heard_until(std::string_view mark) {
    char piece[4096];
    while (text_.find(mark) == std::string::npos) {
      pollfd wait = {socket_.get(), POLLIN, 0};
      if (::poll(&wait, 1, kPatienceMs) <= 0) {
        ADD_FAILURE() << "nothing came; so far: " << text_.substr(0, 500);
        break;
      }
      const ssize_t got = ::recv(socket_.get(), piece, sizeof piece, 0);
      if (got <= 0) break;
      text_.append(piece, static_cast<std::size_t>(got));
    }
    return text_;
  }
  std::string heard_all() { return heard_until("\xff this never comes"); }

 private:
  Descriptor socket_;
  std::string text_;
};

std::shared_ptr<const std::string> whole(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

class LoopbackHttpTest : public testing::Test {
 protected:
  LoopbackHttpTest() {
    auto http = LoopbackHttp::open(
        {.answers = [](std::string_view path, std::optional<double> at) -> std::optional<PageAnswer> {
          if (path == "/healthz") return PageAnswer{200, "text/plain", whole("ok\n")};
          if (path == "/moment.json")
            return PageAnswer{200, "application/json", whole(std::to_string(at.value_or(-1)))};
          return std::nullopt;
        }});
    EXPECT_TRUE(http.ok());
    http_ = *std::move(http);
  }
  std::string host() const { return "127.0.0.1:" + std::to_string(http_->port()); }
  std::string asked(const std::string& request) {
    Dialler dialler(http_->port());
    dialler.say(request);
    return dialler.heard_all();
  }
  std::string got(const std::string& path, const std::string& more = "") {
    return asked("GET " + path + " HTTP/1.1\r\nHost: " + host() + "\r\nConnection: close\r\n" + more + "\r\n");
  }
  // Until the server has seen what a viewer did: its thread is not ours.
  template <class Done>
  void publish_until(Done done) {
    const std::string large(200'000, 'x');
    for (int i = 0; i < 100'000 && !done(); ++i) http_->publish("moment", large);
    EXPECT_TRUE(done());
  }

  std::unique_ptr<LoopbackHttp> http_;
};

TEST_F(LoopbackHttpTest, ThePageAndItsPartsAreThere) {
  EXPECT_THAT(got("/"), StartsWith("HTTP/1.1 200"));
  for (const char* path : {"/page.js", "/map.js", "/page.css", "/fish.svg", "/dygraph.min.js", "/dygraph.min.css"}) {
    const std::string answer = got(path);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200")) << path;
    const auto asset = page_asset(path);
    ASSERT_TRUE(asset);
    EXPECT_TRUE(answer.ends_with(asset->bytes)) << path;
    EXPECT_THAT(answer, HasSubstr("Content-Type: " + std::string(asset->type)));
  }
}

TEST_F(LoopbackHttpTest, EachAnswerHasItsBoundsInTheHeader) {
  for (const char* path : {"/", "/healthz", "/nothing"}) {
    const std::string answer = got(path);
    EXPECT_THAT(answer, HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self'"));
    EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff"));
    EXPECT_THAT(answer, HasSubstr("Cross-Origin-Resource-Policy: same-origin"));
    EXPECT_THAT(answer, Not(HasSubstr("Access-Control")));
  }
}

TEST_F(LoopbackHttpTest, AQuestionOfATimeArrives) {
  EXPECT_THAT(got("/moment.json?at=12.5"), HasSubstr("12.5"));
  EXPECT_THAT(got("/moment.json?at=12x"), HasSubstr("-1.0"));
  EXPECT_THAT(got("/moment.json?at"), HasSubstr("-1.0"));
}

TEST_F(LoopbackHttpTest, HeadHasNoBody) {
  const std::string answer = asked("HEAD / HTTP/1.1\r\nHost: " + host() + "\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
  EXPECT_THAT(asked("HEAD /events HTTP/1.1\r\nHost: " + host() + "\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 200"));
}

TEST_F(LoopbackHttpTest, HostileRequestsAreRefused) {
  const std::string good = "Host: " + host() + "\r\nConnection: close\r\n";
  const auto get = [](const std::string& path, const std::string& headers) {
    return "GET " + path + " HTTP/1.1\r\n" + headers + "\r\n";
  };
  const std::vector<std::pair<std::string, std::string>> requests = {
      {"421", get("/", "Host: evil.example\r\nConnection: close\r\n")},
      {"421", get("/", "Host: evil.example:" + std::to_string(http_->port()) + "\r\nConnection: close\r\n")},
      {"421", get("/", "Host: 127.0.0.1\r\nConnection: close\r\n")},
      {"421", get("/events", "Host: localhost.evil.example:1\r\nConnection: close\r\n")},
      {"400", get("/", "Connection: close\r\n")},
      {"400", get("/", good + "Host: evil.example\r\n")},
      {"405", "POST / HTTP/1.1\r\n" + good + "Content-Length: 2\r\n\r\n{}"},
      {"405", "PUT /snapshot.json HTTP/1.1\r\n" + good + "Content-Length: 0\r\n\r\n"},
      {"405", "DELETE / HTTP/1.1\r\n" + good + "\r\n"},
      {"405", "OPTIONS / HTTP/1.1\r\n" + good + "Access-Control-Request-Method: POST\r\n\r\n"},
      {"405", "TRACE / HTTP/1.1\r\n" + good + "\r\n"},
      {"403", get("/", good + "Sec-Fetch-Site: cross-site\r\n")},
      {"403", get("/events", good + "Sec-Fetch-Site: same-site\r\n")},
      {"403", get("/", good + "Origin: http://evil.example\r\n")},
      {"403", get("/", good + "Origin: null\r\n")},
      {"400", get("/", good + "Content-Length: 3\r\n") + "abc"},
      {"400", get("/", good + "Transfer-Encoding: chunked\r\n") + "0\r\n\r\n"},
      {"431", get("/", good + "X-Long: " + std::string(kHeaderBytesMax, 'a') + "\r\n")},
      {"404", get("/../../etc/passwd", good)},
      {"404", get("/%2e%2e/%2e%2e/etc/passwd", good)},
      {"404", get("http://evil.example/", good)},
      {"404", get("/page.js%00.html", good)},
      {"404", get("//", good)},
  };
  for (const auto& [status, request] : requests)
    EXPECT_THAT(asked(request), StartsWith("HTTP/1.1 " + status)) << request.substr(0, 200);
  for (const std::string& noise : {std::string("\0\1\2\3\r\n\r\n", 8), std::string("GET\r\n\r\n"),
                                   "GET / HTTP/1.1\r\n" + std::string(100'000, 'a')}) {
    Dialler dialler(http_->port());
    dialler.say(noise);
    dialler.finish();
    const std::string answer = dialler.heard_all();
    EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 4")) << answer.substr(0, 100);
  }
  EXPECT_THAT(got("/healthz"), HasSubstr("ok")) << "it lives";
}

TEST_F(LoopbackHttpTest, EventsArriveAtThoseThatStay) {
  http_->publish("story", "1");
  http_->publish("moment", "2");
  Dialler viewer(http_->port());
  viewer.say("GET /events HTTP/1.1\r\nHost: " + host() + "\r\n\r\n");
  const std::string begin = viewer.heard_until("data: 1\n\n");
  EXPECT_THAT(begin, HasSubstr("Content-Type: text/event-stream"));
  EXPECT_THAT(begin, HasSubstr("event: moment\ndata: 2\n\n")) << "the newest of each name";
  EXPECT_THAT(begin, Not(HasSubstr("event: behind")));
  http_->publish("moment", "3");  // while it sleeps
  EXPECT_THAT(viewer.heard_until("data: 3\n\n"), HasSubstr("id: 3\nevent: moment\ndata: 3\n\n"));
  EXPECT_EQ(http_->viewers(), 1u);
}

TEST_F(LoopbackHttpTest, ASlowViewerIsCutOffAndToldWhenItComesBack) {
  Dialler slow(http_->port(), 4096);
  slow.say("GET /events HTTP/1.1\r\nHost: " + host() + "\r\n\r\n");
  publish_until([&] { return http_->viewers() == 1; });
  publish_until([&] { return http_->cut_off() == 1; });
  publish_until([&] { return http_->viewers() == 0; });
  EXPECT_THAT(got("/healthz"), HasSubstr("ok"));
  Dialler back(http_->port());
  back.say("GET /events HTTP/1.1\r\nHost: " + host() + "\r\nLast-Event-ID: 1\r\n\r\n");
  EXPECT_THAT(back.heard_until("event: moment"), HasSubstr("event: behind\ndata: "));
}

TEST_F(LoopbackHttpTest, NoMoreViewersStayThanThereAreTo) {
  std::vector<std::unique_ptr<Dialler>> viewers;
  for (std::size_t i = 0; i < LoopbackHttp::kViewersMax; ++i) {
    viewers.push_back(std::make_unique<Dialler>(http_->port()));
    viewers.back()->say("GET /events HTTP/1.1\r\nHost: " + host() + "\r\n\r\n");
    viewers.back()->heard_until("retry: ");
  }
  EXPECT_THAT(got("/events"), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(got("/healthz"), StartsWith("HTTP/1.1 200")) << "there is room for questions";
}

TEST_F(LoopbackHttpTest, ItEndsWithViewersThatSleep) {
  Dialler viewer(http_->port());
  viewer.say("GET /events HTTP/1.1\r\nHost: " + host() + "\r\n\r\n");
  viewer.heard_until("retry: ");
  http_.reset();
  viewer.heard_all();  // until the end
}

TEST_F(LoopbackHttpTest, APortThatIsTakenIsRefusedOrAnotherIsChosen) {
  const auto taken = LoopbackHttp::open({.at = *page_port(std::to_string(http_->port()))});
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.code(), ErrorCode::kBusy);
  EXPECT_THAT(taken.error().message, HasSubstr("another program listens on " + host()));
  const auto other = LoopbackHttp::open({.at = {.port = http_->port(), .or_any = true}});
  ASSERT_TRUE(other.ok());
  EXPECT_NE((*other)->port(), http_->port());
}

TEST(PagePortTest, APortThatSomebodyNamedIsTheOnlyOne) {
  const PagePort bare = *page_port("");
  EXPECT_TRUE(bare.or_any);
  EXPECT_NE(bare.port, 0);
  for (const std::uint16_t named : {bare.port, std::uint16_t{1}, std::uint16_t{0}, std::uint16_t{65535}}) {
    const auto page = page_port(std::to_string(named));
    ASSERT_TRUE(page.ok()) << named;
    EXPECT_EQ(page->port, named);
    EXPECT_FALSE(page->or_any) << named;
    EXPECT_EQ(option_of(*page), "--page=" + std::to_string(named));
  }
  EXPECT_EQ(option_of(bare), "--page") << "a demo's launch may move, too";
}

TEST(PagePortTest, WhatIsNoPortIsRefused) {
  for (const char* word : {"65536", "-1", "+1", "8787x", "0x50", " 80", "80 ", "false", "http", "8787."})
    EXPECT_EQ(page_port(word).code(), ErrorCode::kInput) << word;
}

TEST(LoopbackHttpDescriptorsTest, NoneIsLeftOpen) {
  const auto open = [] {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
  };
  const std::size_t before = open();
  {
    const auto http = LoopbackHttp::open({});
    ASSERT_TRUE(http.ok());
    EXPECT_GT(open(), before);
  }
  EXPECT_EQ(open(), before);
}

}  // namespace
}  // namespace shoal
