#pragma once
// Frames that a member of the run could send, with values that are not a member's: what shoal-rogue trains with.
// Pure; thread: any.
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "common/bytes.h"
#include "compression/codec.h"
#include "runtime/config/config.h"
#include "stages/stage_spec.h"

namespace shoal {

class RogueTensors {
 public:
  // Of the run with this manifest. ERRORS: those of parse_manifest and split_model.
  static Result<RogueTensors> of(std::string_view manifest);

  std::uint64_t targets() const { return config_.targets_per_microbatch(); }
  // Text tokens, all zeros, and for a later stage than the first an activation that is `value` everywhere.
  std::vector<Bytes> forward(StageId to, float value) const;
  // What goes back to the stage before.
  std::vector<Bytes> gradient(float value) const;
  // Part `index` of a dense payload of the stage, cut for so many members; nothing where the part is empty.
  std::vector<Bytes> round_part(StageId stage, std::size_t members, std::size_t index, float value) const;

 private:
  RogueTensors(RunConfig config, std::vector<StageSpec> stages)
      : config_(std::move(config)), stages_(std::move(stages)) {}
  Bytes between_stages(TensorRole role, float value) const;

  RunConfig config_;
  std::vector<StageSpec> stages_;
};

}  // namespace shoal
