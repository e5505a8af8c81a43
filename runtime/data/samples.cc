#include "runtime/data/samples.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace shoal {
namespace {

Error too_short(const std::string& file, std::uint64_t tokens, std::uint64_t targets, const std::string& need) {
  return make_error(ErrorCode::kInput, file + " has " + std::to_string(tokens) + " tokens; one microbatch takes " +
                                           std::to_string(targets) + need +
                                           ". Give a longer text, or lower [data] sequences or [model] positions");
}

// `whole` shared out by weight: each file gets the floor of its part, and what is left goes to the largest remainders,
// of equals to the first.
std::vector<std::uint64_t> parts_of(std::uint64_t whole, const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::uint64_t> parts;
  std::vector<double> remainders;
  std::uint64_t given = 0;
  for (const double weight : weights) {
    const double exact = static_cast<double>(whole) * (weight / sum);
    parts.push_back(std::min(static_cast<std::uint64_t>(exact), whole - given));
    remainders.push_back(exact - std::floor(exact));
    given += parts.back();
  }
  std::vector<std::size_t> files(weights.size());
  std::iota(files.begin(), files.end(), std::size_t{0});
  std::ranges::stable_sort(files, [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  for (std::size_t i = 0; given < whole; i = (i + 1) % files.size(), ++given) ++parts[files[i]];
  return parts;
}

}  // namespace

Result<Samples> Samples::open(const TextFiles& files) {
  SHOAL_ASSIGN(TextSet text, TextSet::open(files));
  return cut(std::move(text), files.sequences, files.positions);
}

Result<Samples> Samples::cut(TokenFile file, std::uint32_t sequences, std::uint32_t positions) {
  return cut(TextSet::of(std::move(file)), sequences, positions);
}

Result<Samples> Samples::cut(TextSet text, std::uint32_t sequences, std::uint32_t positions) {
  SHOAL_CHECK(sequences > 0 && positions > 0);
  SHOAL_CHECK(text.weights.empty() || text.weights.size() == text.training.size());
  Samples samples(std::move(text), sequences, positions);
  SHOAL_TRY(samples.hold_out());
  if (!samples.text_.weights.empty()) SHOAL_TRY(samples.share_out());
  return samples;
}

Samples::Samples(TextSet text, std::uint32_t sequences, std::uint32_t positions)
    : text_(std::move(text)), sequences_(sequences), positions_(positions) {}

std::uint64_t Samples::samples_of(const TokenFile& file) const {
  return file.tokens() == 0 ? 0 : (file.tokens() - 1) / targets();
}

Status Samples::hold_out() {
  std::vector<std::uint64_t> counts, held;
  for (const TokenFile& file : text_.training) {
    counts.push_back(samples_of(file));
    held.push_back(text_.validation ? 0 : counts.back() / 10);
    if (counts.back() == 0 && text_.training.size() > 1) return too_short(file.path(), file.tokens(), targets(), "");
  }
  const auto largest = std::ranges::max_element(counts);
  if (text_.validation) {
    const std::uint64_t count = samples_of(*text_.validation);
    if (count == 0) return too_short(text_.validation->path(), text_.validation->tokens(), targets(), "");
    for (std::uint64_t sample = 0; sample < count; ++sample) validation_.push_back({0, sample});
  } else if (std::ranges::all_of(held, [](std::uint64_t n) { return n == 0; })) {
    held[static_cast<std::size_t>(largest - counts.begin())] = 1;
  }
  if (*largest < (text_.validation ? 1u : 2u)) {
    const std::size_t file = static_cast<std::size_t>(largest - counts.begin());
    return too_short("the token file", text_.training[file].tokens(), targets(),
                     " and training and validation need one each");
  }
  for (std::size_t file = 0; file < counts.size(); ++file) {
    first_.push_back(training_);
    training_ += counts[file] - held[file];
    for (std::uint64_t i = 0; i < held[file]; ++i)
      validation_.push_back({static_cast<std::uint32_t>(file), counts[file] - held[file] + i});
  }
  if (!text_.validation) mix_held_out(counts, held);
  return {};
}

// So that the first so many of them, of which an estimate is made, are of all files: sample j of a file's n held out
// ones has its place at (j + 1/2) / n.
void Samples::mix_held_out(const std::vector<std::uint64_t>& counts, const std::vector<std::uint64_t>& held) {
  const auto place = [&](const HeldOut& one) {
    const std::uint64_t n = held[one.file];
    return (static_cast<double>(one.sample - (counts[one.file] - n)) + 0.5) / static_cast<double>(n);
  };
  std::ranges::stable_sort(validation_, {}, place);
}

Status Samples::share_out() {
  const std::vector<std::uint64_t> parts = parts_of(training_, text_.weights);
  for (std::size_t file = 0; file < parts.size(); ++file) {
    const std::uint64_t end = file + 1 < parts.size() ? first_[file + 1] : training_;
    if (parts[file] == 0)
      return make_error(ErrorCode::kInput, "[data] weights gives " + text_.training[file].path() + " none of the " +
                                               std::to_string(training_) +
                                               " samples of an epoch: raise its weight, or leave the file out");
    shares_.push_back({.first = first_[file], .samples = end - first_[file], .an_epoch = parts[file]});
  }
  return {};
}

Samples::Place Samples::place_of(SampleId sample) const {
  SHOAL_CHECK_LT(sample.value, count());
  if (sample.value >= training_) {
    const HeldOut& held = validation_[sample.value - training_];
    return {text_.validation ? &*text_.validation : &text_.training[held.file], held.sample};
  }
  const auto file = static_cast<std::size_t>(std::ranges::upper_bound(first_, sample.value) - first_.begin() - 1);
  return {&text_.training[file], sample.value - first_[file]};
}

HostTensor Samples::tokens(SampleId sample) const {
  const Place place = place_of(sample);
  const DType width = place.file->width();
  const std::size_t row_bytes = (std::size_t{positions_} + 1) * size_of(width);
  Buffer buffer(row_bytes * sequences_);
  for (std::uint32_t b = 0; b < sequences_; ++b) {
    const ByteView row =
        place.file->tokens_at(place.sample * targets() + std::uint64_t{b} * positions_, std::uint64_t{positions_} + 1);
    std::memcpy(buffer.data() + b * row_bytes, row.data(), row_bytes);
  }
  return make_host_tensor(width, {sequences_, std::int64_t{positions_} + 1}, std::move(buffer));
}

}  // namespace shoal
