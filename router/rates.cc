#include "router/rates.h"

#include <algorithm>
#include <cmath>

namespace shoal {

namespace {
constexpr double kEmaShare = 0.2;    // of the newest value
constexpr double kHopShare = 0.1;    // of the newest hop
constexpr double kErrorShare = 0.2;  // of the newest error of a prediction
constexpr double kErrorMax = 1e4;
constexpr double kOldLeast = 1e-9;  // weight of what is old: where all is, it counts alike
constexpr double kWordShare = 0.1;  // of the newest word of a queue
constexpr std::uint32_t kCountMax = 1000;

double halved(Duration passed, Duration half) { return std::exp2(-seconds_of(passed) / seconds_of(half)); }

void blend(double& average, double value) { average = average == 0 ? value : average + kEmaShare * (value - average); }
}  // namespace

void HopRates::Samples::add(double value) {
  seconds[next] = static_cast<float>(value);
  next = (next + 1) % kSamplesMax;
  count = std::min(count + 1, kSamplesMax);
}

double HopRates::Samples::quantile(double q) const {
  if (count == 0) return 0;
  std::array<float, kSamplesMax> sorted = seconds;
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(count);
  const auto rank = static_cast<std::ptrdiff_t>(q * static_cast<double>(count - 1) + 0.5);
  std::nth_element(sorted.begin(), sorted.begin() + rank, end);
  return static_cast<double>(sorted[static_cast<std::size_t>(rank)]);
}

void HopRates::observe(const Session& peer, HopKind kind, Duration took, bool healthy) {
  const auto index = static_cast<std::size_t>(kind);
  peers_[peer].kinds[index].add(seconds_of(took));
  if (healthy) all_[index].add(seconds_of(took));
}

void HopRates::report(const Session& peer, Duration forward, Duration backward, TimePoint now) {
  if (forward + backward <= Duration::zero()) return;
  Peer& p = peers_[peer];
  p.reports = std::min(p.reports + 1, kCountMax);
  const double share = std::max(kEmaShare, 1.0 / p.reports);  // the first one may be of a device that was cold
  p.forward += share * (seconds_of(forward) - p.forward);
  p.backward += share * (seconds_of(backward) - p.backward);
  p.said_at = now;
}

void HopRates::finished(const Session& peer, Duration took, double predicted, TimePoint now) {
  Peer& p = peers_[peer];
  p.hop_sum += kHopShare * (seconds_of(took) - p.hop_sum);
  p.hop_weight += kHopShare * (1 - p.hop_weight);
  if (took <= Duration::zero() || predicted <= 0) return;
  const double wrong = std::log(std::clamp(seconds_of(took) / predicted, 1 / kErrorMax, kErrorMax));
  const double before = std::log(error(p, now));
  p.errors = std::min(p.errors + 1, kCountMax);
  p.log_error = before + std::max(kErrorShare, 1.0 / p.errors) * (wrong - before);
  p.error_at = now;
}

double HopRates::error(const Peer& peer, TimePoint now) const {
  double sum = 0, weights = 0;
  for (const auto& [session, p] : peers_) {
    if (p.errors == 0) continue;
    const double weight = std::max(kOldLeast, halved(now - p.error_at, kErrorHalves));
    sum += weight * p.log_error, weights += weight;
  }
  const double mean = weights == 0 ? 0 : std::min(0.0, sum / weights);
  if (peer.errors == 0 && peer.relayed) return std::exp(mean) / kRelayedShare;
  const double own = peer.errors == 0 ? 0 : halved(now - peer.error_at, kErrorHalves);
  return std::exp(mean + own * (peer.log_error - mean));
}

void HopRates::observe_back(const Session& peer, Duration took) { blend(peers_[peer].back, seconds_of(took)); }

void HopRates::report_queue(const Session& peer, Duration queue, TimePoint now) {
  Peer& p = peers_[peer];
  p.of_others = std::max(0.0, seconds_of(queue) - p.in_flight * p.compute());
  p.words = std::min(p.words + 1, kCountMax);
  p.of_others_mean += std::max(kWordShare, 1.0 / p.words) * (p.of_others - p.of_others_mean);
  p.word_at = now;
}

double HopRates::of_others(const Peer& p, TimePoint now) {
  const Duration age = now - p.word_at;
  const double word = std::exp(-seconds_of(age) / seconds_of(kWordFades));
  const double mean = halved(std::max(Duration{0}, age - kWordsHold), kWordsHalve);
  return word * p.of_others + (1 - word) * mean * p.of_others_mean;
}

void HopRates::set_link(const Session& peer, double bytes_per_second, Duration rtt) {
  Peer& p = peers_[peer];
  p.bytes_per_second = bytes_per_second;
  p.rtt = seconds_of(rtt);
}

void HopRates::set_relayed(const Session& peer, bool relayed) {
  if (relayed || peers_.contains(peer)) peers_[peer].relayed = relayed;
}

void HopRates::sent(const Session& peer) { ++peers_[peer].in_flight; }

void HopRates::ended(const Session& peer) {
  auto it = peers_.find(peer);
  if (it != peers_.end() && it->second.in_flight > 0) --it->second.in_flight;
}

std::uint32_t HopRates::in_flight(const Session& peer) const {
  const Peer* p = find(peer);
  return p == nullptr ? 0 : p->in_flight;
}

Duration HopRates::deadline(const Session& peer, HopKind kind) const {
  const auto index = static_cast<std::size_t>(kind);
  const Peer* p = find(peer);
  const Samples& samples = p != nullptr && p->kinds[index].count >= 4 ? p->kinds[index] : all_[index];
  if (samples.count == 0) return p != nullptr && p->working ? kDeadlineFirst : kDeadlineUnknown;
  const Duration own = std::max(kDeadlineMin, from_seconds(kDeadlineFactor * samples.quantile(0.95)));
  if (all_[index].count == 0) return own;
  return std::min(own, std::max(kDeadlineCapMin, from_seconds(kDeadlineCapFactor * all_[index].quantile(0.99))));
}

double HopRates::known_compute(TimePoint now) const {
  double sum = 0, weights = 0;
  for (const auto& [session, p] : peers_) {
    if (p.compute() == 0) continue;
    const double weight = std::max(kOldLeast, word_left(p, now));
    sum += weight * p.compute(), weights += weight;
  }
  return weights == 0 ? 0 : sum / weights;
}

double HopRates::word_left(const Peer& p, TimePoint now) {
  return halved(std::max(Duration{0}, now - p.said_at - kErrorHalves), kErrorHalves);
}

double HopRates::compute_of(const Peer* p, TimePoint now) const {
  const double own = p == nullptr || p->compute() == 0 ? 0 : word_left(*p, now);
  return own == 1 ? p->compute() : own * (p == nullptr ? 0 : p->compute()) + (1 - own) * known_compute(now);
}

double HopRates::completion(const Peer& p, double compute, std::uint64_t bytes, TimePoint now) const {
  const double there = p.there(bytes);
  const double ours = p.in_flight * std::max({compute, there, p.back});
  return ours + there + compute + p.back + of_others(p, now) + p.rtt;
}

double HopRates::predicted_seconds(const Session& peer, std::uint64_t bytes, TimePoint now) const {
  const Peer* p = find(peer);
  return p == nullptr || p->compute() == 0 || p->rtt == 0 ? 0 : completion(*p, compute_of(p, now), bytes, now);
}

double HopRates::expected_seconds(const Session& peer, std::uint64_t bytes, TimePoint now) const {
  const Peer* p = find(peer);
  const double compute = compute_of(p, now);
  if (p == nullptr) return compute;
  return completion(*p, compute > 0 ? compute : 1e-3, bytes, now) * error(*p, now);
}

double HopRates::weight(const Session& peer, TimePoint now) const {
  const Peer* p = find(peer);
  const double compute = compute_of(p, now);
  if (compute > 0) return 1 / (compute * (p == nullptr ? 1 : error(*p, now)));
  return p != nullptr && p->relayed ? kRelayedShare : 1;
}

double HopRates::hop_seconds(const Session& peer) const {
  const Peer* p = find(peer);
  return p == nullptr || p->hop_weight == 0 ? 0 : p->hop_sum / p->hop_weight;
}

double HopRates::compute_seconds(const Session& peer, TimePoint now) const { return compute_of(find(peer), now); }

double HopRates::transfer_seconds(const Session& peer, std::uint64_t bytes) const {
  const Peer* p = find(peer);
  return p == nullptr ? 0 : p->there(bytes) + p->back;
}

double HopRates::rtt_seconds(const Session& peer) const {
  const Peer* p = find(peer);
  return p == nullptr ? 0 : p->rtt;
}

void HopRates::forget(const Session& peer) { peers_.erase(peer); }

const HopRates::Peer* HopRates::find(const Session& peer) const {
  const auto it = peers_.find(peer);
  return it == peers_.end() ? nullptr : &it->second;
}

}  // namespace shoal
