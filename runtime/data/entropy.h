#pragma once
// What a text gives away without any model: the marks a training loss is measured against. Pure; thread-safe.
#include "common/bytes.h"
#include "common/tensor_view.h"

namespace shoal {

// Plug-in estimates from the counts of the text itself (Shannon 1948, sections 6 and 7), in nats a text token; 0 for an
// empty text. From below where the text is short for its ids: a pair that comes once is certain to these counts.
struct TextEntropy {
  double unigram = 0;  // H(X)
  double bigram = 0;   // H(next | this)
};
TextEntropy text_entropy(ByteView text);  // of bytes
// For ids of this width, which a TokenFile has checked: memory goes by the largest. In a longer text the first
// kIdsCounted.
inline constexpr std::size_t kIdsCounted = std::size_t{16} << 20;
TextEntropy text_entropy_of_ids(ByteView text, DType width);

}  // namespace shoal
