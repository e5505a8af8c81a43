#pragma once
// The constants of one inner step. A value.
#include <cstdint>

namespace shoal {

struct InnerStep {  // AdamW (Loshchilov and Hutter 2019, algorithm 2), bias-corrected; stages/adamw.h has the formula
  double lr = 0;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
  double clip_norm = 1.0;     // of the stage's mean gradient; <= 0: no clipping
  std::uint64_t targets = 0;  // the accumulator is divided by this; > 0
  std::uint64_t step = 1;     // 1-based, for the bias correction
  // How many of its own updates the step looks ahead, and how many the step before it did (0 when `step` is 1).
  // Executors of integers have no moments and look nowhere.
  double look_ahead = 0, look_ahead_before = 0;
  bool muon = false;  // the matrices of the layers take Muon's step (stages/muon.h)
};

}  // namespace shoal
