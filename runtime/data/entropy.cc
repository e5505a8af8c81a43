#include "runtime/data/entropy.h"

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

}  // namespace shoal
