#include "bench/page_bench.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/os/posix_file.h"
#include "common/os/resident_memory.h"
#include "common/os/thread_loop.h"
#include "common/rng.h"
#include "demo/work_folder.h"
#include "events/books/run_view.h"
#include "events/event_log.h"
#include "page/loopback_http.h"
#include "page/replay.h"
#include "page/run_json.h"
#include "page/run_metrics.h"

namespace shoal {
namespace {

constexpr double kBegin = 1.7e9;
constexpr std::uint64_t kTargets = 512, kRound = 256;
constexpr int kSecondsWithViewers = 60, kSecondsPerSession = 600;

double seconds_on(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The launching process of a run that goes on for ever, one second after the other.
class ToldRun {
 public:
  using Listener = std::function<void(const EventRecord& record, double time)>;

  explicit ToldRun(const PageBenchOptions& options) : options_(options) {
    for (std::uint32_t peer = 0; peer < options.peers; ++peer) join(peer);
  }

  void second(double at, RunView& view) {
    second(at, [&view](const EventRecord& record, double time) { view.take({record, time, true, {1, 1}}); });
  }
  void second(double at, Listener listener) {
    listener_ = std::move(listener);
    time_ = at;
    due_ += options_.microbatches_per_s;
    for (; due_ >= 1; due_ -= 1) microbatch();
    if (++seconds_ % kSecondsPerSession == 0) replace(static_cast<std::uint32_t>(rng_.next() % options_.peers));
    tell({.event = EventKind::kBytes, .sent = 100'000, .received = 90'000});
  }
  std::uint64_t events() const { return events_; }

 private:
  void tell(const EventRecord& record) {
    if (!listener_) return told_early_.push_back(record);
    for (const EventRecord& early : std::exchange(told_early_, {})) tell(early);
    listener_(record, time_);
    ++events_;
  }
  StageId stage_of(std::uint32_t peer) const { return StageId{static_cast<std::uint16_t>(peer % options_.stages)}; }
  void join(std::uint32_t peer) {
    if (sessions_.size() <= peer) {
      sessions_.resize(peer + 1);
      serials_.resize(peer + 1);
      stepped_.resize(peer + 1);
    }
    sessions_[peer] = {mix64(peer), ++lives_};
    serials_[peer] = 0;
    stepped_[peer].clear();
    for (const char* state : {"joined", "serving"})
      tell({.event = EventKind::kMember, .stage = stage_of(peer), .about = sessions_[peer], .state = state});
  }
  void replace(std::uint32_t peer) {
    tell(session_over_event(sessions_[peer], stage_of(peer), "no sign of life within the membership time"));
    for (const std::uint64_t serial : stepped_[peer])
      tell({.event = EventKind::kLost,
            .microbatch = MicrobatchId{1, serial},
            .stage = stage_of(peer),
            .entry_name = EntryName{sessions_[peer], serial},
            .cause = "no sign of life within the membership time"});
    join(peer);
  }
  void microbatch() {
    const MicrobatchId id{1, serial_++};
    tell({.event = EventKind::kIssue, .microbatch = id, .step = StepId{0}, .sample = SampleId{id.serial}, .epoch = 0});
    std::vector<EntryName> path;
    for (std::uint16_t stage = 0; stage < options_.stages; ++stage) {
      const std::uint32_t replicas = options_.peers / options_.stages;
      const auto peer = static_cast<std::uint32_t>(stage + options_.stages * (rng_.next() % replicas));
      path.push_back({sessions_[peer], ++serials_[peer]});
      stepped_[peer].push_back(serials_[peer]);
    }
    tell(commit_event(id, std::move(path), 3.0, kTargets));
    if (serial_ % 8 == 0)
      tell({.event = EventKind::kTrain, .step = StepId{serial_ / 8}, .loss = 3.0, .targets = serial_ * kTargets});
    if (serial_ % kRound == 0)
      for (std::uint16_t stage = 0; stage < options_.stages; ++stage) round(StageId{stage});
  }
  void round(StageId stage) {
    RoundCommit commit;
    commit.stage = stage;
    commit.round = RoundId{serial_ / kRound};
    commit.version = Version{serial_ / kRound};
    for (std::uint32_t peer = stage.value; peer < options_.peers; peer += options_.stages)
      commit.secured.push_back({sessions_[peer], std::exchange(stepped_[peer], {})});
    tell({.event = EventKind::kRoundOpen, .stage = stage, .round = commit.round, .members = commit.secured.size()});
    tell(event_of(commit));
  }

  const PageBenchOptions& options_;
  Listener listener_;
  std::vector<EventRecord> told_early_;
  double time_ = 0, due_ = 0;
  Rng rng_{7};
  std::uint64_t events_ = 0, seconds_ = 0, serial_ = 0, lives_ = 0;
  std::vector<Session> sessions_;
  std::vector<std::uint64_t> serials_;
  std::vector<std::vector<std::uint64_t>> stepped_;
};

// A browser that reads along, on a thread of its own.
class Reader {
 public:
  explicit Reader(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const std::string request = "GET /events HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) + "\r\n\r\n";
    if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return;
    ::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL);
    thread_ = std::thread([this] {
      std::vector<char> piece(1u << 16);
      for (ssize_t got = 1; got > 0; got = ::recv(socket_.get(), piece.data(), piece.size(), 0)) bytes_ += got;
      cpu_s_ = seconds_on(CLOCK_THREAD_CPUTIME_ID);
    });
  }
  // Its processor time.
  double end() {
    ::shutdown(socket_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    return cpu_s_;
  }
  std::uint64_t bytes() const { return static_cast<std::uint64_t>(bytes_); }

 private:
  Descriptor socket_;
  std::atomic<std::int64_t> bytes_{0};
  double cpu_s_ = 0;
  std::thread thread_;
};

struct PageFigures {
  double loop_share = 0, process_share = 0;  // of one processor, with viewers
  double event_us = 0, moment_us = 0;
  std::uint64_t moment_bytes = 0, story_bytes = 0, events = 0, viewer_bytes = 0, cut_off = 0;
  std::uint64_t memory_early = 0, memory_late = 0;  // resident
  double replay_s = 0;
  std::uint64_t replayed = 0;  // lines
};

// What LivePage does, each half second of the run.
void tell(RunView& view, RunMetrics& metrics, LoopbackHttp& http, int half, PageFigures& figures) {
  const double begin = seconds_on(CLOCK_THREAD_CPUTIME_ID);
  metrics.update(view);
  const std::string moment = moment_json(view);
  figures.moment_us += 1e6 * (seconds_on(CLOCK_THREAD_CPUTIME_ID) - begin);
  figures.moment_bytes = moment.size();
  if (half % 10 == 0) {
    const std::string story = story_json(view);
    figures.story_bytes = story.size();
    http.publish("story", story);
  }
  http.publish("moment", moment);
}

// A minute of the run in as little time as it takes; what a viewer has not read yet is waited for, so that none is cut.
void with_viewers(const PageBenchOptions& options, ToldRun& run, RunView& view, LoopbackHttp& http,
                  PageFigures& figures) {
  RunMetrics metrics;
  std::vector<std::unique_ptr<Reader>> readers;
  for (std::uint32_t i = 0; i < options.viewers; ++i) readers.push_back(std::make_unique<Reader>(http.port()));
  while (http.viewers() < options.viewers) std::this_thread::yield();
  const double loop_begin = seconds_on(CLOCK_THREAD_CPUTIME_ID), begin = seconds_on(CLOCK_PROCESS_CPUTIME_ID);
  double waited = 0;
  std::uint64_t told = 0;
  for (int second = 0; second < kSecondsWithViewers; ++second) {
    run.second(kBegin + second, view);
    for (int half = 0; half < 2; ++half) {
      view.advance(kBegin + second + 0.5 * half);
      tell(view, metrics, http, 2 * second + half, figures);
      told += figures.moment_bytes;
      const double wait = seconds_on(CLOCK_THREAD_CPUTIME_ID);
      for (const auto& reader : readers)
        while (reader->bytes() < told && http.cut_off() == 0) ::sched_yield();
      waited += seconds_on(CLOCK_THREAD_CPUTIME_ID) - wait;
    }
  }
  figures.loop_share = (seconds_on(CLOCK_THREAD_CPUTIME_ID) - loop_begin - waited) / kSecondsWithViewers;
  double others = waited;
  for (const auto& reader : readers) {
    figures.viewer_bytes += reader->bytes();
    others += reader->end();
  }
  figures.process_share = (seconds_on(CLOCK_PROCESS_CPUTIME_ID) - begin - others) / kSecondsWithViewers;
  figures.moment_us /= 2 * kSecondsWithViewers;
  figures.cut_off = http.cut_off();
}

void for_hours(const PageBenchOptions& options, ToldRun& run, RunView& view, PageFigures& figures) {
  figures.memory_early = resident_memory().now;
  const std::uint64_t events = run.events();
  const double begin = seconds_on(CLOCK_THREAD_CPUTIME_ID);
  for (int second = kSecondsWithViewers; second < options.hours * 3600; ++second) run.second(kBegin + second, view);
  figures.events = run.events() - events;
  figures.event_us = 1e6 * (seconds_on(CLOCK_THREAD_CPUTIME_ID) - begin) /
                     static_cast<double>(std::max<std::uint64_t>(1, figures.events));
  figures.memory_late = resident_memory().now;
}

// The same run's file, and how long `shoal watch` reads it.
Status replay(const PageBenchOptions& options, PageFigures& figures) {
  SHOAL_ASSIGN(const WorkFolder folder, WorkFolder::make("page"));
  const EventIdentity trainer = {.role = "trainer", .run = {}, .peer = {}, .session = {1, 1}};
  {
    std::ofstream file(folder.path() + "/launch.jsonl");
    ToldRun run(options);
    for (int second = 0; run.events() < options.replayed; ++second)
      run.second(kBegin + second, [&](const EventRecord& record, double time) {
        file << event_line(trainer, WallTime(from_seconds(time)), record);
      });
  }
  const TimePoint begin = monotonic_now();
  SHOAL_ASSIGN(const Replay replay, Replay::read(folder.path(), {}));
  figures.replay_s = seconds_of(monotonic_now() - begin);
  figures.replayed = replay.lines();
  return {};
}

}  // namespace

Status run_page_bench(const PageBenchOptions& options) {
  PageFigures figures;
  SHOAL_ASSIGN(const auto http, LoopbackHttp::open({}));
  ToldRun run(options);
  RunView view;
  view.set_facts({.name = "bench", .stages = options.stages});
  with_viewers(options, run, view, *http, figures);
  for_hours(options, run, view, figures);
  SHOAL_TRY(replay(options, figures));
  const double grown = static_cast<double>(figures.memory_late) - static_cast<double>(figures.memory_early);
  if (options.json) {
    std::printf("%s\n", nlohmann::ordered_json({{"peers", options.peers},
                                                {"viewers", options.viewers},
                                                {"loop_share", figures.loop_share},
                                                {"process_share", figures.process_share},
                                                {"moment_us", figures.moment_us},
                                                {"event_us", figures.event_us},
                                                {"moment_bytes", figures.moment_bytes},
                                                {"story_bytes", figures.story_bytes},
                                                {"cut_off", figures.cut_off},
                                                {"hours", options.hours},
                                                {"events", figures.events},
                                                {"grown_bytes", grown},
                                                {"replayed_events", figures.replayed},
                                                {"replay_s", figures.replay_s}})
                            .dump()
                            .c_str());
    return {};
  }
  std::printf("%u peers in %u stages, %g microbatches a second, %u viewers\n", options.peers, options.stages,
              options.microbatches_per_s, options.viewers);
  std::printf("of one processor: the loop %.2f %%, loop and server %.2f %%\n", 100 * figures.loop_share,
              100 * figures.process_share);
  std::printf("an event %.2f us, a moment %.0f us and %.1f kB, a story %.1f kB; cut off: %llu\n", figures.event_us,
              figures.moment_us, 1e-3 * static_cast<double>(figures.moment_bytes),
              1e-3 * static_cast<double>(figures.story_bytes), static_cast<unsigned long long>(figures.cut_off));
  std::printf("%g h, %llu events: memory grew by %.1f MiB\n", options.hours,
              static_cast<unsigned long long>(figures.events), grown / (1u << 20));
  std::printf("%llu events of a file replayed in %.2f s\n", static_cast<unsigned long long>(figures.replayed),
              figures.replay_s);
  return {};
}

}  // namespace shoal
