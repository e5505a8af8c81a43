#include "transport/mapping/port_mapping.h"

#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include "common/check.h"
#include "common/os/gateway.h"
#include "common/os/own_addresses.h"
#include "common/os/posix_file.h"
#include "common/os/tcp_place.h"
#include "common/os/thread_loop.h"
#include "transport/whereabouts.h"

namespace shoal {
namespace {

// UDP to that place alone, from our address `from` (empty: that of the route). ERRORS: kUnreachable.
Result<Descriptor> udp_toward(const HostPort& place, const std::string& from) {
  const auto find = [](const std::string& host, std::uint16_t port) {
    addrinfo hints = {}, *found = nullptr;
    hints.ai_socktype = SOCK_DGRAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) found = nullptr;
    return std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>(found, &::freeaddrinfo);
  };
  const auto to = find(place.host, place.port);
  if (!to) return make_error(ErrorCode::kUnreachable, "\"" + place.host + "\" is no address of a router");
  Descriptor socket(::socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto ours = find(from.empty() ? place.host : from, 0);
  const bool bound = from.empty() || (ours && ::bind(socket.get(), ours->ai_addr, ours->ai_addrlen) == 0);
  if (bound && ::connect(socket.get(), to->ai_addr, to->ai_addrlen) == 0) return socket;
  return make_error(ErrorCode::kUnreachable, "the router " + place.host + " is not reached: " + std::strerror(errno));
}

bool is_v6(const std::string& address) {
  const auto parsed = parse_dial_address(address);
  return parsed.ok() && parsed->control.is_v6();
}
// One of those that others are told which a talk is for.
std::optional<std::string> host_for(const std::vector<std::string>& addresses, IpFamily family) {
  for (const std::string& address : addresses) {
    const auto parsed = parse_dial_address(address);
    if (!parsed.ok() || parsed->via || is_v6(address) != (family == IpFamily::kV6) || all_loopback({address})) continue;
    if (is_private_host(parsed->control.host) == (family == IpFamily::kV4)) return parsed->control.host;
  }
  return std::nullopt;
}

}  // namespace

// One router: its socket and the talk with it, or the next time that one begins.
class PortMapping::Thread {
 public:
  Thread(PortMappingOptions options, std::function<void()> tell)
      : options_(std::move(options)), tell_(std::move(tell)) {
    SHOAL_CHECK(options_.ports.size() <= PortMappingOptions::kPortsMax);
    SHOAL_CHECK(std::ranges::find(options_.ports, 0) == options_.ports.end());  // to a router that is all of them
    for (const IpFamily family : {IpFamily::kV4, IpFamily::kV6}) {
      if (!options_.ports.empty() &&
          (options_.router ? family == IpFamily::kV4 : host_for(options_.addresses, family).has_value()))
        lines_.push_back({.family = family});
    }
    said_.resize(lines_.size());
    if (lines_.empty()) return;
    wake_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    thread_ = std::thread([this] { run(); });
    ::pthread_setname_np(thread_.native_handle(), "mapping");
  }

  ~Thread() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
    thread_.join();
  }

  std::vector<Mapping> now() const {
    const std::lock_guard lock(mutex_);
    return said_;
  }

  std::vector<Mapping> await(Duration patience) const {
    std::unique_lock lock(mutex_);
    heard_.wait_for(lock, patience, [this] { return std::ranges::all_of(said_, &Mapping::settled); });
    return said_;
  }

 private:
  struct Line {
    IpFamily family = IpFamily::kV4;
    Descriptor socket{};
    std::optional<MapTalk> talk{};
    TimePoint next_at{};  // without a talk
    bool held = false;    // the talk mapped something
    Mapping mapping{};
  };

  bool tells(const std::string& host) const {
    return std::ranges::any_of(options_.addresses, [&](const std::string& address) {
      const auto parsed = parse_dial_address(address);
      return parsed.ok() && plain_host(parsed->control.host) == plain_host(host);
    });
  }

