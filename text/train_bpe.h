#pragma once
// Learns a byte-level BPE from texts: their words are counted, and the most frequent pair of neighbours becomes a token
// until there are enough (Sennrich et al. 2016, algorithm 1). Of pairs with equal counts the one with the lower ids
// comes first, so the same texts in any order give the same tokenizer. Thread: one at a time. Bounds: kTrainedWordsMax
// words; those that come later are not counted.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/result.h"

namespace shoal {

inline constexpr std::size_t kTrainedWordsMax = 4'000'000;
inline constexpr std::uint32_t kTrainedVocabularyMin = 257;  // the end of a text and the bytes
inline constexpr std::uint32_t kTrainedVocabularyMax = 262'144;

class BpeTrainer {
 public:
  BpeTrainer();
  ~BpeTrainer();

  // Counts the words of a text, cut as GPT-2 does. Bytes that are no UTF-8 count as U+FFFD, as Tokenizer reads them.
  void add(std::string_view document);
  // tokenizer.json with <|endoftext|> as token 0, the bytes, and the merges in the order in which they were learned. It
  // has fewer tokens than `vocabulary` where no pair is left that was seen twice. ERRORS: kInput (a vocabulary that is
  // out of bounds, no text), kInterrupted (`stop`, asked for each token, said so).
  Result<std::string> finish(std::uint32_t vocabulary, const std::function<bool()>& stop = {}) const;

 private:
  struct Counts;
  std::unique_ptr<Counts> counts_;
};

}  // namespace shoal
