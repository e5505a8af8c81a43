#pragma once
// shoal-bench stage: what one process makes of a model's training step (forward, backward, inner step; no peers, no
// codecs), in fp32 and in bf16, beside plain PyTorch (bench/plain_gpt.py) at the same work and threads in the same run.
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"

namespace shoal {

struct StageBenchOptions {
  std::vector<std::string> shapes{"8x256", "4x768", "2x1536"};  // layers x dim; heads are dim / 64
  std::vector<std::string> dtypes{"fp32", "bf16"};
  std::string family = "gpt2";
  std::string device = "cpu";     // as choose_device() takes it
  std::uint32_t positions = 256;  // of a sequence; a microbatch has four
  int threads = 2;
  int steps = 3;                   // measured, behind one that is not
  std::string python = "python3";  // whose torch is compared
  std::string recompute = "none";  // or "block", as [compute] recompute; in a last stage, as this is, "stage" is "none"
  bool compiled = false;           // torch.compile is compared too
  bool json = false;
};

// Prints a table, or with `json` an object a row, to stdout.
Status run_stage_bench(const StageBenchOptions& options);

}  // namespace shoal
