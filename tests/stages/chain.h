#pragma once
// A chain of stages to test executors with, and small inputs for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <ostream>

#include "tests/stages/host_passes.h"

namespace shoal {

struct ExecutorMaker {
  std::string name;
  std::function<std::unique_ptr<StageExecutor>(const StageSpec&)> make;
  double tolerance = 0;      // of sums whose order differs, relative to the largest element; 0: exact
  bool keeps_graphs = true;  // on stages before the last
};
inline void PrintTo(const ExecutorMaker& maker, std::ostream* out) { *out << maker.name; }

inline ModelSpec contract_model() {
  return {.layers = 3, .dim = 16, .heads = 2, .positions = 8, .vocabulary = 23, .seed = 5};
}

inline HostTensor contract_tokens(std::uint64_t seed, std::int64_t sequences = 2) {
  const ModelSpec model = contract_model();
  Buffer buffer(static_cast<std::size_t>(sequences) * (model.positions + 1));
  for (std::size_t i = 0; i < buffer.size(); ++i)
    buffer.data()[i] = static_cast<std::uint8_t>(mix64(seed, i) % model.vocabulary);
  return make_host_tensor(DType::kU8, {sequences, model.positions + 1}, std::move(buffer));
}

inline MicrobatchId microbatch(std::uint64_t serial) { return {77, serial}; }

// The value of one element replaced.
inline HostTensor with_value(const HostTensor& tensor, std::size_t at, float value) {
  Buffer buffer(tensor.bytes.size());
  std::memcpy(buffer.data(), tensor.bytes.data(), buffer.size());
  buffer.as<float>()[at] = value;
  return make_host_tensor(DType::kF32, tensor.shape, std::move(buffer));
}

inline InnerStep contract_step() {
  InnerStep step;
  step.lr = 1e-2;
  step.targets = 16;
  return step;
}

// All stages of one model, driven as a path of peers would.
class Chain {
 public:
  Chain(const ExecutorMaker& maker, const ModelSpec& model, std::uint16_t stages) {
    const std::vector<StageSpec> specs = *split_model(model, stages);
    for (const StageSpec& spec : specs) {
      executors.push_back(maker.make(spec));
      Arena& arena = executors.back()->arena();
      if (const StageSpec& made = executors.back()->spec(); arena.size() == parameter_count(made)) {
        initialise(made, arena.span(ArenaRole::kCurrent));
        arena.push(ArenaRole::kCurrent);
      }
      arena.copy(ArenaRole::kCurrent, ArenaRole::kAnchor);
      gradients.emplace_back();
      activations.emplace_back();
    }
  }
  std::size_t size() const { return executors.size(); }
  StageExecutor& at(std::size_t stage) { return *executors[stage]; }

  // Forward through all stages under entry serial = microbatch serial; inputs are kept in `activations`.
  double forward(std::uint64_t serial) {
    HostTensor x;
    double loss = 0;
    for (std::size_t k = 0; k < size(); ++k) {
      activations[k] = x;
      const Result<Forwarded> out = pass_forward(at(k), {serial, microbatch(serial), contract_tokens(serial)}, x);
      EXPECT_TRUE(out.ok()) << (out.ok() ? "" : out.error().message);
      if (!out.ok()) return 0;
      EXPECT_EQ(out->stamp, at(k).stamp());
      EXPECT_EQ(out->activation.defined(), k + 1 < size());
      EXPECT_EQ(out->targets,
                static_cast<std::uint64_t>(contract_tokens(serial).shape[0]) * at(k).spec().model.positions);
      x = out->activation;
      loss = out->loss_sum;
    }
    return loss;
  }

  // Backward through all; returns what each stage said, the last stage first.
  std::vector<Backwarded> backward(std::uint64_t serial, WindowSlot window) {
    std::vector<Backwarded> outputs;
    HostTensor gradient;
    for (std::size_t k = size(); k-- > 0;) {
      gradients[k] = gradient;
      Result<Backwarded> out = pass_backward(at(k), serial, gradient, window);
      EXPECT_TRUE(out.ok()) << (out.ok() ? "" : out.error().message);
      if (!out.ok()) return outputs;
      gradient = out->gradient;
      outputs.push_back(std::move(*out));
    }
    EXPECT_FALSE(gradient.defined()) << "the first stage has no input to differentiate";
    return outputs;
  }
  void count(std::uint64_t serial, WindowSlot window) {
    forward(serial);
    backward(serial, window);
  }
  // Makes so many steps of one microbatch each, always the same; the loss behind them as a part of that before them.
  double train(std::uint64_t steps) {
    const double start = forward(1);
    backward(1, WindowSlot::kA);
    const auto settle = [this] {
      for (const auto& executor : executors) executor->settle(1);
    };
    InnerStep step = contract_step();
    for (step.step = 1; step.step <= steps; ++step.step) {
      settle();
      for (const auto& executor : executors) EXPECT_TRUE(executor->inner_step(WindowSlot::kA, step).ok());
      count(1, WindowSlot::kA);
    }
    settle();
    return forward(1) / start;
  }

  std::vector<float> read(std::size_t stage, ArenaRole role) {
    at(stage).arena().pull(role);
    const std::span<float> values = at(stage).arena().span(role);
    return {values.begin(), values.end()};
  }
  void write(std::size_t stage, ArenaRole role, const std::vector<float>& values) {
    std::ranges::copy(values, at(stage).arena().span(role).begin());
    at(stage).arena().push(role);
  }
  CountTag tag(std::size_t stage, ArenaRole role) { return at(stage).arena().tag(role); }

  std::vector<std::unique_ptr<StageExecutor>> executors;
  std::vector<HostTensor> gradients;    // the last output gradient given to each stage
  std::vector<HostTensor> activations;  // the last input given to each stage
};

inline void expect_near(const std::vector<float>& a, const std::vector<float>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max({largest, std::abs(static_cast<double>(a[i])), std::abs(static_cast<double>(b[i]))});
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  EXPECT_LE(worst, tolerance * largest);
}

inline constexpr WindowSlot kA = WindowSlot::kA, kB = WindowSlot::kB;

}  // namespace shoal
