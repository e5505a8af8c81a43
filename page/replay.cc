#include "page/replay.h"

#include <algorithm>
#include <memory>

#include "events/books/merged_lines.h"
#include "page/run_json.h"
#include "page/run_metrics.h"

namespace shoal {

Result<Replay> Replay::read(const std::string& folder, RunFacts facts, const ReadProgress& progress) {
  SHOAL_ASSIGN(MergedLines lines, MergedLines::whole(folder, progress));
  Replay replay;
  replay.end_.set_facts(std::move(facts));
  while (true) {
    SHOAL_ASSIGN(const std::optional<SeenEvent> event, lines.next());
    if (!event) break;
    replay.note(event->time);
    replay.end_.take(*event);
  }
  replay.finish();
  return replay;
}

// The run as it stood before the line that is next, when that is a step later than the last moment.
void Replay::note(double time) {
  if (end_.lines() == 0) return;
  if (!frames_.empty() && time - frames_.back().time < step_) return;
  if (frames_.size() >= kFramesMax) {
    for (std::size_t i = 0; 2 * i < frames_.size(); ++i) std::swap(frames_[i], frames_[2 * i]);
    frames_.resize((frames_.size() + 1) / 2);
    step_ *= 2;
    if (time - frames_.back().time < step_) return;
  }
  frames_.push_back({end_.now(), moment_json(end_)});
}

void Replay::finish() {
  frames_.push_back({end_.now(), moment_json(end_)});
  story_ = story_json(end_);
}

const std::string& Replay::moment_at(double time) const {
  const auto later = std::upper_bound(frames_.begin(), frames_.end(), time,
                                      [](double at, const Frame& frame) { return at < frame.time; });
  return later == frames_.begin() ? later->moment : std::prev(later)->moment;
}

std::string Replay::snapshot(std::optional<double> time) const {
  return snapshot_json(moment_at(time.value_or(to())), story_, ReplaySpan{from(), to(), speed_});
}

PageAnswers Replay::answers() const {
  auto metrics = std::make_shared<RunMetrics>();
  metrics->update(end_);
  return [this, metrics](std::string_view path, std::optional<double> at) -> std::optional<PageAnswer> {
    const auto whole = [](std::string text) { return std::make_shared<const std::string>(std::move(text)); };
    if (path == "/moment.json") return PageAnswer{200, "application/json", whole(moment_at(at.value_or(to())))};
    if (path == "/snapshot.json") return PageAnswer{200, "application/json", whole(snapshot(at))};
    if (path == "/metrics") return PageAnswer{200, RunMetrics::kType, whole(metrics->text())};
    if (path == "/healthz") return PageAnswer{200, "text/plain; charset=utf-8", whole("ok\n")};
    return std::nullopt;
  };
}

}  // namespace shoal
