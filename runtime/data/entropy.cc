#include "runtime/data/entropy.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace shoal {
namespace {

// Sum over counts of -(n / total) ln(n / whole), whole = the count of the condition.
double weighted_surprise(std::uint64_t n, std::uint64_t whole, std::uint64_t total) {
  if (n == 0) return 0;
  return -static_cast<double>(n) / static_cast<double>(total) *
         std::log(static_cast<double>(n) / static_cast<double>(whole));
}

TextEntropy of_bytes(const std::vector<ByteView>& files) {
  std::vector<std::uint64_t> single(256), pairs(256 * 256), before(256);
  std::uint64_t count = 0, pair_count = 0;
  for (const ByteView text : files) {
    for (std::uint8_t byte : text) ++single[byte];
    for (std::size_t i = 1; i < text.size(); ++i) {
      ++pairs[text[i - 1] * 256u + text[i]];
      ++before[text[i - 1]];
    }
    count += text.size();
    pair_count += text.empty() ? 0 : text.size() - 1;
  }
  TextEntropy entropy;
  for (std::uint64_t n : single) entropy.unigram += weighted_surprise(n, count, count);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    entropy.bigram += weighted_surprise(pairs[i], before[i / 256], pair_count);
  return entropy;
}

// Most of the pairs that there could be never come: they are sorted and not counted in a table.
TextEntropy of_ids(const std::vector<ByteView>& files, DType width) {
  std::vector<std::uint64_t> single, before, pairs;
  std::size_t count = 0;
  for (const ByteView text : files) {
    const std::size_t end = std::min(text.size() / size_of(width), kIdsCounted - count);
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < end; ++i) {
      const std::uint64_t id = id_at(text, width, i);
      if (id >= single.size()) {
        single.resize(id + 1);
        before.resize(id + 1);
      }
      ++single[id];
      if (i > 0) {
        pairs.push_back(last << 32 | id);
        ++before[last];
      }
      last = id;
    }
    count += end;
  }
  std::ranges::sort(pairs);
  TextEntropy entropy;
  for (const std::uint64_t n : single) entropy.unigram += weighted_surprise(n, count, count);
  for (std::size_t begin = 0, end = 0; begin < pairs.size(); begin = end) {
    while (end < pairs.size() && pairs[end] == pairs[begin]) ++end;
    entropy.bigram += weighted_surprise(end - begin, before[pairs[begin] >> 32], pairs.size());
  }
  return entropy;
}

}  // namespace

TextEntropy text_entropy(const std::vector<ByteView>& files, DType width) {
  return width == DType::kU8 ? of_bytes(files) : of_ids(files, width);
}

TextEntropy training_entropy(const TextSet& text, DType width) {
  std::vector<ByteView> files;
  for (const TokenFile& file : text.training) files.push_back(file.ids());
  return text_entropy(files, width);
}

}  // namespace shoal
