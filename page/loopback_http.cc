#include "page/loopback_http.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <mutex>

#include "common/os/posix_file.h"
#include "page/page_assets.h"
#include "page/request_rules.h"

namespace shoal {
namespace {

using Text = std::shared_ptr<const std::string>;

constexpr std::size_t kConnectionBytes = 4 * kHeaderBytesMax;  // header as it came, and our own
constexpr std::size_t kBlockBytes = 16u << 10;
constexpr char kPlain[] = "text/plain; charset=utf-8";

constexpr std::pair<const char*, const char*> kEveryAnswer[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
     "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
};

Result<Descriptor> listen_on_loopback(std::uint16_t port) {
  Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const std::string name = "127.0.0.1:" + std::to_string(port);
  if (listener.get() < 0) return error_of_errno("make a socket for", name, errno);
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EADDRINUSE)
      return make_error(ErrorCode::kBusy,
                        "another program listens on " + name + ". HINT: --page=PORT names another port");
    return error_of_errno("listen on", name, errno);
  }
  if (::listen(listener.get(), SOMAXCONN) != 0) return error_of_errno("listen on", name, errno);
  return listener;
}

std::uint16_t port_of(int listener) {
  sockaddr_in address = {};
  socklen_t size = sizeof address;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

std::string event_text(std::uint64_t number, const std::string& name, const std::string& data) {
  return "id: " + std::to_string(number) + "\nevent: " + name + "\ndata: " + data + "\n\n";
}

class MicroHttp;

// A browser that stays.
struct Viewer {
  MicroHttp* http = nullptr;
  MHD_Connection* connection = nullptr;
  std::deque<Text> waiting;
  std::size_t sent = 0;  // bytes of the first that waits
  bool asleep = false;   // suspended: nothing waits
  bool cut = false;
};

// Thread: libmicrohttpd's one thread for answer() and read(); the rest any. `mutex_` guards what viewers hold; it may
// be held while libmicrohttpd's own is taken, and never the other way round.
class MicroHttp final : public LoopbackHttp {
 public:
  explicit MicroHttp(Options options) : options_(std::move(options)) {}

  ~MicroHttp() override {
    if (daemon_ == nullptr) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closing_ = true;
      for (Viewer& viewer : viewers_) wake(viewer);  // the daemon does not end while one is suspended
    }
    MHD_stop_daemon(daemon_);
  }

  // libmicrohttpd closes what it is given: a second descriptor of the same socket.
  Status start(const Descriptor& listener) {
    port_ = port_of(listener.get());
    const int own = ::fcntl(listener.get(), F_DUPFD_CLOEXEC, 0);
    if (own < 0) return error_of_errno("listen on", "127.0.0.1", errno);
    daemon_ = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr,
                               &MicroHttp::on_request, this, MHD_OPTION_LISTEN_SOCKET, own, MHD_OPTION_CONNECTION_LIMIT,
                               kConnectionsMax, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes,
                               MHD_OPTION_CONNECTION_TIMEOUT, static_cast<unsigned>(seconds_of(kIdle)),
                               MHD_OPTION_UNESCAPE_CALLBACK, &MicroHttp::leave_as_it_is, nullptr, MHD_OPTION_END);
    if (daemon_ != nullptr) return {};
    ::close(own);
    return make_error(ErrorCode::kIo,
                      "the page's HTTP server does not start (libmicrohttpd). HINT: are there threads and descriptors "
                      "left (`ulimit -a`)?");
  }

  std::uint16_t port() const override { return port_; }

  void publish(const std::string& name, const std::string& data) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto text = std::make_shared<const std::string>(event_text(++number_, name, data));
    newest_[name] = text;
    for (Viewer& viewer : viewers_) {
      if (viewer.cut) continue;
      if (viewer.waiting.size() >= kWaitingMax) {
        cut(viewer);
        continue;
      }
      viewer.waiting.push_back(text);
      wake(viewer);
    }
  }

  std::size_t viewers() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return viewers_.size();
  }
  std::uint64_t cut_off() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return cut_off_;
  }

 private:
  void wake(Viewer& viewer) {
    if (std::exchange(viewer.asleep, false)) MHD_resume_connection(viewer.connection);
  }

  // Its socket takes nothing, so that the server would not look at it for kIdle.
  void cut(Viewer& viewer) {
    viewer.cut = true;
    viewer.waiting.clear();
    ++cut_off_;
    const MHD_ConnectionInfo* info = MHD_get_connection_info(viewer.connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info != nullptr) ::shutdown(info->connect_fd, SHUT_RDWR);
  }

  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* path, const char* method,
                               const char*, const char*, std::size_t*, void**) {
    return static_cast<MicroHttp*>(self)->answer(connection, path, method);
  }

  // No path of ours needs an escape, and one may hold a zero.
  static std::size_t leave_as_it_is(void*, MHD_Connection*, char* text) { return std::strlen(text); }

  static MHD_Result take_header(void* request, MHD_ValueKind, const char* key, const char* value) {
    static_cast<PageRequest*>(request)->headers.emplace_back(key, value == nullptr ? "" : value);
    return MHD_YES;
  }

  MHD_Result answer(MHD_Connection* connection, const char* path, const char* method) {
    PageRequest request{.method = method, .path = path};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, &MicroHttp::take_header, &request);
    if (const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE))
      request.header_bytes = info->header_size;
    const RequestVerdict verdict = judge(request, port_);
    if (verdict.status != 200) return refuse(connection, verdict);
    if (const auto asset = page_asset(request.path)) return send(connection, 200, asset->type, asset->bytes, true);
    if (options_.stays && request.path == "/events") return stay(connection, request.method == "HEAD");
    const auto answer = options_.answers ? options_.answers(request.path, time_asked(connection)) : std::nullopt;
    if (!answer) return refuse(connection, {404, "nothing is here"});
    return send(connection, answer->status, answer->type, *answer->body, false);
  }

  static std::optional<double> time_asked(MHD_Connection* connection) {
    const char* const text = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "at");
    if (text == nullptr) return std::nullopt;
    double time = 0;
    const auto [end, failure] = std::from_chars(text, text + std::strlen(text), time);
    return failure == std::errc() && *end == '\0' ? std::optional(time) : std::nullopt;
  }

  MHD_Result refuse(MHD_Connection* connection, const RequestVerdict& verdict) {
    return send(connection, verdict.status, kPlain, std::string(verdict.why) + "\n", false);
  }

  MHD_Result send(MHD_Connection* connection, unsigned status, std::string_view type, std::string_view body,
                  bool lasts) {
    // It is copied unless it lasts.
    MHD_Response* response = MHD_create_response_from_buffer(body.size(), const_cast<char*>(body.data()),
                                                             lasts ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY);
    return queue(connection, status, type, response);
  }

  static MHD_Result queue(MHD_Connection* connection, unsigned status, std::string_view type, MHD_Response* response) {
    if (response == nullptr) return MHD_NO;
    for (const auto& [name, value] : kEveryAnswer) MHD_add_response_header(response, name, value);
    MHD_add_response_header(response, "Content-Type", std::string(type).c_str());
    if (status == 405) MHD_add_response_header(response, "Allow", "GET, HEAD");
    const MHD_Result queued = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return queued;
  }

  MHD_Result stay(MHD_Connection* connection, bool head) {
    if (head) return send(connection, 200, "text/event-stream", "", false);
    Viewer* viewer = nullptr;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (viewers_.size() < kViewersMax && !closing_) viewer = &viewers_.emplace_back();
      if (viewer != nullptr) greet(*viewer, connection);
    }
    if (viewer == nullptr) return refuse(connection, {503, "as many viewers as there may be are here"});
    MHD_Response* response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kBlockBytes, &MicroHttp::read, viewer, &MicroHttp::forget);
    if (response == nullptr) forget(viewer);
    return queue(connection, 200, "text/event-stream", response);
  }

  // What it missed, and then the newest of each name.
  void greet(Viewer& viewer, MHD_Connection* connection) {
    viewer.http = this;
    viewer.connection = connection;
    std::string first = "retry: 1000\n\n";
    std::uint64_t last = 0;
    if (const char* told = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Last-Event-ID"))
      std::from_chars(told, told + std::strlen(told), last);
    if (last > 0 && last < number_) first += event_text(last, "behind", std::to_string(number_ - last));
    viewer.waiting.push_back(std::make_shared<const std::string>(std::move(first)));
    for (const auto& [name, text] : newest_) viewer.waiting.push_back(text);
  }

  static ssize_t read(void* of, std::uint64_t, char* out, std::size_t room) {
    auto& viewer = *static_cast<Viewer*>(of);
    const std::lock_guard<std::mutex> lock(viewer.http->mutex_);
    if (viewer.cut || viewer.http->closing_) return MHD_CONTENT_READER_END_OF_STREAM;
    if (viewer.waiting.empty()) {
      viewer.asleep = true;
      MHD_suspend_connection(viewer.connection);
      return 0;
    }
    const std::string& text = *viewer.waiting.front();
    const std::size_t size = std::min(room, text.size() - viewer.sent);
    std::memcpy(out, text.data() + viewer.sent, size);
    viewer.sent += size;
    if (viewer.sent == text.size()) {
      viewer.waiting.pop_front();
      viewer.sent = 0;
    }
    return static_cast<ssize_t>(size);
  }

  static void forget(void* of) {
    auto* const viewer = static_cast<Viewer*>(of);
    MicroHttp& http = *viewer->http;
    const std::lock_guard<std::mutex> lock(http.mutex_);
    http.viewers_.remove_if([viewer](const Viewer& one) { return &one == viewer; });
  }

  const Options options_;
  MHD_Daemon* daemon_ = nullptr;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::list<Viewer> viewers_;
  std::map<std::string, Text> newest_;  // by name
  std::uint64_t number_ = 0, cut_off_ = 0;
  bool closing_ = false;
};

}  // namespace

Result<std::unique_ptr<LoopbackHttp>> LoopbackHttp::open(Options options) {
  auto listener = listen_on_loopback(options.at.port);
  if (!listener.ok() && listener.code() == ErrorCode::kBusy && options.at.or_any) listener = listen_on_loopback(0);
  if (!listener.ok()) return listener.error();
  auto http = std::make_unique<MicroHttp>(std::move(options));
  SHOAL_TRY(http->start(*listener));
  return {std::unique_ptr<LoopbackHttp>(std::move(http))};
}

}  // namespace shoal