  bool stopping() const {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  void run() {
    while (!stopping()) {
      for (Line& line : lines_) turn(line);
      say();
      wait(next_at());
    }
    for (Line& line : lines_)
      if (line.talk) line.talk->leave(monotonic_now());
    const TimePoint deadline = monotonic_now() + kFarewellMax;
    while (monotonic_now() < deadline &&
           std::ranges::any_of(lines_, [](const Line& line) { return line.talk.has_value(); })) {
      for (Line& line : lines_) turn(line);
      wait(std::min(deadline, next_at()));
    }
  }

  void turn(Line& line) {
    const TimePoint now = monotonic_now();
    if (!line.talk && now >= line.next_at) begin(line);
    if (!line.talk) return;
    for (const Bytes& word : line.talk->turn(now))
      if (::send(line.socket.get(), word.data(), word.size(), MSG_NOSIGNAL) < 0 && errno == ECONNREFUSED)
        line.talk->on_refused();
    look(line);
  }

  void begin(Line& line) {
    if (stopping()) return;
    HostPort router = options_.router.value_or(HostPort{gateway_of(line.family), kRouterPort});
    const auto fail = [&](std::string why) {
      line.mapping = {};
      line.mapping.why = std::move(why);
      line.next_at = monotonic_now() + kAskAgain;
    };
    if (router.host.empty()) return fail("no default route leads over a router");
    const bool v6 = line.family == IpFamily::kV6;
    auto socket = udp_toward(router, v6 ? host_for(options_.addresses, line.family).value_or("") : "");
    if (!socket.ok()) return fail(socket.error().message);
    const auto own = own_place(socket->get());
    const auto client = own ? ip_bytes(own->host) : make_error(ErrorCode::kUnreachable, "");
    if (!client.ok()) return fail("this machine has no address toward its router");
    // A tunnel, or another network: the router would forward to where nobody listens, and name an address that its
    // owner may hide.
    if (!options_.router && !tells(own->host)) return fail("the way to the router is not that of the told address");
    line.socket = *std::move(socket);
    line.talk.emplace(*client, options_.ports, options_.secret);
    line.held = false;
  }

  void read(Line& line) {
    std::array<std::uint8_t, kRouterWordMax + 1> datagram{};
    while (line.talk) {
      const ssize_t size = ::recv(line.socket.get(), datagram.data(), datagram.size(), 0);
      if (size < 0 && errno == ECONNREFUSED) line.talk->on_refused();
      if (size < 0) break;
      line.talk->take(ByteView(datagram).first(static_cast<std::size_t>(size)), monotonic_now());
    }
    look(line);
  }

  void look(Line& line) {
    if (!line.talk) return;
    if (line.talk->mapping().settled() || line.talk->over()) line.mapping = line.talk->mapping();
    line.held |= !line.mapping.by.empty();
    if (!line.talk->over()) return;
    line.talk.reset();
    line.socket = {};
    line.next_at = monotonic_now() + (line.held ? kAskAgainAfterLoss : kAskAgain);
  }

  void say() {
    std::vector<Mapping> mappings;
    for (const Line& line : lines_) mappings.push_back(line.mapping);
    {
      const std::lock_guard lock(mutex_);
      if (said_ == mappings) return;
      said_ = std::move(mappings);
    }
    heard_.notify_all();
    tell_();
  }

  TimePoint next_at() const {
    TimePoint next = TimePoint::max();
    for (const Line& line : lines_) {
      if (line.talk)
        next = std::min(next, line.talk->wake_at());
      else if (!stopping())
        next = std::min(next, line.next_at);
    }
    return next;
  }

  void wait(TimePoint until) {
    std::vector<pollfd> waited{{wake_.get(), POLLIN, 0}};
    for (const Line& line : lines_) waited.push_back({line.socket.get(), POLLIN, 0});  // -1: not looked at
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(until - monotonic_now()).count();
    ::poll(waited.data(), waited.size(), static_cast<int>(std::clamp<std::int64_t>(rest, 0, 60'000)));
    if (waited[0].revents != 0) {
      std::uint64_t count = 0;
      (void)!::read(wake_.get(), &count, sizeof count);
    }
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (waited[i + 1].revents != 0) read(lines_[i]);
  }

  const PortMappingOptions options_;
  const std::function<void()> tell_;
  Descriptor wake_;
  std::vector<Line> lines_;  // the thread's, as all below it in turn
  mutable std::mutex mutex_;
  mutable std::condition_variable heard_;
  std::vector<Mapping> said_;  // these two under the mutex
  bool stopping_ = false;
  std::thread thread_;
};

PortMapping::PortMapping(EventLoop& loop, PortMappingOptions options, std::function<void()> changed)
    : thread_(std::make_unique<Thread>(std::move(options),
                                       [&loop, told = lifetime_.guard(std::move(changed))] { loop.post(told); })) {}

PortMapping::~PortMapping() = default;

std::vector<Mapping> PortMapping::now() const { return thread_->now(); }
std::vector<Mapping> PortMapping::await(Duration patience) const { return thread_->await(patience); }

std::uint64_t mapping_secret(const KeyPair& key) {
  const Signature signature = key.sign(Bytes::copy_of(std::string_view("shoal mapping 1")));
  std::uint64_t secret = 0;
  for (std::size_t i = 0; i < sizeof secret; ++i) secret = secret << 8 | signature[i];
  return secret;
}

std::vector<std::uint16_t> lane_ports(std::uint16_t port) {
  if (port == 65535) return {};
  return {port, static_cast<std::uint16_t>(port + 1)};
}

std::vector<std::string> beside(const std::vector<std::string>& mapped, const std::vector<std::string>& addresses) {
  std::vector<std::string> all = mapped;
  std::ranges::copy_if(addresses, std::back_inserter(all),
                       [&](const std::string& address) { return std::ranges::find(mapped, address) == mapped.end(); });
  return all;
}

std::vector<std::string> mapped_addresses(const std::vector<Mapping>& mappings, std::uint16_t port) {
  std::vector<std::string> addresses;
  const auto bulk = static_cast<std::uint16_t>(port + 1);
  for (const Mapping& mapping : mappings) {
    if (mapping.by.empty() || !mapping.ports.contains(port) || !mapping.ports.contains(bulk)) continue;
    const std::uint16_t outer_bulk = mapping.ports.at(bulk);
    // Its own number of the bulk lane's port is what the process names by itself.
    addresses.push_back(DialAddress{.control = {mapping.host, mapping.ports.at(port)},
                                    .bulk_port = outer_bulk == bulk ? std::uint16_t{0} : outer_bulk}
                            .text());
  }
  return addresses;
}

std::string mapping_text(const std::vector<Mapping>& mappings) {
  std::string text;
  for (const Mapping& mapping : mappings) {
    const std::string one = mapping.by.empty() ? mapping.why : "mapped by " + mapping.by;
    if (!one.empty() && text.find(one) == std::string::npos) text += (text.empty() ? "" : "; ") + one;
  }
  return text;
}

}  // namespace shoal
