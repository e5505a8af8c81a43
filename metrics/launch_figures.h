#pragma once
// What a launching process counts and measures of its run, for people: nothing is decided by what has a row. Value.
#include <cstdint>
#include <optional>
#include <span>

#include "metrics/figure.h"

namespace shoal {

struct LaunchFigures {
  // ---- of the whole run ----
  std::uint64_t run_targets = 0, end_targets = 0;           // committed so far; at its end, 0: no end is set
  std::uint64_t issued = 0, committed = 0, unfinished = 0;  // microbatches
  std::uint64_t lost = 0;                                   // (microbatch, stage) pairs
  std::uint64_t taken_back = 0;                             // pairs, secured by rounds that a stage went back from
  std::uint64_t rounds = 0;
  std::uint64_t faults = 0;  // sessions that were over without having left
  // At most so many microbatches, and targets of them, can be lost with one peer: what the trainer may have in flight
  // above its low-water mark.
  std::uint64_t loss_bound_microbatches = 0, loss_bound_targets = 0;
  double full_in_flight_share = 0;  // of run_targets: committed when [pipeline] in_flight_ramp held nothing back
  std::optional<double> validation_loss{};  // nats a target
  std::optional<double> delay{};            // mean of the latest stage's gradients at the last look, in inner steps
  // ---- of this life of the process ----
  std::uint64_t step = 0;               // the last one; 0: none was made
  std::optional<double> loss{};         // of that step, nats a target
  std::optional<double> rate{};         // targets a second over the last seconds; none: nothing to measure yet
  double loss_start = 0, loss_end = 0;  // LossCurve's; 0 without steps
  std::uint64_t rounds_abandoned = 0, acks_gone = 0;
  std::uint64_t asked_again = 0;  // stage 0: peers beyond each microbatch's first; mostly those before were busy
  std::uint64_t sent_bytes = 0;
  std::uint64_t falls = 0;  // of its DHT node lately (PeerDirectory::falls)
  double elapsed_s = 0;
};

using LaunchFigure = Figure<LaunchFigures>;
std::span<const LaunchFigure> launch_figures();

}  // namespace shoal
