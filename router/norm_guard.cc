#include "router/norm_guard.h"

#include <algorithm>
#include <cmath>

#include "stages/adamw.h"

namespace shoal {

double NormGuard::mean() const { return learnt_ < kLearntFrom ? 0 : std::exp(mean_log_); }

double NormGuard::limit() const {
  return learnt_ < kLearntFrom ? kAlwaysMax : std::min(kAlwaysMax, kFactor * std::exp(mean_log_));
}

// All zeros tell nothing. The first ones count alike.
void NormGuard::learn(double rms) {
  if (!(rms > 0)) return;
  ++learnt_;
  mean_log_ += std::max(kNewest, 1 / static_cast<double>(learnt_)) * (std::log(rms) - mean_log_);
}

void NormGuard::used(const Session& from, double rms) {
  learn(rms);
  const auto at = senders_.find(from.peer_tag);
  if (at == senders_.end() || ++at->second.used < kForgivenBy) return;
  at->second.used = 0;
  if (--at->second.refusals == 0) senders_.erase(at);
}

std::optional<Duration> NormGuard::refused(const Session& from, double rms, TimePoint now) {
  if (learnt_ >= kLearntFrom) learn(std::min(rms, limit()));
  Sender& sender = senders_[from.peer_tag];
  sender.used = 0;
  sender.refused_at = now;
  sender.refusals = std::min(sender.refusals + 1, kRefusalsMax);
  std::optional<Duration> rest;
  if (sender.refusals == kRefusalsMax && now >= sender.until) {
    sender.rest = sender.rest == Duration(0) ? kRestFirst : std::min<Duration>(2 * sender.rest, kRestMax);
    sender.until = now + sender.rest;
    rest = sender.rest;
  }
  make_room();
  return rest;
}

bool NormGuard::rests(const Session& from, TimePoint now) const {
  const auto at = senders_.find(from.peer_tag);
  return at != senders_.end() && now < at->second.until;
}

void NormGuard::make_room() {
  while (senders_.size() > kSendersMax)
    senders_.erase(std::min_element(senders_.begin(), senders_.end(), [](const auto& a, const auto& b) {
      return a.second.refused_at < b.second.refused_at;
    }));
}

double root_mean_square(std::span<const float> values) {
  return values.empty() ? 0 : norm_of(values) / std::sqrt(static_cast<double>(values.size()));
}

}  // namespace shoal
