#include "runtime/solo/solo.h"

#include <algorithm>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/os/thread_loop.h"
#include "metrics/recent_rate.h"
#include "runtime/solo/delayed_weights.h"
#include "runtime/solo/replica_rounds.h"

namespace shoal {
namespace {

// A model that is trained; without SoloOptions::replicas there is one.
struct Replica {
  StageChain chain;
  std::optional<DelayedWeights> delayed;  // borrows the chain's executors
  std::optional<CodedEdges> edges;
  MeanLoss window{};          // of the step that is under way
  std::uint64_t brought = 0;  // targets since its last round
};

class Solo {
 public:
  Solo(const SoloOptions& options, std::vector<Replica> replicas, Samples samples)
      : options_(options),
        config_(options.config),
        replicas_(std::move(replicas)),
        samples_(std::move(samples)),
        order_(samples_.order(config_.run.seed)) {
    if (options.replicas) rounds_.emplace(config_);
  }

  Result<SoloResult> run() {
    result_.bytes_a_token = static_cast<int>(size_of(config_.token_dtype()));
    result_.entropy = training_entropy(samples_.text(), config_.token_dtype());
    if (first().delayed) note_delays();
    if (first().edges) note("between stages goes " + first().edges->text());
    if (rounds_) note("replicas in turn, with rounds between them: " + std::to_string(replicas_.size()));
    SHOAL_TRY(train());
    for (const Replica& replica : replicas_) count(replica);
    if (rounds_) result_.rounds = rounds_->rounds();
    if (rounds_) result_.round_bytes = rounds_->bytes();
    const std::uint64_t limit = config_.data.validation_samples;
    note("validation on " +
         std::to_string(limit == 0 ? samples_.validation() : std::min(limit, samples_.validation())) + " samples");
    publish();
    SHOAL_ASSIGN(const MeanLoss validation,
                 first().chain.validate(samples_, limit, [this](std::uint64_t done, std::uint64_t of) {
                   if (options_.on_headway) options_.on_headway({.what = "validating", .done = done, .total = of});
                   return true;
                 }));
    result_.validation_loss = validation.mean();
    result_.validation_targets = validation.targets;
    event({.event = EventKind::kValidation, .loss = validation.mean(), .targets = validation.targets});
    if (!options_.save_folder.empty()) {
      RunConfig saved = config_;
      saved.name_text(samples_.text().digests(), samples_.text().tokenizer);
      SHOAL_TRY(first().chain.save(options_.save_folder, saved));
      note("saved to " + options_.save_folder);
    }
    event({.event = EventKind::kEnd, .cause = result_.interrupted ? "interrupted" : "done", .targets = result_.tokens});
    return std::move(result_);
  }

 private:
  Status train() {
    const std::uint64_t end = config_.end_targets();
    const std::uint64_t per_microbatch = config_.targets_per_microbatch();
    const std::uint64_t microbatches_max = end == 0 ? UINT64_MAX : (end + per_microbatch - 1) / per_microbatch;
    if (rounds_)
      for (Replica& replica : replicas_) replica.chain.publish();  // what the first round moves
    started_ = monotonic_now();
    rate_.note(0, started_);
    while (issued_ < microbatches_max && !stopped()) {
      const std::uint64_t count = std::min(config_.microbatches_of_step(result_.steps), microbatches_max - issued_);
      SHOAL_TRY(train_step(count));
    }
    if (rounds_ && since_round_ > 0) SHOAL_TRY(merge());
    result_.train_seconds = seconds_of(monotonic_now() - started_);
    result_.tokens_per_s = result_.train_seconds > 0 ? static_cast<double>(result_.tokens) / result_.train_seconds : 0;
    return {};
  }

  Status train_step(std::uint64_t microbatches) {
    const TimePoint begin = monotonic_now();
    for (Replica& replica : replicas_) replica.window = {};
    for (std::uint64_t i = 0; i < microbatches && !stopped(); ++i)
      SHOAL_TRY(train_one(replicas_[i % replicas_.size()]));
    MeanLoss loss;
    for (const Replica& replica : replicas_) {
      loss.loss_sum += replica.window.loss_sum;
      loss.targets += replica.window.targets;
    }
    if (loss.targets == 0) return {};  // stopped before the first one
    result_.tokens += loss.targets;
    const InnerStep step = step_of(loss.targets);
    SHOAL_TRY(rounds_ && config_.global_step(result_.steps) ? step_together(step) : step_alone());
    ++result_.steps;
    result_.losses.add(loss.mean());
    report(loss, step.lr, monotonic_now() - begin);
    return config_.validates_after(result_.steps) ? estimate() : Status{};
  }

