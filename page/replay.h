#pragma once
// A run that is over, or that goes on elsewhere, read from the event files of its processes (docs/EVENTS.md) and cut
// into moments. Immutable; thread-safe.
// Bounds: kFramesMax moments; while reading one open file and a piece of it for each process.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "events/books/run_view.h"
#include "events/event_lines.h"
#include "page/loopback_http.h"

namespace shoal {

class Replay {
 public:
  static constexpr std::size_t kFramesMax = 600;
  static constexpr double kStepFirst = 0.5;  // seconds between two moments; twice as many when there are too many

  // Lines of all files by their times; those of one file in their order. Lines that cannot be read are the audit's
  // matter and passed over. `progress`: bytes of how many. ERRORS: kMissing (no folder, no event file in it), kIo.
  static Result<Replay> read(const std::string& folder, RunFacts facts, const ReadProgress& progress = {});

  double from() const { return frames_.front().time; }
  double to() const { return frames_.back().time; }
  std::size_t moments() const { return frames_.size(); }
  std::uint64_t lines() const { return end_.lines(); }
  const RunView& end() const { return end_; }  // the run as the last line leaves it
  const std::string& moment_at(double time) const;
  // As of then; the story is the whole one, of which the page shows what was by then. None: of the end.
  std::string snapshot(std::optional<double> time = std::nullopt) const;
  void set_speed(double speed) { speed_ = speed; }  // at which a page begins
  // "/snapshot.json" and "/moment.json", both with "?at=", "/metrics" of the end, "/healthz". Borrows this.
  PageAnswers answers() const;

 private:
  struct Frame {
    double time = 0;
    std::string moment;
  };
  void note(double time);
  void finish();

  RunView end_;
  std::vector<Frame> frames_;  // by time; never empty
  std::string story_;
  double step_ = kStepFirst, speed_ = 16;
};

}  // namespace shoal
