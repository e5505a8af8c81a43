#pragma once
// Learning rate as a pure function of the run's committed tokens, so that every replica of every stage takes the same
// value without asking anybody.
#include <cstdint>

#include "common/result.h"

namespace shoal {

// Linear warm-up from `final_lr` to `peak_lr` over `warmup_tokens`, then half a cosine down to `final_lr` at `tokens`
// (Loshchilov and Hutter 2017, equation 5, without restarts); constant behind. Warm-up starts above zero, so that the
// first window is not wasted.
struct Schedule {
  double peak_lr = 3e-4;
  double final_lr = 3e-5;
  std::uint64_t warmup_tokens = 0;
  std::uint64_t tokens = 0;  // where the cosine ends
};

// ERRORS: kInput (rates not finite, not positive or final above peak; tokens == 0; warm-up longer than the whole).
Status check_schedule(const Schedule& schedule);

// REQUIRES: check_schedule(schedule) is ok.
double learning_rate(const Schedule& schedule, std::uint64_t committed_tokens);

}  // namespace shoal
