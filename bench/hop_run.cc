#include "bench/hop_run.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "common/os/offspring.h"
#include "common/os/posix_file.h"
#include "common/os/thread_loop.h"
#include "demo/file_tail.h"
#include "demo/processor_watch.h"
#include "events/books/merged_lines.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr Duration kPoll = 20ms;
constexpr Duration kTicketBudget = 30s;
constexpr Duration kSilenceBudget = 180s;  // between two train lines, and until the first
constexpr std::size_t kLinesShown = 6;

struct Started {
  std::string name, error_path;
  Offspring child;
};

struct TrainMark {
  double time = 0, targets = 0;
  std::uint64_t step = 0;
};

// Seconds that the machine's cores spent on anything.
double machine_busy() {
  std::string line;
  std::getline(std::ifstream("/proc/stat"), line);
  const MachineTicks ticks = parse_machine_ticks(line).value_or(MachineTicks());
  return static_cast<double>(ticks.all - ticks.idle) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// The processes of one run, and the lines of those that train.
class Watch {
 public:
  Watch(const HopSetting& setting, const std::function<bool()>& stop) : setting_(setting), stop_(stop) {}

  Result<Offspring*> start(std::string name, std::vector<std::string> words, const std::string& log) {
    SHOAL_ASSIGN(Offspring child, Offspring::start({std::move(words), log + ".out", log + ".err"}));
    processes_.push_back({std::move(name), log + ".err", std::move(child)});
    return &processes_.back().child;
  }
  Status follow(const std::string& events) {
    SHOAL_ASSIGN(const EventSource source, growing_source(events));
    trainers_.push_back({EventLines(source, true), {}, {}});
    return {};
  }

  Status check() {
    if (stop_ && stop_()) return make_error(ErrorCode::kInterrupted, "interrupted");
    for (Started& process : processes_) {
      if (const auto code = process.child.exit_code())
        return make_error(ErrorCode::kUnreachable, process.name + " ended too early (exit code " +
                                                       std::to_string(*code) +
                                                       "); it said:" + last_lines(process.error_path, kLinesShown));
    }
    return {};
  }

  Result<HopFigures> measure() {
    HopFigures figures;
    std::vector<ThreadTimes> before;
    TimePoint heard = monotonic_now();
    while (true) {
      bool all_began = true, all_ended = true, heard_now = false;
      for (Trainer& trainer : trainers_) {
        SHOAL_ASSIGN(const bool heard_it, read(trainer));
        heard_now |= heard_it;
        all_began &= trainer.first.has_value();
        all_ended &= trainer.last.has_value();
      }
      if (all_began && before.empty()) {
        for (Started& process : processes_) before.push_back(thread_times(process.child.pid()));
        figures.machine_busy_s = -machine_busy();
        sampled_ = monotonic_now();
      }
      if (all_ended) break;
      SHOAL_TRY(check());
      if (heard_now) heard = monotonic_now();
      if (monotonic_now() - heard > kSilenceBudget)
        return make_error(ErrorCode::kUnreachable, "no train line for minutes" + words());
      std::this_thread::sleep_for(kPoll);
    }
    figures.machine_busy_s += machine_busy();
    figures.seconds = seconds_of(monotonic_now() - sampled_);
    for (std::size_t i = 0; i < processes_.size(); ++i)
      figures.processes.push_back({processes_[i].name, difference(thread_times(processes_[i].child.pid()), before[i])});
    figures.from = trainers_.front().first->time;
    figures.to = trainers_.front().last->time;
    for (const Trainer& trainer : trainers_)
      figures.tokens_per_s +=
          (trainer.last->targets - trainer.first->targets) / (trainer.last->time - trainer.first->time);
    return figures;
  }

 private:
  struct Trainer {
    EventLines events;
    std::optional<TrainMark> first, last;  // the ends of the measure
  };

  Result<bool> read(Trainer& trainer) {
    for (bool heard = false;;) {
      SHOAL_ASSIGN(const ReadEvent* const event, trainer.events.next());
      if (event == nullptr) return heard;
      if (!event->is(EventKind::kTrain) || !event->targets || !event->step) continue;
      const TrainMark mark{event->time, static_cast<double>(*event->targets), event->step->value};
      heard = true;
      if (mark.step == setting_.warm_steps) trainer.first = mark;
      if (mark.step == setting_.warm_steps + setting_.steps) trainer.last = mark;
    }
  }

  std::string words() const {
    std::string text;
    for (const Started& process : processes_)
      text += "\n  " + process.name + " said:" + last_lines(process.error_path, 3);
    return text;
  }

  const HopSetting& setting_;
  const std::function<bool()>& stop_;
  std::vector<Started> processes_;  // ended with this object
  std::vector<Trainer> trainers_;
  TimePoint sampled_{};
};

Result<std::string> write_run_file(const HopSetting& setting, const std::string& folder) {
  std::string path = folder + "/RUN.toml";
  SHOAL_TRY(replace_file(path, {Bytes::copy_of(std::string_view(hop_toml(setting)))}));
  return path;
}

Result<std::uint64_t> count_events(const std::string& folder, EventKind kind) {
  SHOAL_ASSIGN(MergedLines lines, MergedLines::whole(folder));
  for (std::uint64_t count = 0;;) {
    SHOAL_ASSIGN(const std::optional<SeenEvent> event, lines.next());
    if (!event) return count;
    count += event->record.event == kind;
  }
}

}  // namespace

