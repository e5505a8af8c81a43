#include "router/policy.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "common/check.h"
#include "common/rng.h"

namespace shoal {

double rendezvous_score(SampleId sample, const Session& session, double weight) {
  const std::uint64_t hash = mix64(sample.value, std::hash<Session>{}(session));
  const double u = (static_cast<double>(hash >> 11) + 0.5) * 0x1.0p-53;  // (0, 1)
  return -weight / std::log(u);
}

namespace {

// Those that may be asked now; all of them when none may.
std::vector<Candidate> usable_of(std::span<const Candidate> candidates) {
  std::vector<Candidate> usable;
  for (const Candidate& c : candidates)
    if (!c.suspected || (c.in_flight == 0 && !c.resting)) usable.push_back(c);
  if (usable.empty()) usable.assign(candidates.begin(), candidates.end());
  return usable;
}

// The first is the one that the hash of `sample` prefers.
void sort_by_score(std::vector<Candidate>& candidates, SampleId sample) {
  std::sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
    const double score_a = rendezvous_score(sample, a.session, a.weight);
    const double score_b = rendezvous_score(sample, b.session, b.weight);
    return score_a != score_b ? score_a > score_b : a.session < b.session;
  });
}

class Rendezvous final : public RoutingPolicy {
 public:
  explicit Rendezvous(const RendezvousOptions& options) : options_(options) {}

  std::optional<Session> pick(SampleId sample, std::span<const Candidate> candidates) override {
    std::vector<Candidate> usable = usable_of(candidates);
    if (usable.empty()) return std::nullopt;
    sort_by_score(usable, sample);
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

class Iwrr final : public RoutingPolicy {
 public:
  std::optional<Session> pick(SampleId, std::span<const Candidate> candidates) override {
    const std::vector<Candidate> usable = usable_of(candidates);
    if (usable.empty()) return std::nullopt;
    ++picks_;
    enter(usable);
    const Candidate* first = nullptr;
    for (const Candidate& c : usable)
      if (first == nullptr || turns_.at(c.session).priority < turns_.at(first->session).priority) first = &c;
    Turn& turn = turns_.at(first->session);
    turn.priority += first->hop_seconds > 0 ? first->hop_seconds : kUnmeasured;
    return first->session;
  }

 private:
  static constexpr double kUnmeasured = 1;                // seconds of a microbatch
  static constexpr std::uint64_t kForgottenAfter = 4096;  // choices in which it was no candidate
  struct Turn {
    double priority = 0;
    std::uint64_t seen = 0;
  };

  void enter(const std::vector<Candidate>& usable) {
    std::erase_if(turns_, [&](const auto& item) { return picks_ - item.second.seen > kForgottenAfter; });
    double least = 0;
    bool any = false;
    for (const Candidate& c : usable)
      if (const auto at = turns_.find(c.session); at != turns_.end()) {
        least = any ? std::min(least, at->second.priority) : at->second.priority;
        any = true;
      }
    for (const Candidate& c : usable) turns_.try_emplace(c.session, Turn{least, picks_}).first->second.seen = picks_;
  }

  std::map<Session, Turn> turns_;
  std::uint64_t picks_ = 0;
};

class TwoChoices final : public RoutingPolicy {
 public:
  explicit TwoChoices(std::uint64_t seed) : seed_(seed) {}

  std::optional<Session> pick(SampleId, std::span<const Candidate> candidates) override {
    std::vector<Candidate> usable = usable_of(candidates);
    if (usable.empty()) return std::nullopt;
    sort_by_score(usable, SampleId(mix64(seed_, ++draws_)));
    const bool second = usable.size() > 1 && usable[1].expected_seconds < usable[0].expected_seconds;
    return usable[second ? 1 : 0].session;
  }

 private:
  const std::uint64_t seed_;
  std::uint64_t draws_ = 0;
};

class Least final : public RoutingPolicy {
 public:
  std::optional<Session> pick(SampleId sample, std::span<const Candidate> candidates) override {
    std::vector<Candidate> usable = usable_of(candidates);
    if (usable.empty()) return std::nullopt;
    sort_by_score(usable, sample);
    return std::min_element(
               usable.begin(), usable.end(),
               [](const Candidate& a, const Candidate& b) { return a.expected_seconds < b.expected_seconds; })
        ->session;
  }
};

class Flow final : public RoutingPolicy {
 public:
  explicit Flow(std::uint64_t seed) : rng_(seed) {}

  std::optional<Session> pick(SampleId, std::span<const Candidate> candidates) override {
    const std::vector<Candidate> usable = usable_of(candidates);
    if (usable.empty()) return std::nullopt;
    std::vector<Session> sessions;
    for (const Candidate& c : usable) sessions.push_back(c.session);
    std::sort(sessions.begin(), sessions.end());
    heat_ = sessions == sessions_ ? heat_ * kCooling : 1;
    sessions_ = std::move(sessions);
    const Candidate* best = &usable.front();
    for (const Candidate& c : usable)
      if (cost(c) < cost(*best)) best = &c;
    const Candidate& other = usable[rng_.below(usable.size())];
    const double temperature = heat_ * cost(*best);
    const double worse = cost(other) - cost(*best);
    return temperature > 0 && rng_.chance(std::exp(-worse / temperature)) ? other.session : best->session;
  }

 private:
  static constexpr double kCooling = 0.995;
  static double cost(const Candidate& c) { return c.compute_seconds / 2 + c.rtt_seconds / 2 + c.transfer_seconds; }

  Rng rng_;
  std::vector<Session> sessions_;  // of the last choice
  double heat_ = 1;                // T, in the best cost
};

}  // namespace

std::unique_ptr<RoutingPolicy> make_rendezvous_policy(const RendezvousOptions& options) {
  return std::make_unique<Rendezvous>(options);
}
std::unique_ptr<RoutingPolicy> make_iwrr_policy() { return std::make_unique<Iwrr>(); }
std::unique_ptr<RoutingPolicy> make_two_choices_policy(std::uint64_t seed) {
  return std::make_unique<TwoChoices>(seed);
}
std::unique_ptr<RoutingPolicy> make_least_policy() { return std::make_unique<Least>(); }
std::unique_ptr<RoutingPolicy> make_flow_policy(std::uint64_t seed) { return std::make_unique<Flow>(seed); }

std::unique_ptr<RoutingPolicy> make_policy(RoutingId id, std::uint64_t seed) {
  switch (id) {
    case RoutingId::kRendezvous:
      return make_rendezvous_policy();
    case RoutingId::kIwrr:
      return make_iwrr_policy();
    case RoutingId::kTwoChoices:
      return make_two_choices_policy(seed);
    case RoutingId::kLeast:
      return make_least_policy();
    case RoutingId::kFlow:
      return make_flow_policy(seed);
  }
  check_failed(__FILE__, __LINE__, "a policy", "");
}

std::unique_ptr<RoutingPolicy> make_policy(RoutingId id, const Session& self) {
  return make_policy(id, mix64(self.peer_tag, self.incarnation));
}

}  // namespace shoal
