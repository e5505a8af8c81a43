#pragma once
// What a contest of routing policies is held in, and what is measured of one policy there. A world is one stage of
// peers and independent senders, each with the product's own Courier, Neighbours and Ledger, in virtual time: only
// links (routing_net.h), devices and what is done with a gradient are of the contest. Deterministic: the same world,
// policy and seed give the same figures.
//
// Every sender keeps as many microbatches under way as its part of `in_flight`, so that what a policy loses shows as
// idle devices. A microbatch is done when its gradient came; its sender settles it at once.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/routing_net.h"
#include "router/policy.h"

namespace shoal {

struct RoutingPeerShape {
  Duration compute = 40ms;  // a microbatch, forward (a third of it) and backward
  double tail = 0;          // of the log-normal factor of each microbatch, whose mean is 1: its sigma; 0: none
  double claims = 1;        // it says that it needs so much of the time, and has so much of its queue
  // What becomes of it when the world strikes.
  double slower = 1;
  bool hangs = false, mutes = false;  // its device stops; nothing that it sends arrives any more
};

struct RoutingChange {
  Duration at{0};  // from the beginning of the measurement; what is before holds from the beginning
  std::size_t place = 0;
  bool comes = false;
};

struct RoutingWorld {
  std::string name;
  std::vector<RoutingPeerShape> peers;   // by place
  std::vector<RoutingChange> changes{};  // in order of time; none: all peers are there all the time
  std::size_t senders = 8;
  std::size_t in_flight = 0;            // of all senders together, at least one each; 0: four a peer
  std::uint64_t frame_bytes = 1 << 16;  // of an activation and of a gradient; a difference to a base has a quarter
  std::function<RoutingLine(std::size_t sender, std::size_t peer)> line{};  // none: 5 ms, any rate
  Duration words_age{0};               // all words of queues come from a snapshot that is made so often; 0: of now
  Duration list_age = 2s;              // after which the others hear that a peer came or went
  std::uint64_t samples = 64;          // of a sender, met again epoch by epoch
  Duration warm = 10s, strikes = 10s;  // before it is measured; from then until the world strikes
  Duration measured = 60s;
};

// Microbatches that were possible while it was measured: each peer's rate while it is there, or what its lines carry.
double ideal_of(const RoutingWorld& world);

using RoutingPolicyMaker = std::function<std::unique_ptr<RoutingPolicy>(std::uint64_t seed)>;

struct RoutingFigures {
  std::string world, policy;
  std::uint64_t senders = 0, done = 0;
  double share = 0;           // of the ideal
  double p50 = 0, p99 = 0;    // seconds from a microbatch's beginning to its gradient
  double twice = 0;           // of the devices' time: for what another peer's gradient won, or nobody's
  double base_hits = 0;       // of the microbatches whose sample was met before: asked of the peer that has its base
  double fairness = 0;        // of the senders (Jain's index of what each got done): 1 = all the same
  double refused = 0;         // Busy, a microbatch
  std::vector<double> use{};  // of each place's device: how much of the measured time it worked
  double virtual_seconds = 0, seconds = 0;  // of the world, of this machine
};

RoutingFigures run_routing(const RoutingWorld& world, std::string_view policy, const RoutingPolicyMaker& make,
                           std::uint64_t seed);

}  // namespace shoal
