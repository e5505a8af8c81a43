#include "page/run_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <sstream>

namespace shoal {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

Gauge& gauge(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
}
Counter& counter(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

// A counter of theirs grows, and what we have is the whole.
void raise(Counter& counter, std::uint64_t total) {
  counter.Increment(std::max(0.0, static_cast<double>(total) - counter.Value()));
}

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
  Gauge& loss = gauge(registry, "shoal_loss_nats", "Loss of the newest step, nats a token.");
  Gauge& validation = gauge(registry, "shoal_validation_loss_nats", "The newest validation loss or estimate of it.");
  Gauge& rate = gauge(registry, "shoal_tokens_per_second", "Tokens committed a second, over the last 10 s.");
  Gauge& step = gauge(registry, "shoal_step", "The newest global step.");
  Gauge& staleness = gauge(registry, "shoal_gradient_delay_steps", "How many inner steps late gradients are.");
  Gauge& end = gauge(registry, "shoal_end_tokens", "Tokens at which the run ends; 0 where no end is set.");
  Counter& tokens = counter(registry, "shoal_tokens_total", "Tokens committed so far.");
  Counter& issued = counter(registry, "shoal_microbatches_issued_total", "Microbatches issued.");
  Counter& committed = counter(registry, "shoal_microbatches_committed_total", "Microbatches committed.");
  Counter& twice = counter(registry, "shoal_counted_twice_total", "Contributions that were counted twice.");
  Counter& faults = counter(registry, "shoal_faults_total",
                            "Sessions lost, rounds abandoned, stages gone back, joiners not reached, contradictions.");
  Counter& sent = counter(registry, "shoal_sent_bytes_total", "Bytes sent, by those whose events are here.");
  Counter& received =
      counter(registry, "shoal_received_bytes_total", "Bytes received, by those whose events are here.");
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
  f.loss.Set(view.loss().newest.value_or(0));
  f.validation.Set(view.loss().validation.value_or(0));
  f.rate.Set(view.targets_per_s());
  f.step.Set(static_cast<double>(view.loss().step));
  f.staleness.Set(view.delay().value_or(0));
  f.end.Set(static_cast<double>(view.facts().end_targets));
  raise(f.tokens, view.targets());
  raise(f.issued, view.tally().issued());
  raise(f.committed, view.tally().committed());
  raise(f.twice, view.tally().counted_twice());
  raise(f.faults, view.story().faults());
  raise(f.sent, view.bytes().sent);
  raise(f.received, view.bytes().received);
  std::vector<std::uint64_t> serving(view.stages());
  for (const auto& [session, row] : view.peers().rows()) serving[row.stage] += row.state == SeenState::kServing;
  for (std::uint16_t stage = 0; stage < view.stages(); ++stage) {
    const prometheus::Labels label = {{"stage", std::to_string(stage)}};
    const Tally::Stage counts = view.tally().of_stage(stage);
    f.peers.Add(label).Set(static_cast<double>(serving[stage]));
    f.versions.Add(label).Set(static_cast<double>(counts.version));
    raise(f.rounds.Add(label), counts.rounds);
    raise(f.lost.Add(label), counts.lost);
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
