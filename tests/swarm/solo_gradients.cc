#include "tests/swarm/solo_gradients.h"

#include <cmath>

namespace shoal {

std::vector<std::vector<float>> solo_gradients(const RunConfig& config, const ExecutorFactory& factory,
                                               std::uint64_t step) {
  auto samples = Samples::open(config.text_files());
  SHOAL_CHECK(samples.ok());
  auto chain = StageChain::make(config, factory);
  SHOAL_CHECK(chain.ok());
  SampleOrder order = samples->order(config.run.seed);
  const std::uint64_t count = config.sync.microbatches_per_step, targets = count * config.targets_per_microbatch();
  for (std::uint64_t now = 1; now <= step; ++now) {
    for (std::uint64_t i = (now - 1) * count; i < now * count; ++i)
      SHOAL_CHECK(chain->train(MicrobatchId{0, i}, samples->tokens(order.at(i).sample)).ok());
    if (now < step) SHOAL_CHECK(chain->step(config.inner_step(now, targets, now * targets, false)).ok());
  }
  std::vector<std::vector<float>> gradients;
  for (const auto& stage : chain->stages()) {
    stage->arena().pull(ArenaRole::kAccumulatorA);
    const auto sum = stage->arena().span(ArenaRole::kAccumulatorA);
    gradients.emplace_back(sum.begin(), sum.end());
  }
  return gradients;
}

std::vector<float> sum_of(const std::vector<StepPart>& parts) {
  std::vector<float> sum;
  for (const StepPart& part : parts) {
    sum.resize(std::max(sum.size(), part.gradient.size()), 0.0f);
    for (std::size_t i = 0; i < part.gradient.size(); ++i) sum[i] += part.gradient[i];
  }
  return sum;
}

std::vector<TensorError> tensor_errors(const RunConfig& config, StageId stage, const std::vector<float>& gradient,
                                       const std::vector<float>& reference) {
  const auto specs = split_model(config.model_spec(), config.pipeline.stages, config.pipeline.layers_per_stage);
  SHOAL_CHECK(specs.ok() && gradient.size() == reference.size());
  std::vector<TensorError> errors;
  for (const ParameterSpec& parameter : parameters_of((*specs)[stage.value])) {
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(element_count(parameter.shape)); ++i) {
      const double got = gradient[parameter.offset + i], wanted = reference[parameter.offset + i];
      difference += (got - wanted) * (got - wanted);
      norm += wanted * wanted;
    }
    SHOAL_CHECK(norm > 0);
    errors.push_back({parameter.name, std::sqrt(difference / norm)});
  }
  return errors;
}

}  // namespace shoal
