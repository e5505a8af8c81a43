#pragma once
// What a text gives away without any model: the marks a training loss is measured against. Pure; thread-safe.
#include <vector>

#include "common/bytes.h"
#include "common/tensor_view.h"
#include "runtime/data/text_set.h"

namespace shoal {

// Plug-in estimates from the counts of the text itself (Shannon 1948, sections 6 and 7), in nats a text token; 0 for an
// empty text. From below where the text is short for its ids: a pair that comes once is certain to these counts.
struct TextEntropy {
  double unigram = 0;  // H(X)
  double bigram = 0;   // H(next | this)
};
// Counts ids of this width, which a TokenFile has checked, over all the files; those of 16 and 32 bits up to the first
// kIdsCounted, since memory goes by their number.
inline constexpr std::size_t kIdsCounted = std::size_t{16} << 20;
TextEntropy text_entropy(const std::vector<ByteView>& files, DType width);
TextEntropy training_entropy(const TextSet& text, DType width);  // of what is trained on

}  // namespace shoal
