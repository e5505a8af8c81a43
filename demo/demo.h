#pragma once
// `shoal demo`: a whole swarm of real processes on this machine, faults in the middle, the same run in one process
// after it, and the figures. Thread: the caller's, for minutes. Everything it starts ends with it.
#include <cstdint>
#include <functional>
#include <string>

#include "common/result.h"
#include "common/rule_id.h"
#include "demo/report.h"

namespace shoal {

struct DemoOptions {
  RuleId rule = RuleId::kDiloco;
  std::uint64_t seed = 1337;
  bool chaos = true;  // kill at a third, freeze for 15 s at half, rejoin at two thirds
  std::uint16_t stages = 4, replicas = 2;
  std::string family = "gpt2";                  // of the model, as [model] family
  std::string codec = "int8";                   // of activations
  std::string dtype = "fp32";                   // of matrix products, as [compute] dtype
  double seconds = 75;                          // of training in the swarm
  std::string text;                             // bytes to train on
  std::string page{};                           // launch's option --page[=PORT]; empty: it has no page
  std::string keep;                             // folder that stays; empty: a temporary one that goes
  std::string program, dht_program;             // paths of shoal and shoal-dht
  std::function<void(const std::string&)> say;  // one line of progress
  std::function<bool()> stop;                   // asked often: the user wants an end
};

// With the default faults a run must hold them all.
inline constexpr double kChaosSecondsMin = 45;

// ERRORS: kInput (options that exclude each other, a folder that is not empty), kMissing (text, programs), kIo,
// kUnreachable (a process of the swarm ended or stood still; the message says which and what it said), kInterrupted.
Result<DemoResult> run_demo(const DemoOptions& options);

}  // namespace shoal
