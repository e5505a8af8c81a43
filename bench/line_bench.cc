#include "bench/line_bench.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "common/log.h"
#include "common/os/thread_loop.h"
#include "common/rng.h"
#include "transport/transport.h"
#include "transport/zmq/zmq_wire.h"

namespace shoal {
namespace {

constexpr Duration kAskPeriod = 20ms;               // control messages: as many as a busy peer sends
constexpr Duration kPatience = 30s;                 // for a link, and for what is under way at the end
constexpr std::uint64_t kWaitingBytes = 16u << 20;  // of frames that are not sent yet, so that the line is never idle
constexpr double kWarmUp = 0.3;                     // of `seconds`, not measured

// Counts the frames that it gets, and answers a StateQuery with what it counted.
class ServingEnd final : public Transport::Listener {
 public:
  void serve(Transport& transport) { transport_ = &transport; }
  void on_link_up(const Remote&) override {}
  void on_link_down(const Remote&, const Error&) override { gone = true; }
  void on_message(const Remote& remote, Message message, TransferId, std::uint64_t) override {
    const auto* query = std::get_if<StateQuery>(&message);
    if (!query) return;
    StateOffer answer;
    answer.version = query->version;
    answer.bytes = bytes_;
    [[maybe_unused]] const auto sent = transport_->send(remote.peer, answer);
  }
  void on_frames(const Remote&, TransferId, Result<std::vector<Bytes>> frames) override {
    if (!frames.ok()) return;
    for (const Bytes& frame : *frames) bytes_ += frame.size();
  }
  std::atomic<bool> gone{false};

 private:
  Transport* transport_ = nullptr;
  std::uint64_t bytes_ = 0;
};

struct Phase {
  std::vector<double> round_trips_ms;
  TimePoint from{}, to{};                      // of its first and last answer
  std::uint64_t bytes_from = 0, bytes_to = 0;  // what had come at the other end by then
};

class DiallingEnd final : public Transport::Listener {
 public:
  DiallingEnd(EventLoop& loop, const PeerId& other, std::uint64_t frame_bytes)
      : loop_(loop), other_(other), frame_(random_bytes(frame_bytes)) {}
  void begin(Transport& transport) { transport_ = &transport; }
  void on_link_up(const Remote&) override {
    up = true;
    ask();
  }
  void on_link_down(const Remote&, const Error& cause) override {
    failure_ = cause.message;
    failed = true;
  }
  void on_message(const Remote&, Message message, TransferId, std::uint64_t) override {
    const auto* answer = std::get_if<StateOffer>(&message);
    if (!answer) return;
    const auto asked = asked_.find(answer->version.value);
    if (asked == asked_.end()) return;
    const Duration time = loop_.now() - asked->second;
    asked_.erase(asked);
    came_ = answer->bytes;
    if (!phase_) return;
    if (phase_->round_trips_ms.empty()) phase_->from = loop_.now(), phase_->bytes_from = came_;
    phase_->round_trips_ms.push_back(seconds_of(time) * 1e3);
    phase_->to = loop_.now(), phase_->bytes_to = came_;
  }
  void on_frames(const Remote&, TransferId, Result<std::vector<Bytes>>) override {}

  void measure(Phase* phase) { phase_ = phase; }
  void fill(bool on) { filling_ = on; }
  bool arrived() const { return came_ == sent_; }
  std::uint64_t frame_bytes() const { return sent_; }
  std::uint64_t asked() const { return next_; }
  const std::string& failure() const { return failure_; }
  std::atomic<bool> up{false}, failed{false};

 private:
  static Bytes random_bytes(std::uint64_t size) {
    Buffer buffer(size);
    Rng rng(1);
    for (std::uint64_t i = 0; i < size; ++i) buffer.data()[i] = static_cast<std::uint8_t>(rng.below(256));
    return std::move(buffer).freeze();
  }
  void ask() {
    if (failed) return;
    asked_.emplace(next_, loop_.now());
    StateQuery query;
    query.version = Version(next_++);
    [[maybe_unused]] const auto sent = transport_->send(other_, query);
    while (filling_ && transport_->stats(other_).queued_bytes < kWaitingBytes) {
      if (!transport_->send(other_, Chunk{}, {frame_}).ok()) break;
      sent_ += frame_.size();
    }
    loop_.after(kAskPeriod, [this] { ask(); });
  }

  EventLoop& loop_;
  Transport* transport_ = nullptr;
  const PeerId other_;
  const Bytes frame_;
  std::map<std::uint64_t, TimePoint> asked_;
  std::uint64_t next_ = 0, sent_ = 0, came_ = 0;
  bool filling_ = false;
  Phase* phase_ = nullptr;
  std::string failure_;
};

RunId run_of_bench() {
  RunId run;
  run.bytes.fill(0x11);
  return run;
}

// What both ends have; used on the loop alone.
struct End {
  std::unique_ptr<ZmqWire> wire;
  std::unique_ptr<Transport> transport;

