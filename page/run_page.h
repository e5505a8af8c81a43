#pragma once
// The page that `launch --page` gives out: the run's facts, its events, and what the launching process knows beside
// them.   Thread: the loop's; the text's entropies are counted on one of its own, which the destructor waits for.
#include <memory>
#include <optional>
#include <thread>

#include "common/event_loop.h"
#include "common/ids.h"
#include "common/lifetime.h"
#include "common/result.h"
#include "page/page_port.h"

namespace shoal {

class EventLog;
class Launch;
class LivePage;
class Samples;
struct RunConfig;
struct RunFacts;
struct RunWord;

RunFacts run_facts(const RunConfig& config);
// What no event says, of a run file; the text's entropies where the text is there. Nothing where `path` is empty.
// ERRORS: load_config()'s.
Result<RunFacts> facts_of_file(const std::string& path);
// Blocks while the text is counted, as far as text_entropy() counts it.
void count_entropies(const Samples& samples, const RunConfig& config, RunFacts& facts);

class RunPage {
 public:
  // `config` outlives it. ERRORS: LivePage::open's.
  static Result<std::unique_ptr<RunPage>> open(EventLoop& loop, const RunConfig& config, const RunId& run,
                                               const PagePort& port);
  ~RunPage();
  // An event log that passes all on to `inner` and shows it. The page outlives it.
  std::unique_ptr<EventLog> shown(std::unique_ptr<EventLog> inner);
  // `launch` outlives stop(), `samples` this.
  void start(const Launch& launch, const Samples& samples);
  void stop();

 private:
  RunPage(EventLoop& loop, const RunConfig& config);
  RunFacts facts() const;
  RunWord word(const Launch& launch);

  EventLoop& loop_;
  const RunConfig& config_;
  RunId run_;
  std::unique_ptr<LivePage> page_;
  std::optional<TimePoint> stands_since_;
  Lifetime lifetime_;
  std::jthread counter_;
};

}  // namespace shoal
