#include "page/run_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <sstream>

#include "page/run_figures.h"

namespace shoal {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

// A counter of theirs grows, and what we have is the whole.
void raise(Counter& counter, double total) { counter.Increment(std::max(0.0, total - counter.Value())); }

Family<Histogram>& histograms(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

// The same of a histogram.
template <class Counts>
class Raised {
 public:
  explicit Raised(Family<Histogram>& family, const prometheus::Labels& labels = {})
      : spans_(family.Add(labels, Histogram::BucketBoundaries(Counts::kBounds.begin(), Counts::kBounds.end()))) {}
  void raise(const Counts& now) {
    std::vector<double> added;
    for (std::size_t i = 0; i < now.counts.size(); ++i)
      added.push_back(static_cast<double>(now.counts[i] - told_.counts[i]));
    spans_.ObserveMultiple(added, now.sum - told_.sum);
    told_ = now;
  }

 private:
  Histogram& spans_;
  Counts told_;
};
using Spans = Raised<SpanCounts>;

}  // namespace

struct RunMetrics::Families {
  prometheus::Registry registry;
  Family<Gauge>& peers =
      prometheus::BuildGauge().Name("shoal_serving_peers").Help("Peers that serve a stage.").Register(registry);
  Family<Gauge>& versions =
      prometheus::BuildGauge().Name("shoal_stage_version").Help("Version of a stage's anchor.").Register(registry);
  Family<Counter>& rounds =
      prometheus::BuildCounter().Name("shoal_rounds_total").Help("Rounds that a stage committed.").Register(registry);
  Family<Counter>& lost = prometheus::BuildCounter()
                              .Name("shoal_lost_contributions_total")
                              .Help("Contributions that are lost by name.")
                              .Register(registry);
  Spans paths{histograms(registry, "shoal_microbatch_seconds", "From a microbatch's issue to its commit.")};
  Spans round_spans{histograms(registry, "shoal_round_seconds", "From a round's opening to its commit.")};
  Family<Histogram>& hop_spans = histograms(registry, "shoal_hop_seconds",
                                            "From a holder's newest Forward of a microbatch to the stage until it "
                                            "counted the gradient; of the trainer until it committed.");
  std::map<std::uint16_t, Spans> hops;  // by stage
  Raised<DelayCounts> delays{
      histograms(registry, "shoal_gradient_late_steps", "How many inner steps late each token's gradient was.")};
};

RunMetrics::RunMetrics() : families_(std::make_unique<Families>()) {}
RunMetrics::~RunMetrics() = default;

void RunMetrics::update(const RunView& view) {
  Families& f = *families_;
  for (const RunFigure& row : run_figures()) {
    const auto& [name, help, is_counter] = row.places.metric;
    if (name == nullptr) continue;
    if (is_counter)
      raise(prometheus::BuildCounter().Name(name).Help(help).Register(f.registry).Add({}), row.number_of(view));
    else
      prometheus::BuildGauge().Name(name).Help(help).Register(f.registry).Add({}).Set(row.number_of(view));
  }
  std::vector<std::uint64_t> serving(view.stages());
  for (const auto& [session, row] : view.peers().rows()) serving[row.stage] += row.state == SeenState::kServing;
  for (std::uint16_t stage = 0; stage < view.stages(); ++stage) {
    const prometheus::Labels label = {{"stage", std::to_string(stage)}};
    const Tally::Stage counts = view.tally().of_stage(stage);
    f.peers.Add(label).Set(static_cast<double>(serving[stage]));
    f.versions.Add(label).Set(static_cast<double>(counts.version));
    raise(f.rounds.Add(label), static_cast<double>(counts.rounds));
    raise(f.lost.Add(label), static_cast<double>(counts.lost));
  }
  f.paths.raise(view.path_spans());
  f.round_spans.raise(view.round_spans());
  f.delays.raise(view.delays());
  for (const auto& [stage, spans] : view.hop_spans())
    f.hops.try_emplace(stage, f.hop_spans, prometheus::Labels{{"stage", std::to_string(stage)}})
        .first->second.raise(spans);
}

std::string RunMetrics::text() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families_->registry.Collect());
  return std::move(out).str();
}

}  // namespace shoal
