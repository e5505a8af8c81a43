#include "runtime/data/sample_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/check.h"
#include "common/rng.h"

namespace shoal {
namespace {

// A file's samples, gone through again and again.
class FileTurns {
 public:
  FileTurns(const FileShare& share, std::uint64_t seed, std::uint64_t taken)
      : share_(share), seed_(seed), next_(taken), order_(share.samples) {
    draw();
  }
  std::uint64_t take() {
    const std::uint64_t place = next_ % share_.samples;
    if (place == 0) draw();
    ++next_;
    return share_.first + order_[place];
  }

 private:
  void draw() {
    std::iota(order_.begin(), order_.end(), std::uint64_t{0});
    Rng(mix64(seed_, next_ / share_.samples)).fork("file").shuffle(order_);
  }
  FileShare share_;
  std::uint64_t seed_, next_;
  std::vector<std::uint64_t> order_;
};

}  // namespace

SampleOrder::SampleOrder(std::uint64_t samples, std::uint64_t seed, std::vector<FileShare> shares)
    : seed_(seed), shares_(std::move(shares)), order_(samples) {
  SHOAL_CHECK(samples > 0);
  draw(0);
}

SampleOrder::Item SampleOrder::at(std::uint64_t index) {
  const auto epoch = static_cast<std::uint32_t>(index / order_.size());
  if (epoch != epoch_) draw(epoch);
  return {SampleId{order_[index % order_.size()]}, epoch};
}

void SampleOrder::draw(std::uint32_t epoch) {
  epoch_ = epoch;
  if (!shares_.empty()) return draw_shares(epoch);
  std::iota(order_.begin(), order_.end(), std::uint64_t{0});
  Rng(mix64(seed_, epoch)).fork("samples").shuffle(order_);
}

void SampleOrder::draw_shares(std::uint32_t epoch) {
  auto place = order_.begin();
  std::vector<FileTurns> turns;
  for (std::size_t file = 0; file < shares_.size(); ++file) {
    const FileShare& share = shares_[file];
    SHOAL_CHECK_LE(share.an_epoch, static_cast<std::uint64_t>(order_.end() - place));
    place = std::fill_n(place, share.an_epoch, file);
    turns.emplace_back(share, mix64(seed_, file), epoch * share.an_epoch);
  }
  SHOAL_CHECK(place == order_.end());
  Rng(mix64(seed_, epoch)).fork("files").shuffle(order_);
  for (std::uint64_t& at : order_) at = turns[at].take();
}

}  // namespace shoal
