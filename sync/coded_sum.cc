// Payloads whose pieces and sums travel as frames of a codec. Inside it is a dense sum: a piece is decoded once,
// where it is opened, and the sum of a part is encoded once, by its owner, who takes what the others decode, so that
// all have the same bits. What a codec rounds away of a member's piece is lost to the round, as in Streaming DiLoCo
// (Douillard et al. 2025, arXiv:2501.18512), whose outer gradients have four bits.
#include <utility>

#include "common/bulk_bytes.h"
#include "compression/codec.h"
#include "sync/payload.h"

namespace shoal {
namespace {

class CodedPayloadSum final : public PayloadSum {
 public:
  CodedPayloadSum(const Codec& codec, DenseSum how, Bytes own, std::size_t parts)
      : codec_(codec),
        parts_(parts),
        values_(own.size() / sizeof(float)),
        dense_(make_dense_sum(how, std::move(own), parts)) {}

  std::uint64_t own_bytes() const override { return dense_->own_bytes(); }
  Bytes part(std::size_t index) const override { return encoded(dense_->part(index), index); }

  Result<Bytes> open(std::size_t index, const Bytes& piece) const override {
    SHOAL_ASSIGN(const Bytes values, decoded(index, piece));
    return dense_->open(index, values);
  }

  double size_of(const Bytes& values) const override { return dense_->size_of(values); }
  double own_size(std::size_t index) const override { return dense_->own_size(index); }
  void add(const Bytes& values, std::uint64_t weight, std::uint64_t total, double scale) override {
    dense_->add(values, weight, total, scale);
  }
  double agreement(std::size_t index, const Bytes& values) const override { return dense_->agreement(index, values); }

  Bytes finish(std::size_t index) override { return encoded(dense_->finish(index), index); }
  void take(std::size_t index, const Bytes& values) override { dense_->take(index, values); }
  Bytes result() override { return dense_->result(); }

 private:
  static std::int64_t count_of(std::size_t bytes) { return static_cast<std::int64_t>(bytes / sizeof(float)); }

  // Values that no frame can hold are an empty one: whoever gets it refuses it.
  Bytes encoded(const Bytes& values, std::size_t index) const {
    if (values.empty()) return {};
    const TensorView tensor{DType::kF32, {count_of(values.size())}, values.view()};
    auto frame = codec_.encode(tensor, TensorRole::kParameters, nullptr, index);
    note_bulk(values.size());
    return frame.ok() ? std::move(*frame) : Bytes();
  }

  Result<Bytes> decoded(std::size_t index, const Bytes& piece) const {
    const std::size_t count = part_range(values_, parts_, index).size();
    if (count == 0 && piece.empty()) return Bytes();
    SHOAL_ASSIGN(const FrameHeader header, parse_frame_header(piece.view()));
    if (header.codec != codec_.id() || header.shape != Shape{static_cast<std::int64_t>(count)})
      return make_error(ErrorCode::kMalformed, "a part of another codec or length than this run's");
    Buffer values(count * sizeof(float));
    SHOAL_TRY(decode_tensor_into(piece.view(), DType::kF32, header.shape, values.view()));
    note_bulk(values.size());
    return std::move(values).freeze();
  }

  const Codec& codec_;
  const std::size_t parts_, values_;
  std::unique_ptr<PayloadSum> dense_;
};

}  // namespace

std::unique_ptr<PayloadSum> make_coded_sum(CodecId codec, DenseSum how, Bytes own, std::size_t parts) {
  return std::make_unique<CodedPayloadSum>(codec_for(codec), how, std::move(own), parts);
}

}  // namespace shoal
