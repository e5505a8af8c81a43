#include "bench/relay_bench.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "bench/thread_times.h"
#include "common/crypto/sign.h"
#include "common/log.h"
#include "common/os/resident_memory.h"
#include "common/os/tcp_place.h"
#include "common/os/thread_loop.h"
#include "transport/line_caps.h"
#include "transport/relay/relay.h"

namespace shoal {
namespace {

constexpr std::size_t kPushBytes = 64u << 10;
constexpr Duration kWarmUp = 1s;

Error broken(const std::string& what) { return make_error(ErrorCode::kUnreachable, what + " on loopback failed"); }

// A connection that waits for what it asks, five seconds at most.
class Line {
 public:
  static Result<Line> to(const HostPort& place) {
    Line line;
    line.socket_ = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval patience{5, 0};
    ::setsockopt(line.socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(line.socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    SHOAL_TRY(dial_from(line.socket_, place));
    return line;
  }
  static Line of(Descriptor accepted) {
    Line line;
    line.socket_ = std::move(accepted);
    return line;
  }
  Status say(ByteView bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return broken("sending");
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
    return {};
  }
  Result<std::vector<std::uint8_t>> hear(std::size_t size) const {
    std::vector<std::uint8_t> bytes(size);
    if (::recv(socket_.get(), bytes.data(), size, MSG_WAITALL) != static_cast<ssize_t>(size)) return broken("reading");
    return bytes;
  }
  Status joined() const {
    SHOAL_ASSIGN(const auto bytes, hear(kRelayVerdictBytes));
    SHOAL_ASSIGN(const RelayVerdict verdict, parse_relay_verdict(bytes));
    if (verdict == RelayVerdict::kJoined) return {};
    return make_error(ErrorCode::kUnreachable, "the relay: " + std::string(name_of(verdict)));
  }
  int fd() const { return socket_.get(); }
  void end() const { ::shutdown(socket_.get(), SHUT_RDWR); }

 private:
  Descriptor socket_;
};

struct Pair {
  Line from, to;
  std::optional<Line> home{};  // where the called end is registered
  std::atomic<std::uint64_t> came{0};
};
using Pairs = std::vector<std::unique_ptr<Pair>>;

Result<Line> register_at(const Relay& relay, const RunId& run, const KeyPair& key) {
  SHOAL_ASSIGN(Line line, Line::to(relay.listening_at()));
  const RelayHome home{RelayKind::kRegister, run, key.id()};
  SHOAL_TRY(line.say(pack_relay_home(home)));
  RelayNonce nonce;
  SHOAL_ASSIGN(const auto drawn, line.hear(nonce.size()));
  std::copy(drawn.begin(), drawn.end(), nonce.begin());
  SHOAL_TRY(line.say(key.sign(home_text(home, nonce))));
  SHOAL_TRY(line.joined());
  return line;
}

Result<std::unique_ptr<Pair>> join(const Relay& relay, const RunId& run, const KeyPair& caller, const KeyPair& callee) {
  SHOAL_ASSIGN(Line home, register_at(relay, run, callee));
  RelayCall call{.lane = Lane::kBulk, .run = run, .callee = callee.id(), .caller = caller.id()};
  fill_randomly(call.call_name);
  call.signature = caller.sign(call_text(call));
  SHOAL_ASSIGN(Line from, Line::to(relay.listening_at()));
  SHOAL_TRY(from.say(pack_relay_call(call)));
  SHOAL_ASSIGN(const auto word, home.hear(kRelayIncomingBytes));
  SHOAL_ASSIGN(const RelayIncoming incoming, parse_relay_incoming(word));
  SHOAL_ASSIGN(Line to, Line::to(relay.listening_at()));
  SHOAL_TRY(to.say(pack_relay_answer(incoming.call_name)));
  SHOAL_TRY(to.joined());
  SHOAL_TRY(from.joined());
  return std::unique_ptr<Pair>(new Pair{std::move(from), std::move(to), std::move(home)});
}

Result<Pairs> joined_pairs(Relay& relay, std::size_t count) {
  const RunId run = RunId{KeyPair::generate().id().bytes};
  std::vector<KeyPair> keys;
  std::vector<PeerId> members;
  for (std::size_t i = 0; i < 2 * count; ++i) members.push_back(keys.emplace_back(KeyPair::generate()).id());
  relay.follow(run, members.front(), members);
  Pairs pairs;
  for (std::size_t i = 0; i < count; ++i) {
    SHOAL_ASSIGN(std::unique_ptr<Pair> pair, join(relay, run, keys[2 * i], keys[2 * i + 1]));
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

Result<Pairs> plain_pairs(std::size_t count) {
  const Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in any{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 ||
      ::listen(listener.get(), 64) != 0)
    return broken("listening");
  const auto place = own_place(listener);
  if (!place) return broken("listening");
  Pairs pairs;
  for (std::size_t i = 0; i < count; ++i) {
    SHOAL_ASSIGN(Line from, Line::to(*place));
    pairs.emplace_back(new Pair{std::move(from), Line::of(Descriptor(::accept(listener.get(), nullptr, nullptr)))});
  }
  return pairs;
}

struct Outcome {
  double bytes_per_second = 0, relay_seconds = 0;  // seconds of the relay's thread on a core
  std::uint64_t bytes = 0;                         // that came
  std::vector<double> shares;                      // by pair
};

// All of them push until their time is over.
Outcome measure(const Pairs& pairs, double seconds) {
  std::vector<std::thread> ends;
  const auto start = [&](const char* name, std::function<void()> work) {
    ends.emplace_back([name, work = std::move(work)] {
      pthread_setname_np(pthread_self(), name);
      work();
    });
  };
  for (const auto& pair : pairs) {
    start("pushes", [&pair] {
      const std::vector<std::uint8_t> bytes(kPushBytes);
      while (pair->from.say(bytes).ok()) {
      }
    });
    start("reads", [&pair] {
      std::vector<std::uint8_t> bytes(kPushBytes);
      for (ssize_t got; (got = ::recv(pair->to.fd(), bytes.data(), bytes.size(), 0)) > 0;)
        pair->came += static_cast<std::uint64_t>(got);
    });
  }
  const auto counted = [&] {
    std::vector<std::uint64_t> all;
    for (const auto& pair : pairs) all.push_back(pair->came);
    return all;
  };
  std::this_thread::sleep_for(kWarmUp);
  const std::vector<std::uint64_t> before = counted();
  const ThreadTimes times_before = thread_times(::getpid());
  const TimePoint from = monotonic_now();
  std::this_thread::sleep_for(from_seconds(seconds));
  const std::vector<std::uint64_t> after = counted();
  const double passed = seconds_of(monotonic_now() - from);
  const ThreadTimes times = difference(thread_times(::getpid()), times_before);
  Outcome outcome;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    outcome.bytes += after[i] - before[i];
    outcome.shares.push_back(static_cast<double>(after[i] - before[i]));
  }
  outcome.bytes_per_second = static_cast<double>(outcome.bytes) / passed;
  if (const auto relay = times.find("relay"); relay != times.end()) outcome.relay_seconds = relay->second.on_core_s;
  for (const auto& pair : pairs) {
    pair->from.end();
    pair->to.end();
  }
  for (std::thread& end : ends) end.join();
  return outcome;
}

double mbit(double bytes_per_second) { return bytes_per_second * 8e-6; }

}  // namespace

double jain_index(const std::vector<double>& shares) {
  double sum = 0, squares = 0;
  for (const double share : shares) sum += share, squares += share * share;
  return squares == 0 ? 0 : sum * sum / (static_cast<double>(shares.size()) * squares);
}

Status run_relay_bench(const RelayBenchOptions& options) {
  set_log_level(LogLevel::kWarning);
  SHOAL_ASSIGN(const double rate, parse_line_cap("--rate", options.rate));
  const auto over_relay = [&](double cap, double& mib_a_pair) -> Result<Outcome> {
    SHOAL_ASSIGN(const auto relay, Relay::start({"127.0.0.1", 0}, {.bytes_per_second = cap}));
    const std::uint64_t before = resident_memory().now;
    SHOAL_ASSIGN(const Pairs pairs, joined_pairs(*relay, options.pairs));
    const Outcome outcome = measure(pairs, options.seconds);
    const std::uint64_t grown = resident_memory().most - std::min(before, resident_memory().most);
    mib_a_pair = static_cast<double>(grown) / static_cast<double>(options.pairs) / (1 << 20);
    return outcome;
  };
  double capped_mib = 0, free_mib = 0;
  SHOAL_ASSIGN(const Outcome capped, over_relay(rate, capped_mib));
  SHOAL_ASSIGN(const Outcome free, over_relay(0, free_mib));
  SHOAL_ASSIGN(const Pairs without, plain_pairs(options.pairs));
  const Outcome plain = measure(without, options.seconds);
  const double seconds_a_gb = free.relay_seconds / (static_cast<double>(free.bytes) * 1e-9);
  if (options.json) {
    const nlohmann::ordered_json line = {{"schema", "shoal.bench.relay/1"},
                                         {"pairs", options.pairs},
                                         {"cap_mbit", mbit(rate)},
                                         {"capped_mbit", mbit(capped.bytes_per_second)},
                                         {"jain", jain_index(capped.shares)},
                                         {"mib_a_pair", capped_mib},
                                         {"free_mbit", mbit(free.bytes_per_second)},
                                         {"cpu_s_a_gb", seconds_a_gb},
                                         {"plain_mbit", mbit(plain.bytes_per_second)}};
    std::printf("%s\n", line.dump().c_str());
    return {};
  }
  std::printf("%zu pairs that push all the time, %.0f s each\n", options.pairs, options.seconds);
  std::printf(
      "  below a cap   %9.1f Mbit/s of %.1f (%+.2f %%), Jain's index %.4f, %.2f MiB a pair with both its ends\n",
      mbit(capped.bytes_per_second), mbit(rate), 100 * (capped.bytes_per_second / rate - 1), jain_index(capped.shares),
      capped_mib);
  std::printf("  without one   %9.1f Mbit/s, %.2f CPU-s a GB in the relay\n", mbit(free.bytes_per_second),
              seconds_a_gb);
  std::printf("  no relay      %9.1f Mbit/s over plain TCP, the limit of this machine\n", mbit(plain.bytes_per_second));
  return {};
}

}  // namespace shoal
