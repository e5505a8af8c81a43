#include "sync/reducer.h"

#include "common/check.h"

namespace shoal {
namespace {

// Frames of the wire need not be aligned.
Bytes aligned(const Bytes& bytes) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % PayloadSum::kAlignment == 0) return bytes;
  Buffer buffer(bytes.size());
  std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return std::move(buffer).freeze();
}

}  // namespace

Reducer::Reducer(std::size_t members, std::size_t self, std::unique_ptr<PayloadSum> sum, std::uint64_t weight,
                 CountTag tag)
    : members_(members),
      self_(self),
      sum_(std::move(sum)),
      own_weight_(weight),
      own_tag_(tag),
      pieces_(members),
      parts_(members),
      missing_pieces_(members),
      missing_parts_(members) {
  SHOAL_CHECK_LT(self, members);
  // Our own piece was screened by the rule; add() screens it again, which cannot fail for what is finite.
  const Status own_added = add(self_, piece_for(self_));
  SHOAL_CHECK(own_added.ok());
}

Reducer::Piece Reducer::piece_for(std::size_t member) const { return {own_weight_, own_tag_, sum_->part(member)}; }

Status Reducer::add(std::size_t from, const Piece& piece) {
  if (missing_pieces_ == 0 || pieces_[from]) return Status::success();
  Piece kept{piece.weight, piece.tag, aligned(piece.bytes)};
  SHOAL_TRY(sum_->check(self_, kept.bytes));
  pieces_[from] = std::move(kept);
  if (--missing_pieces_ == 0) sum_own_part();
  return Status::success();
}

void Reducer::sum_own_part() {
  for (const std::optional<Piece>& piece : pieces_) {
    weight_ += piece->weight;
    tag_ += piece->tag;
  }
  for (const std::optional<Piece>& piece : pieces_)
    if (piece->weight != 0) sum_->add(piece->bytes, piece->weight, weight_);
  own_sum_ = sum_->finish();
  sum_->take(self_, own_sum_);
  pieces_.assign(members_, std::nullopt);
  parts_[self_] = {true, weight_, tag_};
  --missing_parts_;
}

Reducer::Piece Reducer::own_part() const {
  SHOAL_CHECK(own_part_ready());
  return {weight_, tag_, own_sum_};
}

Status Reducer::take(std::size_t owner, const Piece& piece) {
  if (parts_[owner].here) return Status::success();
  const Bytes sum = aligned(piece.bytes);
  SHOAL_TRY(sum_->check(owner, sum));
  sum_->take(owner, sum);
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
  return Payload{sum_->result(), weight_, tag_};
}

}  // namespace shoal
