#pragma once
// Chooses which live peer of the next stage gets a microbatch. Pure; rivals stand beside each other behind one
// interface.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "common/ids.h"

namespace shoal {

struct Candidate {
  Session session;
  double weight = 1;            // relative speed, > 0
  double expected_seconds = 0;  // completion of one more microbatch there
  std::uint32_t in_flight = 0;  // ours, unfinished there
  // Missed a deadline: only when it has nothing of ours in flight (a probe) and does not rest, or nobody else is left.
  bool suspected = false, resting = false;
  bool known = false;  // it kept something of this sample (KnownBase); what that saves is in expected_seconds already
};

class RoutingPolicy {
 public:
  virtual ~RoutingPolicy() = default;
  // nullopt only when there are no candidates. Those that a hop asks already are none.
  virtual std::optional<Session> pick(SampleId sample, std::span<const Candidate> candidates) const = 0;
};

// Weighted rendezvous hashing (Thaler and Ravishankar 1998; weights as in Schindelhauer and Schomaker 2005: score -w /
// ln u): load follows speed, a sample meets the same peers again, churn moves only the share of those that left. A
// choice that is behind the best candidate's expected completion by more than `slack` spills over to the next in hash
// order.
struct RendezvousOptions {
  double slack = 0.25;
  // The same for a peer that knows the sample, and goes first: a base that is met again is also met the next time.
  double known_slack = 0.75;
};
std::unique_ptr<RoutingPolicy> make_rendezvous_policy(const RendezvousOptions& options = {});

// The score itself, for tests: larger wins.
double rendezvous_score(SampleId sample, const Session& session, double weight);

}  // namespace shoal
