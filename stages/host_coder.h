#pragma once
// A coder that codes nothing: tensors of the host go in and come out as they are, wherever the stage is. For stages in
// one process.
#include "stages/frame_coder.h"

namespace shoal {

class HostCoder final : public FrameCoder {
 public:
  explicit HostCoder(HostTensor input = {}) : input_(std::move(input)) {}
  // ERRORS: kMalformed (type or shape differs from what the stage takes).
  Result<double> decode(const PlacedSpace& to) override;
  Status encode(const PlacedTensor& from) override;
  // What the pass made; undefined: nothing.
  const HostTensor& output() const { return output_; }

 private:
  HostTensor input_, output_;
};

}  // namespace shoal
