#pragma once
// Where the first weights of a run come from, when it does not begin from its seed. Thread: any.
#include <cstdint>
#include <span>

#include "common/result.h"
#include "stages/stage_spec.h"

namespace shoal {

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  // Those of a stage's arena: what the stage has of the model, but in executors that only stand for one.
  virtual std::uint64_t floats(const StageSpec& spec) const { return parameter_count(spec); }
  // Floats [first, first + out.size()) of a stage's arena. REQUIRES: they lie inside it. ERRORS: the source's (kIo,
  // kNonFinite).
  virtual Status read(const StageSpec& spec, std::uint64_t first, std::span<float> out) const = 0;
};

}  // namespace shoal
