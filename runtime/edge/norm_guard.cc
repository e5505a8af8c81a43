#include "runtime/edge/norm_guard.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace shoal {

double NormGuard::normal() const { return known_ > 0 ? std::exp(normal_log_) : 0; }

double NormGuard::limit() const { return known_ > 0 ? std::min(kAlwaysMax, kFactor * normal()) : kAlwaysMax; }

NormGuard::Bound NormGuard::bound_of(const MicrobatchId& microbatch) const {
  const auto at = refusals_.find(microbatch);
  if (known_ > 0 && at != refusals_.end() && at->second >= kRefusedTwice)
    return {limit(), std::numeric_limits<double>::max()};
  return {limit(), known_ == 1 ? kAlwaysMax : 0};
}

// All zeros tell nothing.
void NormGuard::Sender::learn(double rms) {
  if (!(rms > 0)) return;
  if (known()) {
    const double log = std::clamp(std::log(rms), mean_log - std::log(kFactor), mean_log + std::log(kFactor));
    mean_log += kNewest * (log - mean_log);
    return;
  }
  first_logs[learnt++] = std::log(rms);
  if (!known()) return;
  std::sort(first_logs.begin(), first_logs.end());
  mean_log = (first_logs[(kLearntFrom - 1) / 2] + first_logs[kLearntFrom / 2]) / 2;
}

// A table that is full learns of no one more.
void NormGuard::learn(const Session& from, double rms) {
  const auto at = senders_.find(from.peer_tag);
  if (at == senders_.end() && senders_.size() >= kSendersMax) return;
  Sender& sender = at == senders_.end() ? senders_[from.peer_tag] : at->second;
  if (sender.incarnation != from.incarnation) {
    sender = {};
    sender.incarnation = from.incarnation;
  }
  sender.learn(rms);
  find_normal();
}

void NormGuard::find_normal() {
  std::vector<double> logs;
  for (const auto& [tag, sender] : senders_)
    if (sender.known()) logs.push_back(sender.mean_log);
  known_ = logs.size();
  if (logs.empty()) return;
  const auto middle = logs.begin() + static_cast<std::ptrdiff_t>(logs.size() / 2);
  std::nth_element(logs.begin(), middle, logs.end());
  normal_log_ = *middle;
}

void NormGuard::forget(const Session& from) {
  const auto at = senders_.find(from.peer_tag);
  if (at == senders_.end() || at->second.incarnation != from.incarnation) return;
  senders_.erase(at);
  find_normal();
}

void NormGuard::note(const MicrobatchId& microbatch) {
  if (++refusals_[microbatch] > 1) return;
  refused_order_.push_back(microbatch);
  while (refused_order_.size() > kMicrobatchesMax) {
    refusals_.erase(refused_order_.front());
    refused_order_.pop_front();
  }
}

void NormGuard::scaled(const Session& from, const MicrobatchId& microbatch, double rms) {
  learn(from, rms);
  if (refusals_.erase(microbatch) > 0) std::erase(refused_order_, microbatch);
}

void NormGuard::used(const Session& from, double rms) {
  learn(from, rms);
  const auto at = culprits_.find(from.peer_tag);
  if (at == culprits_.end() || ++at->second.used < kForgivenBy) return;
  at->second.used = 0;
  if (--at->second.refusals == 0) culprits_.erase(at);
}

bool NormGuard::refused(const Session& from, const MicrobatchId& microbatch, TimePoint now) {
  note(microbatch);
  Culprit& culprit = culprits_[from.peer_tag];
  culprit.used = 0;
  culprit.refused_at = now;
  culprit.refusals = std::min(culprit.refusals + 1, kRefusalsMax);
  const bool due = culprit.refusals == kRefusalsMax && now >= culprit.until;
  make_room();
  return due;
}

Duration NormGuard::rest(const Session& from, TimePoint now) {
  Culprit& culprit = culprits_[from.peer_tag];
  const Duration rest = culprit.rest.next();
  culprit.until = now + rest;
  return rest;
}

bool NormGuard::rests(const Session& from, TimePoint now) const {
  const auto at = culprits_.find(from.peer_tag);
  return at != culprits_.end() && now < at->second.until;
}

void NormGuard::make_room() {
  while (culprits_.size() > kSendersMax)
    culprits_.erase(std::min_element(culprits_.begin(), culprits_.end(), [](const auto& a, const auto& b) {
      return a.second.refused_at < b.second.refused_at;
    }));
}

}  // namespace shoal