  Status train_one(Replica& replica) {
    const SampleOrder::Item item = order_.at(issued_);
    const MicrobatchId microbatch{0, issued_};
    if (replica.delayed) replica.delayed->meet(microbatch, config_.targets_per_microbatch());
    const HostTensor tokens = samples_.tokens(item.sample);
    SHOAL_ASSIGN(const MeanLoss one, replica.edges
                                         ? replica.chain.train(microbatch, tokens, item.sample, *replica.edges)
                                         : replica.chain.train(microbatch, tokens));
    ++issued_;
    replica.window.loss_sum += one.loss_sum;
    replica.window.targets += one.targets;
    return {};
  }

  // Without a profile every gradient is made at the weights that it changes.
  InnerStep step_of(std::uint64_t targets) const {
    const bool late = replicas_.front().delayed && replicas_.front().delayed->late();
    return config_.inner_step(result_.steps + 1, targets, result_.tokens, late);
  }

  // Each by its own window, and after so many of these a round.
  Status step_alone() {
    for (Replica& replica : replicas_) {
      if (replica.window.targets == 0) continue;
      if (replica.delayed) replica.delayed->to_newest();
      SHOAL_TRY(replica.chain.step(step_of(replica.window.targets)));
      if (replica.delayed) replica.delayed->stepped();
      replica.brought += replica.window.targets;
    }
    if (rounds_ && ++since_round_ >= config_.sync.inner_steps) return merge();
    return {};
  }

  Status step_together(const InnerStep& step) {
    for (Replica& replica : replicas_)
      if (replica.delayed) replica.delayed->to_newest();
    SHOAL_TRY(rounds_->step_together(parts([](const Replica& replica) { return replica.window.targets; }), step));
    for (Replica& replica : replicas_)
      if (replica.delayed) replica.delayed->stepped();
    return {};
  }

  Status merge() {
    SHOAL_TRY(rounds_->merge(parts([](const Replica& replica) { return replica.brought; })));
    for (Replica& replica : replicas_) replica.brought = 0;
    since_round_ = 0;
    return {};
  }

  template <class Weight>
  std::vector<ReplicaPart> parts(const Weight& weight) {
    std::vector<ReplicaPart> all;
    for (Replica& replica : replicas_) all.push_back({&replica.chain, weight(replica)});
    return all;
  }

  // What is judged are the anchors; rounds write them.
  void publish() {
    if (!rounds_) first().chain.publish();
  }

  void count(const Replica& replica) {
    if (replica.edges) result_.traffic = result_.traffic.value_or(EdgeTraffic{}) += replica.edges->traffic();
    if (!replica.delayed) return;
    const std::vector<DelayHistogram>& used = replica.delayed->used();
    result_.delays.resize(used.size());
    for (std::size_t stage = 0; stage < used.size(); ++stage) result_.delays[stage].merge(used[stage]);
  }

  Status estimate() {
    publish();
    const auto loss =
        first().chain.validate(samples_, config_.estimate_samples(), [this](auto...) { return !stopped(); });
    if (!loss.ok()) return result_.interrupted ? Status{} : Status(loss.error());
    estimate_ = loss->mean();
    event({.event = EventKind::kEstimate, .step = StepId{result_.steps}, .loss = *estimate_, .targets = loss->targets});
    return {};
  }

  void report(const MeanLoss& loss, double lr, Duration took) {
    event({.event = EventKind::kTrain, .step = StepId{result_.steps}, .loss = loss.mean(), .targets = result_.tokens});
    if (!options_.on_step) return;
    const std::uint64_t end = config_.end_targets();
    const std::uint64_t tokens_left = end > result_.tokens ? end - result_.tokens : 0;
    const std::uint64_t per_step = config_.microbatches_of_step(result_.steps) * config_.targets_per_microbatch();
    const TimePoint now = monotonic_now();
    rate_.note(static_cast<double>(result_.tokens), now);
    options_.on_step({.step = result_.steps,
                      .steps = end == 0 ? 0 : result_.steps + (tokens_left + per_step - 1) / per_step,
                      .loss = loss.mean(),
                      .validation = estimate_,
                      .lr = lr,
                      .tokens_per_s = static_cast<double>(loss.targets) / std::max(1e-9, seconds_of(took)),
                      .tokens = result_.tokens,
                      .end_tokens = end,
                      .left = rate_.time_for(static_cast<double>(tokens_left)),
                      .peers = {},
                      .elapsed = now - started_});
  }

