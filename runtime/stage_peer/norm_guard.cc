#include "runtime/stage_peer/norm_guard.h"

#include <algorithm>
#include <cmath>

namespace shoal {

double NormGuard::mean() const { return knows() ? std::exp(mean_log_) : 0; }

double NormGuard::limit() const { return knows() ? std::min(kAlwaysMax, kFactor * std::exp(mean_log_)) : kAlwaysMax; }

NormGuard::Bound NormGuard::bound_of(const MicrobatchId& microbatch) const {
  const auto at = refusals_.find(microbatch);
  return {limit(), knows() && at != refusals_.end() && at->second >= kRefusedTwice};
}

// All zeros tell nothing.
void NormGuard::learn(double rms) {
  if (!(rms > 0)) return;
  if (knows()) {
    const double log = std::clamp(std::log(rms), mean_log_ - std::log(kFactor), mean_log_ + std::log(kFactor));
    mean_log_ += kNewest * (log - mean_log_);
    return;
  }
  first_logs_[learnt_++] = std::log(rms);
  if (!knows()) return;
  std::sort(first_logs_.begin(), first_logs_.end());
  mean_log_ = (first_logs_[(kLearntFrom - 1) / 2] + first_logs_[kLearntFrom / 2]) / 2;
}

void NormGuard::note(const MicrobatchId& microbatch) {
  if (++refusals_[microbatch] > 1) return;
  refused_order_.push_back(microbatch);
  while (refused_order_.size() > kMicrobatchesMax) {
    refusals_.erase(refused_order_.front());
    refused_order_.pop_front();
  }
}

void NormGuard::scaled(const MicrobatchId& microbatch) {
  learn(limit());
  if (refusals_.erase(microbatch) > 0) std::erase(refused_order_, microbatch);
}

void NormGuard::used(const Session& from, double rms) {
  learn(rms);
  const auto at = senders_.find(from.peer_tag);
  if (at == senders_.end() || ++at->second.used < kForgivenBy) return;
  at->second.used = 0;
  if (--at->second.refusals == 0) senders_.erase(at);
}

std::optional<Duration> NormGuard::refused(const Session& from, const MicrobatchId& microbatch, double rms,
                                           TimePoint now) {
  if (knows()) learn(std::min(rms, limit()));
  note(microbatch);
  Sender& sender = senders_[from.peer_tag];
  sender.used = 0;
  sender.refused_at = now;
  sender.refusals = std::min(sender.refusals + 1, kRefusalsMax);
  std::optional<Duration> rest;
  if (sender.refusals == kRefusalsMax && now >= sender.until) {
    rest = sender.rest.next();
    sender.until = now + *rest;
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

}  // namespace shoal
