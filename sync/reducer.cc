#include "sync/reducer.h"

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <utility>

#include "common/check.h"

namespace shoal {
namespace {

// Frames of the wire need not be aligned.
Bytes aligned(const Bytes& bytes) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % PayloadSum::kAlignment == 0) return bytes;
  return Bytes::copy_of(bytes.view());
}

// What a target contributes to it. A member says its weight itself, so a large one excuses only so much.
double size_per_target(double size, std::uint64_t weight, std::uint64_t median_weight) {
  const double believed =
      std::min(static_cast<double>(weight), Reducer::kSizeFactor * static_cast<double>(median_weight));
  return believed > 0 ? size / believed : 0;
}

template <class T>
T lower_median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Error too_large_error(double times, const char* beside) {
  std::ostringstream text;
  text << "its values are " << std::setprecision(2) << times << " times those of " << beside << ", and at most "
       << Reducer::kSizeFactor << " times as large ones are added";
  return make_error(ErrorCode::kMalformed, text.str());
}

struct TooLarge {
  std::size_t member = 0;
  Error error;
};

// The first other member's piece of our part that is far larger than the median of all: as it is and per target. Each
// alone excuses: who made few steps beside members with many is large per target, and who made many is large in whole.
std::optional<TooLarge> too_large(const PayloadSum& sum, const std::vector<std::optional<Reducer::Piece>>& pieces,
                                  std::size_t self) {
  std::vector<std::uint64_t> weights;
  for (const auto& piece : pieces)
    if (piece->weight > 0) weights.push_back(piece->weight);
  if (weights.size() < 2) return std::nullopt;
  const std::uint64_t median_weight = lower_median(weights);
  std::vector<double> sizes, per_target, known, known_per_target;
  for (const auto& piece : pieces) {
    sizes.push_back(piece->weight > 0 ? sum.size_of(piece->bytes) : 0);
    per_target.push_back(size_per_target(sizes.back(), piece->weight, median_weight));
    if (sizes.back() <= 0) continue;
    known.push_back(sizes.back());
    known_per_target.push_back(per_target.back());
  }
  if (known.size() < 2) return std::nullopt;
  const double median = lower_median(known), median_per_target = lower_median(known_per_target);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (i != self && sizes[i] > Reducer::kSizeFactor * median &&
        per_target[i] > Reducer::kSizeFactor * median_per_target)
      return TooLarge{i, too_large_error(sizes[i] / median, "the round's median")};
  return std::nullopt;
}

}  // namespace

void Reducer::Desk::fail(std::size_t member, const Error& error) {
  failed = member;
  made = error;
}

// The sum that member `owner` made of its part, beside what we brought to it: no honest sum of `weight` targets is
// larger than if each of them had contributed kSizeFactor times what ours did.
Status Reducer::fits_own(const Desk& desk, std::size_t owner, const Bytes& part, std::uint64_t own_weight,
                         std::uint64_t weight) {
  if (own_weight == 0) return {};
  const double own = desk.own_sizes[owner] / static_cast<double>(own_weight) * static_cast<double>(weight);
  const double size = desk.sum->size_of(part);
  return own > 0 && size > kSizeFactor * own ? Status(too_large_error(size / own, "what this member brought"))
                                             : Status();
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
      missing_pieces_(members),
      missing_parts_(members) {
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
  // Our own piece goes nowhere, so its checksum is nobody's; nor is it checked: the rule screened what it brought.
  for (std::size_t i = 0; i < members_; ++i) desk_->cut[i] = desk_->sum->part(i);
  add(self_, piece_for(self_));
  Work work;
  for (std::size_t i = 0; i < members_; ++i)
    if (i != self_) work.bytes += desk_->cut[i].size();
  work.job = [desk = desk_, self = self_] {
    for (std::size_t i = 0; i < desk->cut.size(); ++i) {
      if (i == self) continue;
      desk->own_sizes[i] = desk->sum->size_of(desk->cut[i]);
      desk->cut[i] = desk->cut[i].summed();
    }
  };
  return work;
}

Reducer::Piece Reducer::piece_for(std::size_t member) const { return {own_weight_, own_tag_, desk_->cut[member]}; }

void Reducer::add(std::size_t from, Piece piece) {
  if (missing_pieces_ == 0 || pieces_[from]) return;
  weight_ += piece.weight;
  tag_ += piece.tag;
  pieces_[from] = std::move(piece);
  --missing_pieces_;
}

Reducer::Work Reducer::sum_own_part() {
  SHOAL_CHECK(own_part_due());
  auto pieces = std::make_shared<Pieces>(std::exchange(pieces_, Pieces(members_)));
  const std::uint64_t bytes = bytes_of(*pieces);
  return {bytes, [desk = desk_, pieces, self = self_, weight = weight_] {
            for (std::size_t i = 0; i < pieces->size(); ++i) {
              Piece& piece = *(*pieces)[i];
              piece.bytes = aligned(piece.bytes);
              if (i == self) continue;
              if (Status good = desk->sum->check(self, piece.bytes); !good.ok()) return desk->fail(i, good.error());
            }
            if (const auto large = too_large(*desk->sum, *pieces, self)) return desk->fail(large->member, large->error);
            for (const std::optional<Piece>& piece : *pieces)
              if (piece->weight != 0) desk->sum->add(piece->bytes, piece->weight, weight);
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
      if (!pieces_[i]) return i;
  for (std::size_t i = 0; i < members_; ++i)
    if (i != self_ && !parts_[i]) return i;
  return std::nullopt;
}

Reducer::Work Reducer::join() {
  SHOAL_CHECK(complete());
  auto parts = std::make_shared<Pieces>(parts_);
  return {bytes_of(*parts), [desk = desk_, parts, self = self_, own_weight = own_weight_, weight = weight_] {
            for (std::size_t i = 0; i < parts->size(); ++i) {
              const Bytes part = aligned((*parts)[i]->bytes);
              if (i != self) {
                if (Status good = desk->sum->check(i, part); !good.ok()) return desk->fail(i, good.error());
                if (Status fit = fits_own(*desk, i, part, own_weight, weight); !fit.ok())
                  return desk->fail(i, fit.error());
              }
              desk->sum->take(i, part);
            }
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
