#include "sync/reducer.h"

#include <utility>

#include "common/check.h"
#include "sync/piece_sizes.h"

namespace shoal {
namespace {

std::vector<PieceSize> sizes_of(const PayloadSum& sum, const std::vector<std::optional<Reducer::Piece>>& pieces) {
  std::vector<PieceSize> sizes;
  for (const auto& piece : pieces) sizes.push_back({piece->weight, piece->weight > 0 ? sum.size_of(piece->bytes) : 0});
  return sizes;
}

}  // namespace

void Reducer::Desk::fail(std::size_t member, const Error& error) {
  failed = member;
  made = error;
}

Reducer::Reducer(std::size_t members, std::size_t self, std::unique_ptr<PayloadSum> sum, std::uint64_t weight,
                 CountTag tag)
    : members_(members),
      self_(self),
      own_weight_(weight),
      own_tag_(tag),
      desk_(std::make_shared<Desk>()),
      pieces_(members),
      parts_(members),
      missing_pieces_(members - 1),
      missing_parts_(members),
      weight_(weight),
      tag_(tag) {
  SHOAL_CHECK_LT(self, members);
  desk_->sum = std::move(sum);
  desk_->cut.resize(members);
  desk_->own_sizes.resize(members);
}

std::uint64_t Reducer::bytes_of(const Pieces& pieces) {
  std::uint64_t bytes = 0;
  for (const std::optional<Piece>& piece : pieces)
    if (piece) bytes += piece->bytes.size();
  return bytes;
}

Reducer::Work Reducer::cut() {
  // Our own piece goes nowhere, so its checksum is nobody's.
  return {desk_->sum->own_bytes(), [desk = desk_, self = self_] {
            for (std::size_t i = 0; i < desk->cut.size(); ++i) {
              desk->cut[i] = desk->sum->part(i);
              desk->own_sizes[i] = desk->sum->own_size(i);
              if (i != self) desk->cut[i] = desk->cut[i].summed();
            }
          }};
}

Reducer::Piece Reducer::piece_for(std::size_t member) const { return {own_weight_, own_tag_, desk_->cut[member]}; }

void Reducer::add(std::size_t from, Piece piece) {
  if (from == self_ || missing_pieces_ == 0 || pieces_[from]) return;
  weight_ += piece.weight;
  tag_ += piece.tag;
  pieces_[from] = std::move(piece);
  --missing_pieces_;
}

Reducer::Work Reducer::sum_own_part() {
  SHOAL_CHECK(own_part_due());
  pieces_[self_] = piece_for(self_);
  auto pieces = std::make_shared<Pieces>(std::exchange(pieces_, Pieces(members_)));
  const std::uint64_t bytes = bytes_of(*pieces);
  return {bytes, [desk = desk_, pieces, self = self_, weight = weight_] {
            for (std::size_t i = 0; i < pieces->size(); ++i) {
              Piece& piece = *(*pieces)[i];
              Result<Bytes> values = desk->sum->open(self, piece.bytes);
              if (!values.ok()) return desk->fail(i, values.error());
              piece.bytes = std::move(*values);
            }
            const std::vector<PieceSize> sizes = sizes_of(*desk->sum, *pieces);
            if (const auto refused = refused_piece(sizes, self)) return desk->fail(refused->member, refused->error);
            const std::vector<double> scales = clip_factors(sizes);
            for (std::size_t i = 0; i < pieces->size(); ++i)
              if (const Piece& piece = *(*pieces)[i]; piece.weight != 0)
                desk->sum->add(piece.bytes, piece.weight, weight, scales[i]);
            desk->made = desk->sum->finish().summed();
          }};
}

Result<Reducer::Piece> Reducer::take_own_part() {
  SHOAL_ASSIGN(Bytes sum, std::exchange(desk_->made, Bytes()));
  Piece own{weight_, tag_, std::move(sum)};
  take(self_, own);
  return own;
}

void Reducer::take(std::size_t owner, Piece piece) {
  if (parts_[owner]) return;
  parts_[owner] = std::move(piece);
  --missing_parts_;
}

std::optional<std::size_t> Reducer::missing() const {
  if (missing_pieces_ > 0)
    for (std::size_t i = 0; i < members_; ++i)
      if (i != self_ && !pieces_[i]) return i;
  for (std::size_t i = 0; i < members_; ++i)
    if (i != self_ && !parts_[i]) return i;
  return std::nullopt;
}

Reducer::Work Reducer::join() {
  SHOAL_CHECK(complete());
  auto parts = std::make_shared<Pieces>(parts_);
  return {bytes_of(*parts), [desk = desk_, parts, self = self_, own_weight = own_weight_, weight = weight_] {
            std::vector<SumBeside> sums(parts->size());
            for (std::size_t i = 0; i < parts->size(); ++i) {
              const Result<Bytes> values = desk->sum->open(i, (*parts)[i]->bytes);
              if (!values.ok()) return desk->fail(i, values.error());
              if (own_weight > 0)
                sums[i] = {
                    .size = desk->sum->size_of(*values),
                    .own_size = desk->own_sizes[i] / static_cast<double>(own_weight) * static_cast<double>(weight),
                    .agreement = desk->sum->agreement(i, *values, own_weight, weight)};
              desk->sum->take(i, *values);
            }
            if (const auto refused = refused_sum(sums, self)) return desk->fail(refused->member, refused->error);
            desk->made = desk->sum->result();
          }};
}

Result<Payload> Reducer::take_result() {
  for (const std::optional<Piece>& part : parts_)
    if (part->weight != weight_ || part->tag != tag_)
      return make_error(ErrorCode::kMalformed,
                        "the members did not add up the same pieces: weights or tags of the parts differ");
  SHOAL_ASSIGN(Bytes sum, std::exchange(desk_->made, Bytes()));
  return Payload{std::move(sum), weight_, tag_};
}

}  // namespace shoal
