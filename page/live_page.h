#pragma once
// The page of a run that trains: learns what happens from the events that the process writes, and gives it out over
// HTTP on this machine. The process is the launching one, or a peer (RunFacts::seen_by), which knows less.
//
// Thread: the loop's. What it costs the loop is the reckoning of an event, and text of the run each kPeriod; viewers
// cost it nothing.   Borrows the loop.   Bounds: those of RunView and LoopbackHttp.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/event_loop.h"
#include "common/lifetime.h"
#include "common/result.h"
#include "events/books/run_view.h"
#include "events/event_log.h"
#include "page/loopback_http.h"
#include "page/run_metrics.h"

namespace shoal {

// What the process knows and no event says; asked for each kPeriod.
struct RunWord {
  std::optional<double> delay{};                    // of gradients, inner steps
  std::vector<std::pair<Session, double>> quiet{};  // seconds since the last beat of each member
  std::string parked{};                             // why the run stands still; empty: it does not
  std::optional<MemberWord> member{};               // of a peer
};

class LivePage {
 public:
  static constexpr Duration kPeriod = 500ms;     // between two tellings of the moment
  static constexpr Duration kStoryPeriod = 5s;   // and of the story, unless something happened
  static constexpr Duration kSilentAfter = 10s;  // a loop that told nothing for so long is unwell: /healthz says so

  // ERRORS: LoopbackHttp::open's.
  static Result<std::unique_ptr<LivePage>> open(EventLoop& loop, RunFacts facts, const PagePort& port);
  ~LivePage();

  std::uint16_t port() const { return http_->port(); }
  // An event log that passes all on to `inner` and shows it here. The page outlives it.
  std::unique_ptr<EventLog> shown(std::unique_ptr<EventLog> inner);
  // As the launching process would have written it: what a peer knows that it did not write.
  void tell(const EventRecord& record);
  void set_facts(RunFacts facts) { view_.set_facts(std::move(facts)); }
  // Tells from now on; `word` is asked until stop().
  void start(std::function<RunWord()> word);
  // Tells a last time; what was told stays there.
  void stop();

 private:
  class ShownLog;
  struct Told;
  LivePage(EventLoop& loop, RunFacts facts);
  void take(const EventRecord& record, const Session& session);
  void tick();
  void publish();

  EventLoop& loop_;
  RunView view_;
  RunMetrics metrics_;
  std::function<RunWord()> word_;
  std::shared_ptr<Told> told_;  // read by the server's thread
  std::unique_ptr<LoopbackHttp> http_;
  TimePoint story_at_{};
  std::uint64_t tales_told_ = 0;
  TimerId timer_ = 0;
  Lifetime lifetime_;
};

}  // namespace shoal
