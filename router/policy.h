#pragma once
// Chooses which live peer of the next stage gets a microbatch. No I/O and no clock; rivals stand beside each other
// behind one interface, and `shoal-bench routing` holds a contest among them.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "common/ids.h"
#include "common/routing_id.h"

namespace shoal {

struct Candidate {
  Session session;
  double weight = 1;            // relative speed, > 0
  double expected_seconds = 0;  // completion of one more microbatch there
  std::uint32_t in_flight = 0;  // ours, unfinished there
  // Missed a deadline: only when it has nothing of ours in flight (a probe) and does not rest, or nobody else is left.
  bool suspected = false, resting = false;
  bool known = false;  // it kept something of this sample (KnownBase); what that saves is in expected_seconds already
  // What some rivals choose by, in seconds.
  double hop_seconds = 0;  // what a microbatch took there of late, measured here; 0: none came back yet
  double compute_seconds = 0, transfer_seconds = 0, rtt_seconds = 0;  // of one; frames both ways
};

// A policy belongs to one courier: what it chose counts as asked, and some remember it.
class RoutingPolicy {
 public:
  virtual ~RoutingPolicy() = default;
  // nullopt only when there are no candidates. Those that a hop asks already are none.
  virtual std::optional<Session> pick(SampleId sample, std::span<const Candidate> candidates) = 0;
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

// Interleaved weighted round robin (Katevenis, Sidiropoulos and Courcoubetis 1991) in the form of SWARM (Ryabinin et
// al. 2023, algorithm 1; yandex-research/swarm, balancer.py as released): the peer of the smallest priority is next,
// and its priority grows by what a microbatch takes there, a mean of the newest ten or so. A newcomer enters at the
// smallest priority, and counts for a second until it was measured.
std::unique_ptr<RoutingPolicy> make_iwrr_policy();

// Power of two choices (Mitzenmacher 2001): two are drawn, in proportion to their speed (Wieder 2007), and the one that
// would be done first is asked. `seed`: of the draws.
std::unique_ptr<RoutingPolicy> make_two_choices_policy(std::uint64_t seed);

// Least expected completion: of equal ones the first in hash order.
std::unique_ptr<RoutingPolicy> make_least_policy();

// The flow rule of GWTF (Blagoev, Cox, Decouchant and Chen 2025), as far as the paper tells: among the peers that take
// one more, the one of the least cost c/2 + (latency of both ways)/2 + 2 * size / (rates of both ways), with simulated
// annealing: a worse one is taken with probability exp(-difference / T), and T cools with every choice and is heated
// when peers come or go. What a node can hold is what our peers accept. `seed`: of the draws.
std::unique_ptr<RoutingPolicy> make_flow_policy(std::uint64_t seed);

std::unique_ptr<RoutingPolicy> make_policy(RoutingId id, std::uint64_t seed);
// That of a sender: no two draw alike.
std::unique_ptr<RoutingPolicy> make_policy(RoutingId id, const Session& self);

}  // namespace shoal
