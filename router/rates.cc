#include "router/rates.h"

#include <algorithm>

namespace shoal {

namespace {
constexpr double kEmaShare = 0.2;  // of the newest value

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

void HopRates::report(const Session& peer, Duration forward, Duration backward) {
  if (forward + backward > Duration::zero()) blend(peers_[peer].compute, seconds_of(forward + backward));
}

void HopRates::report_queue(const Session& peer, Duration queue, TimePoint now) {
  peers_[peer].queue_until = now + queue;
}

void HopRates::set_link(const Session& peer, double bytes_per_second, Duration rtt) {
  Peer& p = peers_[peer];
  p.bytes_per_second = bytes_per_second;
  p.rtt = seconds_of(rtt);
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

double HopRates::known_compute() const {
  double sum = 0;
  std::size_t count = 0;
  for (const auto& [session, p] : peers_)
    if (p.compute > 0) sum += p.compute, ++count;
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

double HopRates::expected_seconds(const Session& peer, std::uint64_t bytes, TimePoint now) const {
  const Peer* p = find(peer);
  if (p == nullptr) return known_compute();
  const double compute = p->compute > 0 ? p->compute : std::max(known_compute(), 1e-3);
  const double transfer = p->bytes_per_second > 0 ? static_cast<double>(bytes) / p->bytes_per_second : 0;
  const double queue = p->queue_until > now ? seconds_of(p->queue_until - now) : 0;
  const double of_others = std::max(0.0, queue - p->in_flight * compute);
  return (p->in_flight + 1) * std::max(compute, transfer) + of_others + p->rtt;
}

double HopRates::weight(const Session& peer) const {
  const Peer* p = find(peer);
  if (p != nullptr && p->compute > 0) return 1 / p->compute;
  const double known = known_compute();
  return known > 0 ? 1 / known : 1;
}

void HopRates::forget(const Session& peer) { peers_.erase(peer); }

const HopRates::Peer* HopRates::find(const Session& peer) const {
  const auto it = peers_.find(peer);
  return it == peers_.end() ? nullptr : &it->second;
}

}  // namespace shoal
