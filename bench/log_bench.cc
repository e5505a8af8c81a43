#include "bench/log_bench.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/log_feed.h"
#include "common/os/resident_memory.h"
#include "demo/work_folder.h"

namespace shoal {
namespace {

constexpr double kAimSeconds = 5;
constexpr std::uint64_t kAimBytes = 64u << 20;

struct LogFigures {
  double feed_s = 0, resume_s = 0, read_s = 0;
  std::uint64_t file_bytes = 0, most_bytes = 0, rss_early = 0, rss = 0, rounds = 0, sessions = 0, lost = 0;
  int compactions = 0;
};

Result<LogFigures> measure(const LogBenchOptions& options, const std::string& folder) {
  LogFigures figures;
  ThreadLoop loop;
  std::uint64_t committed = 0;
  std::string trainer_path, authority_path;
  {
    LogFeed feed(options, loop, folder);
    trainer_path = feed.trainer_path();
    authority_path = feed.authority_path();
    SHOAL_TRY(feed.open());
    const TimePoint began = monotonic_now();
    SHOAL_TRY(feed.feed([&](std::uint64_t hundredth) {
      if (hundredth == 2) figures.rss_early = resident_memory().now;
      std::fprintf(stderr, "\r%llu %% of %llu microbatches", static_cast<unsigned long long>(hundredth),
                   static_cast<unsigned long long>(options.microbatches));
    }));
    std::fprintf(stderr, "\n");
    figures.feed_s = seconds_of(monotonic_now() - began);
    figures.rss = resident_memory().now;
    figures.rounds = feed.tally().rounds;
    figures.sessions = feed.sessions();
    figures.lost = feed.book().lost().pairs();
    figures.compactions = feed.compactions();
    figures.most_bytes = feed.most_bytes();
    committed = feed.book().committed();
  }
  for (const std::string& path : {trainer_path, authority_path}) {
    const TimePoint began = monotonic_now();
    SHOAL_ASSIGN(const Bytes bytes, read_file(path, kLogBytesMax));
    figures.read_s += seconds_of(monotonic_now() - began);
    figures.file_bytes += bytes.size();
  }
  LogFeed resumed(options, loop, folder);
  const TimePoint began = monotonic_now();
  SHOAL_TRY(resumed.open());
  figures.resume_s = seconds_of(monotonic_now() - began);
  if (resumed.book().committed() != committed || resumed.tally().rounds != figures.rounds ||
      resumed.book().lost().pairs() != figures.lost)
    return make_error(ErrorCode::kCorrupt, "what was resumed is not what was written");
  return figures;
}

void tell(const LogBenchOptions& options, const LogFigures& f) {
  const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  std::printf("%llu microbatches over %u stages in %.0f s: %llu rounds, %llu sessions over, %llu pairs lost\n",
              static_cast<unsigned long long>(options.microbatches), options.stages, f.feed_s,
              static_cast<unsigned long long>(f.rounds), static_cast<unsigned long long>(f.sessions),
              static_cast<unsigned long long>(f.lost));
  std::printf("both logs    %8.1f MiB, %.1f at most (aim %.0f), compacted %d times\n", mib(f.file_bytes),
              mib(f.most_bytes), mib(kAimBytes), f.compactions);
  std::printf("resumed in   %8.2f s (aim %.0f); reading the files alone takes %.2f s\n", f.resume_s, kAimSeconds,
              f.read_s);
  std::printf("memory       %8.1f MiB; %.1f when 2 %% were done\n", mib(f.rss), mib(f.rss_early));
}

}  // namespace

Status run_log_bench(const LogBenchOptions& options) {
  set_log_level(LogLevel::kWarning);
  SHOAL_ASSIGN(const WorkFolder folder, WorkFolder::make("log", options.folder));
  SHOAL_ASSIGN(const LogFigures figures, measure(options, folder.path()));
  if (!options.json) return tell(options, figures), Status();
  const nlohmann::json line = {{"bench", "log"},
                               {"microbatches", options.microbatches},
                               {"resume_s", figures.resume_s},
                               {"file_bytes", figures.file_bytes},
                               {"rss_bytes", figures.rss},
                               {"most_file_bytes", figures.most_bytes},
                               {"rss_early_bytes", figures.rss_early},
                               {"read_s", figures.read_s},
                               {"feed_s", figures.feed_s},
                               {"rounds", figures.rounds},
                               {"sessions", figures.sessions},
                               {"lost", figures.lost},
                               {"compactions", figures.compactions}};
  std::printf("%s\n", line.dump().c_str());
  return {};
}

}  // namespace shoal
