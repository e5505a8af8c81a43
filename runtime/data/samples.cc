#include "runtime/data/samples.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "common/rng.h"

namespace shoal {

Result<Samples> Samples::cut(TokenFile file, std::uint32_t sequences, std::uint32_t positions) {
  SHOAL_CHECK(sequences > 0 && positions > 0);
  const std::uint64_t targets = std::uint64_t{sequences} * positions;
  const std::uint64_t count = file.tokens() == 0 ? 0 : (file.tokens() - 1) / targets;
  if (count < 2) {
    return make_error(ErrorCode::kInput, "the token file has " + std::to_string(file.tokens()) +
                                             " tokens; one microbatch takes " + std::to_string(targets) +
                                             " and training and validation need one each. Give a longer "
                                             "text, or lower [data] sequences or [model] positions");
  }
  return Samples(std::move(file), sequences, positions, count);
}

Samples::Samples(TokenFile file, std::uint32_t sequences, std::uint32_t positions, std::uint64_t count)
    : file_(std::move(file)),
      sequences_(sequences),
      positions_(positions),
      count_(count),
      validation_(std::max<std::uint64_t>(1, count / 10)) {}

HostTensor Samples::tokens(SampleId sample) const {
  SHOAL_CHECK_LT(sample.value, count_);
  const std::size_t row_bytes = (std::size_t{positions_} + 1) * size_of(file_.width());
  Buffer buffer(row_bytes * sequences_);
  for (std::uint32_t b = 0; b < sequences_; ++b) {
    const ByteView row =
        file_.tokens_at(sample.value * targets() + std::uint64_t{b} * positions_, std::uint64_t{positions_} + 1);
    std::memcpy(buffer.data() + b * row_bytes, row.data(), row_bytes);
  }
  return make_host_tensor(file_.width(), {sequences_, std::int64_t{positions_} + 1}, std::move(buffer));
}

SampleOrder::SampleOrder(std::uint64_t samples, std::uint64_t seed) : seed_(seed), permutation_(samples) {
  SHOAL_CHECK(samples > 0);
  draw(0);
}

SampleOrder::Item SampleOrder::at(std::uint64_t index) {
  const auto epoch = static_cast<std::uint32_t>(index / permutation_.size());
  if (epoch != epoch_) draw(epoch);
  return {SampleId{permutation_[index % permutation_.size()]}, epoch};
}

void SampleOrder::draw(std::uint32_t epoch) {
  std::iota(permutation_.begin(), permutation_.end(), std::uint64_t{0});
  Rng(mix64(seed_, epoch)).fork("samples").shuffle(permutation_);
  epoch_ = epoch;
}

}  // namespace shoal
