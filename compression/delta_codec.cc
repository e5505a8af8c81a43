#include "compression/delta_codec.h"

#include <array>
#include <string>

#include "common/check.h"
#include "common/crc32c.h"
#include "compression/packed_payload.h"
#include "compression/stateless.h"
#include "kernels/accumulate.h"

namespace shoal {
namespace {

TileFormat format_of(CodecId id) { return id == CodecId::kAq2 ? TileFormat::kInt2 : TileFormat::kInt4; }

// Rows of a tensor and the bits that tell what became of each.
struct Rows {
  Rows(const Shape& shape, std::uint64_t elements)
      : length(shape.empty() ? 1 : static_cast<std::uint64_t>(shape.back())), count(elements / length) {}
  std::uint64_t flag_bytes() const { return (count + 7) / 8; }
  std::uint64_t length, count;
};

bool flagged(ByteView flags, std::uint64_t row) { return (flags[row / 8] >> (row % 8) & 1) != 0; }

struct Energies {
  float difference = 0, itself = 0;
};

// In lanes, so that a compiler may use vectors without reordering a sum.
Energies energies(std::span<const float> row, std::span<const float> base) {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> difference{}, itself{};
  const std::size_t whole = row.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float d = row[i + lane] - base[i + lane];
      difference[lane] += d * d;
      itself[lane] += row[i + lane] * row[i + lane];
    }
  Energies sum;
  for (std::size_t lane = 0; lane < kLanes; ++lane) sum.difference += difference[lane], sum.itself += itself[lane];
  for (std::size_t i = whole; i < row.size(); ++i) {
    sum.difference += (row[i] - base[i]) * (row[i] - base[i]);
    sum.itself += row[i] * row[i];
  }
  return sum;
}

std::string hash_text(const std::optional<std::uint64_t>& hash) { return hash ? std::to_string(*hash) : "none"; }

// ERRORS: kGone, kMalformed.
Status check_base(const BaseView* base, const Shape& shape, const Codec& codec) {
  if (base == nullptr) return make_error(ErrorCode::kGone, "codec " + std::string(codec.name()) + ": there is no base");
  if (base->tensor.dtype != DType::kF32 || base->tensor.shape != shape)
    return make_error(ErrorCode::kMalformed, "codec " + std::string(codec.name()) + ": a base of shape " +
                                                 text_of(base->tensor.shape) + " for a tensor of shape " +
                                                 text_of(shape));
  SHOAL_CHECK(is_float_aligned(base->tensor.bytes.data()));
  return Status::success();
}

}  // namespace

std::uint64_t DeltaCodec::frame_bytes(const Shape& shape, DType dtype) const {
  const Result<std::uint64_t> bytes = tensor_bytes(shape, dtype);
  if (dtype != DType::kF32 || !bytes.ok()) return 0;
  const std::uint64_t elements = *bytes / sizeof(float);
  return frame_header_bytes(shape.size()) + Rows(shape, elements).flag_bytes() +
         PackedLayout(format_of(id_), elements).bytes();
}

// Differences are made on the host.
Result<Bytes> DeltaCodec::encode(const PlacedTensor& placed, TensorRole role, const BaseView* base,
                                 std::uint64_t seed) const {
  if (!placed.place.on_host()) {
    SHOAL_ASSIGN(const HostTensor here, fetched(placed));
    return encode(here.view(), role, base, seed);
  }
  const TensorView& tensor = placed.tensor;
  SHOAL_ASSIGN(const std::span<const float> values, fp32_values(tensor, *this));
  SHOAL_TRY(check_base(base, tensor.shape, *this));
  const Rows rows(tensor.shape, values.size());
  const PackedLayout layout(format_of(id_), values.size());
  UnclearedMemory frame(frame_bytes(tensor.shape, tensor.dtype)), sent(tensor.bytes.size());
  const MutableByteView payload = frame.view().last(rows.flag_bytes() + layout.bytes());
  const MutableByteView flags = payload.first(rows.flag_bytes());
  std::fill(flags.begin(), flags.end(), std::uint8_t{0});
  const std::span<float> to(reinterpret_cast<float*>(sent.view().data()), values.size());
  for (std::uint64_t row = 0; row < rows.count; ++row) {
    const std::span<const float> from = values.subspan(row * rows.length, rows.length);
    const std::span<const float> known = base->tensor.f32().subspan(row * rows.length, rows.length);
    const Energies energy = energies(from, known);
    const bool delta = energy.difference < energy.itself;  // not where either is no number
    if (delta) flags[row / 8] |= static_cast<std::uint8_t>(1u << (row % 8));
    for (std::size_t i = 0; i < from.size(); ++i) to[row * rows.length + i] = delta ? from[i] - known[i] : from[i];
  }
  SHOAL_ASSIGN(const std::uint32_t sum, write_packed(layout, 0, TensorView{DType::kF32, tensor.shape, sent.view()},
                                                     payload.subspan(flags.size()), *this));
  seal_summed_frame({id_, kDeltaVersion, role, tensor.dtype, tensor.shape, payload.size(), base->hash,
                     crc32c_joined(crc32c(flags), sum, layout.bytes())},
                    frame.view());
  return std::move(frame).freeze();
}

Status DeltaCodec::decode(ByteView frame, const BaseView* base, PlacedBytes placed) const {
  if (!placed.place.on_host()) {
    UnclearedMemory here(placed.bytes.size());
    SHOAL_TRY(decode(frame, base, here.view()));
    return put(here.view(), placed);
  }
  const MutableByteView out = placed.bytes;
  SHOAL_CHECK(is_float_aligned(out.data()));
  SHOAL_ASSIGN(const FrameView view, read_codec_frame(frame, *this, placed));
  if (base == nullptr || view.header.base_hash != base->hash)
    return make_error(ErrorCode::kGone, "tensor frame: a difference to base " + hash_text(view.header.base_hash) +
                                            ", and at hand is " +
                                            hash_text(base ? std::optional(base->hash) : std::nullopt));
  SHOAL_TRY(check_base(base, view.header.shape, *this));
  const std::span<float> values(reinterpret_cast<float*>(out.data()), out.size() / sizeof(float));
  const Rows rows(view.header.shape, values.size());
  const ByteView flags = view.payload.first(rows.flag_bytes());
  if (rows.count % 8 != 0 && flags.back() >> (rows.count % 8) != 0)
    return make_error(ErrorCode::kMalformed, std::string(name()) + " frame: flags of rows that are none");
  SHOAL_TRY(
      read_packed(PackedLayout(format_of(id_), values.size()), 0, view.payload.subspan(flags.size()), placed, *this));
  for (std::uint64_t row = 0; row < rows.count; ++row) {
    if (!flagged(flags, row)) continue;
    const std::span<const float> known = base->tensor.f32().subspan(row * rows.length, rows.length);
    for (std::size_t i = 0; i < known.size(); ++i) values[row * rows.length + i] += known[i];
  }
  if (!all_finite(values))
    return make_error(ErrorCode::kNonFinite, std::string(name()) + " frame: base and difference are beyond fp32");
  return Status::success();
}

}  // namespace shoal
