#pragma once
// The run that `shoal demo` trains, as the text of its RUN.toml: small enough that eight peers on two cores get
// somewhere in a minute. Pure; thread-safe.
#include <cstdint>
#include <string>

#include "common/rule_id.h"

namespace shoal {

struct DemoRun {
  RuleId rule = RuleId::kDiloco;
  std::string family = "gpt2";  // or "llama", with keys and values of half as many heads
  std::uint64_t seed = 1337;
  std::uint16_t stages = 4, replicas = 2;
  std::string codec = "int8";         // of activations; gradients are sent in int8
  std::string dtype = "fp32";         // of matrix products, as [compute] dtype
  std::string text;                   // path of the text, bytes
  std::uint64_t schedule_tokens = 0;  // length of the learning rate's cosine
  std::uint64_t end_tokens = 0;       // 0: until stopped
};

// A run file for people, with the reasons beside the values. parse_config() accepts it; examples/demo.toml is that of
// the defaults.
std::string demo_toml(const DemoRun& run);

}  // namespace shoal
