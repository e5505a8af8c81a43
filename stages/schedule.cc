#include "stages/schedule.h"

#include <cmath>
#include <numbers>
#include <string>

namespace shoal {

Status check_schedule(const Schedule& s) {
  if (!std::isfinite(s.peak_lr) || !std::isfinite(s.final_lr) || s.peak_lr <= 0 || s.final_lr < 0)
    return make_error(ErrorCode::kInput, "learning rates must be finite, the peak above 0");
  if (s.final_lr > s.peak_lr) return make_error(ErrorCode::kInput, "the final learning rate is above the peak");
  if (s.tokens == 0) return make_error(ErrorCode::kInput, "tokens must be at least 1");
  if (s.warmup_tokens > s.tokens)
    return make_error(ErrorCode::kInput, "warmup_tokens = " + std::to_string(s.warmup_tokens) +
                                             " is more than the schedule's " + std::to_string(s.tokens) +
                                             " tokens. HINT: set it to at most that, or leave it out");
  return Status::success();
}

double learning_rate(const Schedule& s, std::uint64_t committed_tokens) {
  const double range = s.peak_lr - s.final_lr;
  if (committed_tokens < s.warmup_tokens) {
    return s.final_lr + range * (static_cast<double>(committed_tokens) / static_cast<double>(s.warmup_tokens));
  }
  if (committed_tokens >= s.tokens) return s.final_lr;
  const double done =
      static_cast<double>(committed_tokens - s.warmup_tokens) / static_cast<double>(s.tokens - s.warmup_tokens);
  return s.final_lr + range * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

}  // namespace shoal
