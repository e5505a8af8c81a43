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

}  // namespace

TextEntropy text_entropy(ByteView text) {
  std::vector<std::uint64_t> single(256), pairs(256 * 256), before(256);
  for (std::uint8_t byte : text) ++single[byte];
  for (std::size_t i = 1; i < text.size(); ++i) {
    ++pairs[text[i - 1] * 256u + text[i]];
    ++before[text[i - 1]];
  }
  TextEntropy entropy;
  for (std::uint64_t n : single) entropy.unigram += weighted_surprise(n, text.size(), text.size());
  for (std::size_t i = 0; i < pairs.size(); ++i)
    entropy.bigram += weighted_surprise(pairs[i], before[i / 256], text.size() - 1);
  return entropy;
}

// Most of the pairs that there could be never come: they are sorted and not counted in a table.
TextEntropy text_entropy_of_ids(ByteView text, DType width) {
  const std::size_t count = std::min(text.size() / size_of(width), kIdsCounted);
  std::vector<std::uint64_t> single, before, pairs;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < count; ++i) {
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
  std::ranges::sort(pairs);
  TextEntropy entropy;
  for (const std::uint64_t n : single) entropy.unigram += weighted_surprise(n, count, count);
  for (std::size_t begin = 0, end = 0; begin < pairs.size(); begin = end) {
    while (end < pairs.size() && pairs[end] == pairs[begin]) ++end;
    entropy.bigram += weighted_surprise(end - begin, before[pairs[begin] >> 32], pairs.size());
  }
  return entropy;
}

}  // namespace shoal
