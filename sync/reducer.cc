#include "sync/reducer.h"

#include <cstring>
#include <string>

#include "sync/rule_arrays.h"

namespace shoal {
namespace {

std::span<const float> floats_of(const Bytes& bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

Bytes bytes_of_range(std::span<const float> values) { return Bytes::copy_of(bytes_of(values)); }

// Frames of the wire need not be aligned for floats.
Bytes aligned_copy(const Bytes& bytes) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(float) == 0) return bytes;
  Buffer buffer(bytes.size());
  std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return std::move(buffer).freeze();
}

}  // namespace

PartRange part_range(std::size_t count, std::size_t members, std::size_t part) {
  const std::size_t base = count / members, longer = count % members;
  const std::size_t begin = part * base + std::min(part, longer);
  return {begin, begin + base + (part < longer ? 1 : 0)};
}

Reducer::Reducer(std::size_t members, std::size_t self, bool weighted_mean, Payload own)
    : members_(members),
      self_(self),
      weighted_mean_(weighted_mean),
      own_(std::move(own)),
      pieces_(members),
      parts_(members),
      missing_pieces_(members),
      missing_parts_(members) {
  SHOAL_CHECK_LT(self, members);
  result_.resize(own_.values.size());
  // Our own piece was screened by the rule; add() screens it again, which cannot fail for what is finite.
  const Status own_added = add(self_, piece_for(self_));
  SHOAL_CHECK(own_added.ok());
}

Reducer::Piece Reducer::piece_for(std::size_t member) const {
  const PartRange range = part_range(own_.values.size(), members_, member);
  return {own_.weight, own_.tag,
          bytes_of_range(std::span<const float>(own_.values).subspan(range.begin, range.size()))};
}

Status Reducer::add(std::size_t from, const Piece& piece) {
  if (missing_pieces_ == 0 || pieces_[from]) return Status::success();
  const PartRange range = part_range(own_.values.size(), members_, self_);
  if (piece.values.size() != range.size() * sizeof(float))
    return make_error(ErrorCode::kMalformed, "a part of " + std::to_string(piece.values.size()) + " bytes instead of " +
                                                 std::to_string(range.size() * sizeof(float)));
  Piece kept{piece.weight, piece.tag, aligned_copy(piece.values)};
  SHOAL_TRY(check_all_finite(floats_of(kept.values), "a part of a round"));
  pieces_[from] = std::move(kept);
  if (--missing_pieces_ == 0) sum_own_part();
  return Status::success();
}

void Reducer::sum_own_part() {
  for (const std::optional<Piece>& piece : pieces_) {
    weight_ += piece->weight;
    tag_ += piece->tag;
  }
  const PartRange range = part_range(own_.values.size(), members_, self_);
  std::vector<double> sum(range.size(), 0.0);
  for (const std::optional<Piece>& piece : pieces_) {
    if (piece->weight == 0) continue;
    const double factor = weighted_mean_ ? static_cast<double>(piece->weight) / static_cast<double>(weight_) : 1.0;
    const std::span<const float> values = floats_of(piece->values);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factor * static_cast<double>(values[i]);
  }
  for (std::size_t i = 0; i < sum.size(); ++i) result_[range.begin + i] = static_cast<float>(sum[i]);
  pieces_.assign(members_, std::nullopt);
  parts_[self_] = {true, weight_, tag_};
  --missing_parts_;
}

Reducer::Piece Reducer::own_part() const {
  SHOAL_CHECK(own_part_ready());
  const PartRange range = part_range(result_.size(), members_, self_);
  return {weight_, tag_, bytes_of_range(std::span<const float>(result_).subspan(range.begin, range.size()))};
}

Status Reducer::take(std::size_t owner, const Piece& piece) {
  if (parts_[owner].here) return Status::success();
  const PartRange range = part_range(result_.size(), members_, owner);
  if (piece.values.size() != range.size() * sizeof(float))
    return make_error(ErrorCode::kMalformed, "a summed part of " + std::to_string(piece.values.size()) +
                                                 " bytes instead of " + std::to_string(range.size() * sizeof(float)));
  const Bytes aligned = aligned_copy(piece.values);
  SHOAL_TRY(check_all_finite(floats_of(aligned), "a summed part of a round"));
  if (!aligned.empty()) std::memcpy(result_.data() + range.begin, aligned.data(), aligned.size());
  parts_[owner] = {true, piece.weight, piece.tag};
  --missing_parts_;
  return Status::success();
}

std::optional<std::size_t> Reducer::missing() const {
  if (missing_pieces_ > 0)
    for (std::size_t i = 0; i < members_; ++i)
      if (!pieces_[i]) return i;
  for (std::size_t i = 0; i < members_; ++i)
    if (!parts_[i].here) return i;
  return std::nullopt;
}

Result<Payload> Reducer::take_result() {
  SHOAL_CHECK(complete());
  for (const Claim& part : parts_)
    if (part.weight != weight_ || part.tag != tag_)
      return make_error(ErrorCode::kMalformed,
                        "the members did not add up the same pieces: weights or tags of the parts differ");
  return Payload{std::move(result_), weight_, tag_};
}

}  // namespace shoal