  void note_delays() {
    std::ostringstream out;
    out << "gradients are as late as the profile says: " << std::fixed << std::setprecision(2);
    for (std::size_t i = 0; i < options_.delays->stages.size(); ++i) {
      const DelayHistogram& delays = options_.delays->stages[i];
      out << (i == 0 ? "" : ", ") << "stage " << i << " by " << delays.mean() << " steps (at most "
          << largest_delay(delays) << ")";
    }
    out << "; past parameters take " << static_cast<double>(first().delayed->bytes() * replicas_.size()) / (1 << 20)
        << " MiB";
    note(out.str());
    const std::uint64_t measured = options_.delays->inner_batch;
    if (!traits_of(config_.sync.rule).every_step && measured > 0 && measured != config_.sync.inner_batch)
      note("the profile was measured at inner steps of " + std::to_string(measured) + " targets, this run's have " +
           std::to_string(config_.sync.inner_batch) + ": its delays are in steps of that size");
  }

  bool stopped() {
    if (!result_.interrupted && options_.stop && options_.stop()) result_.interrupted = true;
    return result_.interrupted;
  }
  void event(const EventRecord& record) {
    if (options_.events != nullptr) options_.events->write(record);
  }
  void note(const std::string& text) {
    if (options_.on_note) options_.on_note(text);
  }

  Replica& first() { return replicas_.front(); }

  const SoloOptions& options_;
  const RunConfig& config_;
  std::vector<Replica> replicas_;
  std::optional<ReplicaRounds> rounds_;
  Samples samples_;
  SampleOrder order_;
  SoloResult result_;
  TimePoint started_{};
  RecentRate rate_{kTimeLeftWindow};  // of tokens
  std::optional<double> estimate_;
  std::uint64_t issued_ = 0;
  std::uint64_t since_round_ = 0;  // steps that each made alone
};

Result<Replica> make_replica(const SoloOptions& options, bool is_first) {
  const RunConfig& config = options.config;
  const std::function<void(const std::string&)> silent;
  SHOAL_ASSIGN(StageChain chain, StageChain::make(config, options.factory, is_first ? options.on_note : silent));
  Replica replica{.chain = std::move(chain), .delayed = {}, .edges = {}};
  if (options.delays) {
    SHOAL_ASSIGN(replica.delayed, DelayedWeights::make(replica.chain, *options.delays, config.run.seed));
  }
  if (options.wire) {
    SHOAL_ASSIGN(replica.edges, CodedEdges::make(config));
  }
  return replica;
}

}  // namespace

Result<SoloResult> run_solo(const SoloOptions& options) {
  const RunConfig& config = options.config;
  SHOAL_ASSIGN(Samples samples, Samples::open(config.text_files()));
  std::vector<Replica> replicas;
  for (std::uint64_t i = 0; i < (options.replicas ? std::max<std::uint64_t>(1, config.pipeline.replicas) : 1); ++i) {
    SHOAL_ASSIGN(Replica replica, make_replica(options, i == 0));
    replicas.push_back(std::move(replica));
  }
  if (options.events != nullptr) options.events->write({.event = EventKind::kStart});
  return Solo(options, std::move(replicas), std::move(samples)).run();
}

std::string solo_json(const SoloResult& r) {
  nlohmann::ordered_json out = {{"schema", "shoal.solo/1"},
                                {"loss_start", r.losses.first()},
                                {"loss_end", r.losses.last()},
                                {"val_loss", r.validation_loss},
                                {"unigram_entropy", r.entropy.unigram},
                                {"bigram_entropy", r.entropy.bigram},
                                {"tokens", r.tokens},
                                {"steps", r.steps},
                                {"tokens_per_s", r.tokens_per_s},
                                {"train_seconds", r.train_seconds},
                                {"interrupted", r.interrupted}};
  for (const DelayHistogram& delays : r.delays) out["delay_means"].push_back(delays.mean());
  if (r.rounds > 0) out["rounds"] = {{"count", r.rounds}, {"bytes", r.round_bytes}};
  if (r.traffic)
    out["wire"] = {{"forward_bytes", r.traffic->forward_bytes},
                   {"backward_bytes", r.traffic->backward_bytes},
                   {"key_frames", r.traffic->key_frames},
                   {"delta_frames", r.traffic->delta_frames},
                   {"bases_without_room", r.traffic->no_room}};
  return out.dump(2) + "\n";
}

}  // namespace shoal