  Status open(EventLoop& loop, const std::string& listen) {
    const KeyPair key = KeyPair::generate();
    id = key.id();
    SHOAL_ASSIGN(wire,
                 make_zmq_wire(loop, {.key = key, .listen = listen, .admission = Admission::kOpen, .admitted = {}}));
    Transport::Options options;
    options.run = run_of_bench();
    options.self = id;
    options.session = Session::of(id, 1);
    transport = std::make_unique<Transport>(*wire, loop, options);
    return {};
  }
  PeerId id;
};

bool wait_for(const std::function<bool()>& holds) {
  for (const TimePoint limit = monotonic_now() + kPatience; !holds(); std::this_thread::sleep_for(5ms))
    if (monotonic_now() > limit) return false;
  return true;
}

Status serve(const LineBenchOptions& options) {
  LoopThread thread;
  End end;
  std::unique_ptr<ServingEnd> listener;
  Status opened;
  thread.call([&] {
    opened = end.open(thread.loop(), options.serve);
    if (!opened.ok()) return;
    listener = std::make_unique<ServingEnd>();
    listener->serve(*end.transport);
    end.transport->set_listener(listener.get());
  });
  if (opened.ok()) {
    std::printf("%s@%s\n", hex_of(end.id).c_str(), end.wire->listening_address().c_str());
    std::fflush(stdout);
    while (!listener->gone) std::this_thread::sleep_for(20ms);
  }
  thread.call([&] {
    end.transport.reset();
    end.wire.reset();
  });
  thread.stop();
  return opened;
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())))];
}

void print(const Phase& idle, const Phase& full, const DiallingEnd& end, std::uint64_t counted, std::uint64_t handed) {
  const double seconds = seconds_of(full.to - full.from);
  const nlohmann::ordered_json line = {
      {"schema", "shoal.bench.line/1"},
      {"idle_p50_ms", quantile(idle.round_trips_ms, 0.5)},
      {"idle_p99_ms", quantile(idle.round_trips_ms, 0.99)},
      {"full_p50_ms", quantile(full.round_trips_ms, 0.5)},
      {"full_p99_ms", quantile(full.round_trips_ms, 0.99)},
      {"answers", full.round_trips_ms.size()},
      {"bulk_mbit", seconds > 0 ? static_cast<double>(full.bytes_to - full.bytes_from) * 8e-6 / seconds : 0.0},
      {"frame_bytes", end.frame_bytes()},
      {"questions", end.asked()},
      {"message_bytes", counted},
      {"socket_bytes", handed}};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

Status dial(const LineBenchOptions& options) {
  const std::size_t at = options.to.find('@');
  const auto key = parse_hex32(options.to.substr(0, at));
  if (at == std::string::npos || !key.ok())
    return make_error(ErrorCode::kInput, options.to + " is no PEER_ID@HOST:PORT");
  const PeerId other{*key};
  LoopThread thread;
  End end;
  DiallingEnd listener(thread.loop(), other, options.frame_kib << 10);
  Phase idle, full;
  Status opened;
  std::uint64_t counted = 0, handed = 0;
  const auto on_loop = [&](const std::function<void()>& work) { thread.call(work); };
  const auto pass = [&](double seconds) { std::this_thread::sleep_for(from_seconds(seconds)); };
  on_loop([&] {
    opened = end.open(thread.loop(), "");
    if (!opened.ok()) return;
    listener.begin(*end.transport);
    end.transport->set_listener(&listener);
    end.transport->learn(other, {{options.to.substr(at + 1)}});
    end.transport->dial(other);
  });
  bool whole = opened.ok() && wait_for([&] { return listener.up || listener.failed; }) && !listener.failed;
  if (whole) {
    on_loop([&] { listener.measure(&idle); });
    pass(options.idle);
    on_loop([&] { listener.measure(nullptr), listener.fill(true); });
    pass(kWarmUp * options.seconds);
    on_loop([&] { listener.measure(&full); });
    pass(options.seconds);
    on_loop([&] { listener.measure(nullptr), listener.fill(false); });
    whole = wait_for([&] {
      bool arrived = false;
      on_loop([&] { arrived = listener.arrived(); });
      return arrived || listener.failed;
    });
    on_loop([&] { counted = end.transport->counters().sent_bytes, handed = end.wire->bytes_sent(); });
  }
  if (whole && !listener.failed) print(idle, full, listener, counted, handed);
  if (options.hold)
    while (std::getchar() != EOF) {
    }
  on_loop([&] {
    end.transport.reset();
    end.wire.reset();
  });
  thread.stop();
  SHOAL_TRY(opened);
  if (whole && !listener.failed) return {};
  return make_error(ErrorCode::kUnreachable, listener.failed ? listener.failure() : "the other end does not answer");
}

}  // namespace

Status run_line_bench(const LineBenchOptions& options) {
  set_log_level(LogLevel::kWarning);
  return options.serve.empty() ? dial(options) : serve(options);
}

}  // namespace shoal
