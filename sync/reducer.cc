#include "sync/reducer.h"

#include <algorithm>
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

Reducer::Reducer(RoundShape shape, std::unique_ptr<PayloadSum> sum, std::uint64_t weight, CountTag tag)
    : shape_(std::move(shape)),
      own_part_(shape_.part_of(shape_.self)),
      own_weight_(weight),
      own_tag_(tag),
      desk_(std::make_shared<Desk>()),
      pieces_(shape_.members),
      parts_(shape_.parts()),
      missing_pieces_(own_part_ ? shape_.members - 1 : 0),
      missing_parts_(shape_.parts()),
      weight_(weight),
      tag_(tag) {
  SHOAL_CHECK_LT(shape_.self, shape_.members);
  SHOAL_CHECK(are_owners(shape_.owners, shape_.members));
  desk_->sum = std::move(sum);
  desk_->cut.resize(shape_.parts());
  desk_->own_sizes.resize(shape_.parts());
}

std::uint64_t Reducer::bytes_of(const Pieces& pieces) {
  std::uint64_t bytes = 0;
  for (const std::optional<Piece>& piece : pieces)
    if (piece) bytes += piece->bytes.size();
  return bytes;
}

Reducer::Work Reducer::cut() {
  // Our own piece goes nowhere, so its checksum is nobody's.
  return {desk_->sum->own_bytes(), [desk = desk_, own = own_part_] {
            for (std::size_t i = 0; i < desk->cut.size(); ++i) {
              desk->cut[i] = desk->sum->part(i);
              desk->own_sizes[i] = desk->sum->own_size(i);
              if (i != own) desk->cut[i] = desk->cut[i].summed();
            }
          }};
}

Reducer::Piece Reducer::piece_for(std::size_t part) const { return {own_weight_, own_tag_, desk_->cut[part]}; }

void Reducer::add(std::size_t from, Piece piece) {
  if (from == shape_.self || missing_pieces_ == 0 || pieces_[from]) return;
  weight_ += piece.weight;
  tag_ += piece.tag;
  pieces_[from] = std::move(piece);
  --missing_pieces_;
}

Reducer::Work Reducer::sum_own_part() {
  SHOAL_CHECK(own_part_due());
  pieces_[shape_.self] = piece_for(*own_part_);
  auto pieces = std::make_shared<Pieces>(std::exchange(pieces_, Pieces(shape_.members)));
  const std::uint64_t bytes = bytes_of(*pieces);
  return {bytes, [desk = desk_, pieces, self = shape_.self, part = *own_part_, weight = weight_] {
            for (std::size_t i = 0; i < pieces->size(); ++i) {
              Piece& piece = *(*pieces)[i];
              Result<Bytes> values = desk->sum->open(part, piece.bytes);
              if (!values.ok()) return desk->fail(i, values.error());
              piece.bytes = std::move(*values);
            }
            const std::vector<PieceSize> sizes = sizes_of(*desk->sum, *pieces);
            if (const auto refused = refused_piece(sizes, self)) return desk->fail(refused->at, refused->error);
            const std::vector<double> scales = clip_factors(sizes);
            for (std::size_t i = 0; i < pieces->size(); ++i)
              if (const Piece& piece = *(*pieces)[i]; piece.weight != 0)
                desk->sum->add(piece.bytes, piece.weight, weight, scales[i]);
            desk->made = desk->sum->finish(part).summed();
          }};
}

Result<Reducer::Piece> Reducer::take_own_part() {
  SHOAL_ASSIGN(Bytes sum, std::exchange(desk_->made, Bytes()));
  Piece own{weight_, tag_, std::move(sum)};
  take(*own_part_, own);
  return own;
}

void Reducer::take(std::size_t part, Piece piece) {
  if (parts_[part]) return;
  parts_[part] = std::move(piece);
  --missing_parts_;
}

std::optional<std::size_t> Reducer::missing() const {
  if (missing_pieces_ > 0)
    for (std::size_t i = 0; i < shape_.members; ++i)
      if (i != shape_.self && !pieces_[i]) return i;
  for (std::size_t part = 0; part < shape_.parts(); ++part)
    if (part != own_part_ && !parts_[part]) return shape_.owners[part];
  return std::nullopt;
}

Reducer::Work Reducer::join() {
  SHOAL_CHECK(complete());
  if (!own_part_) {
    weight_ = parts_[0]->weight;
    tag_ = parts_[0]->tag;
  }
  // A member that owns nothing has all weights by the owners' word: one that contradicts the others shall not make
  // their sums look false.
  const bool judged = own_weight_ > 0 && (own_part_ || of_the_same_pieces());
  auto parts = std::make_shared<Pieces>(parts_);
  return {bytes_of(*parts),
          [desk = desk_, parts, shape = shape_, own = own_part_, judged, own_weight = own_weight_, weight = weight_] {
            std::vector<SumBeside> sums(parts->size());
            for (std::size_t i = 0; i < parts->size(); ++i) {
              const Result<Bytes> values = desk->sum->open(i, (*parts)[i]->bytes);
              if (!values.ok()) return desk->fail(shape.owners[i], values.error());
              if (judged)
                sums[i] = {
                    .size = desk->sum->size_of(*values),
                    .own_size = desk->own_sizes[i] / static_cast<double>(own_weight) * static_cast<double>(weight),
                    .agreement = desk->sum->agreement(i, *values)};
              desk->sum->take(i, *values);
            }
            if (const auto refused = refused_sum(sums, shape.members, own))
              return desk->fail(shape.owners[refused->at], refused->error);
            desk->made = desk->sum->result();
          }};
}

bool Reducer::of_the_same_pieces() const {
  return std::ranges::all_of(parts_, [&](const auto& part) { return part->weight == weight_ && part->tag == tag_; });
}

Result<Payload> Reducer::take_result() {
  if (!of_the_same_pieces())
    return make_error(ErrorCode::kMalformed,
                      "the members did not add up the same pieces: weights or tags of the parts differ");
  SHOAL_ASSIGN(Bytes sum, std::exchange(desk_->made, Bytes()));
  return Payload{std::move(sum), weight_, tag_};
}

}  // namespace shoal
