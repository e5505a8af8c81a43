#include "demo/setup.h"

#include <algorithm>
#include <sstream>

namespace shoal {
namespace {

constexpr std::uint32_t kLayers = 4, kHeads = 4, kSequences = 8, kPositions = 64;
constexpr std::uint64_t kWarmupTokens = 65'536;

// TOML's basic string.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// The lines of [model] that gpt2, the default of RUN.toml, does without.
std::string family_lines(const std::string& family) {
  if (family == "gpt2") return "";
  return "family = " + quoted(family) + "\nkv_heads = " + std::to_string(kHeads / 2) + "\n";
}

}  // namespace

std::string demo_toml(const DemoRun& run) {
  std::ostringstream out;
  const bool every_step = traits_of(run.rule).every_step;
  out << "# A byte-level language model over a swarm on one machine: what `shoal demo` runs.\n"
      << "[run]\nname = \"demo\"\nseed = " << run.seed << "\n\n"
      << "[model]\n"
      << family_lines(run.family) << "layers = " << std::max<std::uint32_t>(kLayers, run.stages)
      << "\ndim = 64\nheads = " << kHeads << "\npositions = " << kPositions << "\nvocabulary = 256\n\n"
      << "[data]\npath = " << quoted(run.text) << "\nwidth = \"u8\"\nsequences = " << kSequences
      << "            # one microbatch: 8 x 64 bytes\nvalidation_samples = 128\n\n"
      << "[optimizer]\nlr = 2e-3\nbeta2 = 0.99\nweight_decay = 0.01\nclip_norm = 1.0\n\n"
      << "[schedule]\ntokens = " << run.schedule_tokens
      << "         # what the machine is expected to reach\nwarmup_tokens = "
      << std::min(kWarmupTokens, run.schedule_tokens / 10) << "\nmin_lr_factor = 0.1\n\n"
      << "[pipeline]\nstages = " << run.stages << "\nreplicas = " << run.replicas
      << "\n"
      // Gradients in flight are made at older weights, and that is what validation beside `solo` pays for. On two
      // cores two of them give nine tenths of the rate of four.
      << (every_step ? ""
                     : "in_flight = " + std::to_string(std::max<int>(2, run.stages / 2)) +
                           "                # few: what is under way is computed at older weights\n")
      << "\n[sync]\nrule = \"" << name_of(run.rule) << "\"\n"
      << (every_step ? "mode = \"drain\"               # no gradient at older weights\n" : "");
  if (!every_step) {
    out << "inner_batch = 2048           # 4 microbatches to a step of one replica\ninner_steps = 4\nouter_lr = "
           "0.9\nouter_momentum = 0.3\n"
        << "warm_steps = 16              # as allreduce, until the moments mean something\n";
  }
  out << "microbatches_per_step = " << (every_step ? 8 : 16) << "\n\n"
      << "[wire]\nforward = \"" << run.codec << "\"\nbackward = \"int8\"\n\n"
      << (run.dtype == DemoRun().dtype ? "" : "[compute]\ndtype = \"" + run.dtype + "\"\n\n")
      << "[end]\ntokens = " << run.end_tokens << "\n";
  return out.str();
}

}  // namespace shoal