std::string HopRuns::next_folder(const std::string& name) {
  const std::string folder = options_.folder + "/" + std::to_string(++runs_) + "-" + name;
  for (const char* part : {"events", "logs", "homes"}) fs::create_directories(folder + "/" + part);
  return folder;
}

Result<HopFigures> HopRuns::swarm(const HopSetting& setting, const Star* star) {
  const std::string folder = next_folder(star == nullptr ? "swarm" : "swarm-net"), events = folder + "/events/";
  SHOAL_ASSIGN(const std::string run_file, write_run_file(setting, folder));
  const auto at_host = [&](int host, std::vector<std::string> words) {
    if (star != nullptr) return star->in_host(host, std::move(words));
    words.insert(words.end(), {"--listen", "127.0.0.1:0"});
    return words;
  };
  Watch watch(setting, options_.stop);
  const std::string log = folder + "/logs/";
  SHOAL_ASSIGN([[maybe_unused]] Offspring * launch,
               watch.start("launch",
                           at_host(0, {options_.program, "launch", run_file, "--dir", folder + "/run", "--no-dht",
                                       "--events", events + "launch.jsonl"}),
                           log + "launch"));
  FileTail said(log + "launch.out");
  SHOAL_ASSIGN(const std::string ticket,
               wait_for_line(said, "ticket ", log + "launch.err", kTicketBudget, [&watch] { return watch.check(); }));
  for (std::uint16_t stage = 0; stage < setting.stages; ++stage) {
    const std::string k = std::to_string(stage);
    SHOAL_ASSIGN([[maybe_unused]] Offspring * join,
                 watch.start("stage " + k,
                             at_host(stage + 1, {options_.program, "join", ticket, "--home", folder + "/homes/" + k,
                                                 "--stage", k, "--device", "cpu", "--threads", "1", "--no-dht",
                                                 "--events", events + "stage-" + k + ".jsonl"}),
                             log + "stage-" + k));
  }
  SHOAL_TRY(watch.follow(events + "launch.jsonl"));
  SHOAL_ASSIGN(HopFigures figures, watch.measure());
  figures.events_folder = folder + "/events";
  SHOAL_ASSIGN(figures.hop_timers, count_events(figures.events_folder, EventKind::kHopTimer));
  return figures;
}

Result<HopFigures> HopRuns::solo(const HopSetting& setting, int threads, int count) {
  const std::string folder = next_folder("solo-" + std::to_string(threads) + "x" + std::to_string(count));
  SHOAL_ASSIGN(const std::string run_file, write_run_file(setting, folder));
  Watch watch(setting, options_.stop);
  for (int i = 0; i < count; ++i) {
    const std::string name = "solo-" + std::to_string(i), events = folder + "/events/" + name + ".jsonl";
    SHOAL_ASSIGN([[maybe_unused]] Offspring * child,
                 watch.start(name,
                             {options_.program, "solo", run_file, "--threads", std::to_string(threads), "--device",
                              "cpu", "--events", events},
                             folder + "/logs/" + name));
    SHOAL_TRY(watch.follow(events));
  }
  SHOAL_ASSIGN(HopFigures figures, watch.measure());
  figures.events_folder = folder + "/events";
  return figures;
}

}  // namespace shoal
