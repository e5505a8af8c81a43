#include "router/policy.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace shoal {

double rendezvous_score(SampleId sample, const Session& session, double weight) {
  const std::uint64_t hash = mix64(sample.value, std::hash<Session>{}(session));
  const double u = (static_cast<double>(hash >> 11) + 0.5) * 0x1.0p-53;  // (0, 1)
  return -weight / std::log(u);
}

namespace {

class Rendezvous final : public RoutingPolicy {
 public:
  explicit Rendezvous(const RendezvousOptions& options) : options_(options) {}

  std::optional<Session> pick(SampleId sample, std::span<const Candidate> candidates) const override {
    std::vector<Candidate> usable;
    for (const Candidate& c : candidates)
      if (!c.suspected || (c.in_flight == 0 && !c.resting)) usable.push_back(c);
    if (usable.empty()) usable.assign(candidates.begin(), candidates.end());
    if (usable.empty()) return std::nullopt;
    std::sort(usable.begin(), usable.end(), [&](const Candidate& a, const Candidate& b) {
      const double score_a = rendezvous_score(sample, a.session, a.weight);
      const double score_b = rendezvous_score(sample, b.session, b.weight);
      return score_a != score_b ? score_a > score_b : a.session < b.session;
    });
    double best = usable.front().expected_seconds;
    for (const Candidate& c : usable) best = std::min(best, c.expected_seconds);
    for (const Candidate& c : usable)
      if (c.known && c.expected_seconds <= best * (1 + options_.known_slack) + 1e-9) return c.session;
    for (const Candidate& c : usable)
      if (c.expected_seconds <= best * (1 + options_.slack) + 1e-9) return c.session;
    return usable.front().session;
  }

 private:
  RendezvousOptions options_;
};

}  // namespace

std::unique_ptr<RoutingPolicy> make_rendezvous_policy(const RendezvousOptions& options) {
  return std::make_unique<Rendezvous>(options);
}

}  // namespace shoal
