#pragma once
// What shoal-rogue computes with: frames as an honest member of the run makes them, and as one that poisons. Of a run
// with an exact executor (stages/integer_executor.h), whose peers refuse what is not theirs to the last bit.
// Thread: one at a time.
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "runtime/config/config.h"
#include "stages/integer_executor.h"

namespace shoal {

class RogueTensors {
 public:
  // Of the run with this manifest and of one of its stages. ERRORS: those of parse_manifest and split_model; kInput (no
  // such stage).
  static Result<std::unique_ptr<RogueTensors>> of(std::string_view manifest, StageId stage);

  // The first stage's text tokens (zeros) and activation, for the second one.
  std::vector<Bytes> forward(const MicrobatchId& microbatch);
  struct Answer {
    std::vector<Bytes> gradient;
    double loss_sum = 0;
    std::uint64_t targets = 0;
  };
  // The last stage's, to the frames of a Forward. ERRORS: those of the codecs and the executor.
  Result<Answer> answer(const MicrobatchId& microbatch, const std::vector<Bytes>& frames);
  std::uint64_t targets() const { return config_.targets_per_microbatch(); }  // of a microbatch
  // With this value everywhere.
  std::vector<Bytes> gradient(float value) const;
  // Part `index` of a dense payload, cut for so many members; nothing where the part is empty.
  std::vector<Bytes> round_part(std::size_t members, std::size_t index, float value);

 private:
  RogueTensors(RunConfig config, const StageSpec& spec, std::size_t parameters)
      : config_(std::move(config)), executor_(spec, parameters) {}
  HostTensor tokens() const;
  Shape between_stages() const;  // (B, T, d)

  RunConfig config_;
  IntegerExecutor executor_;
  EntrySerial entries_ = 0;
};

}  // namespace shoal
