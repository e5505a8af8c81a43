#pragma once
// What a text gives away without any model: the marks a training loss is measured against. Pure; thread-safe.
#include "common/bytes.h"

namespace shoal {

// Plug-in estimates from the counts of the text itself (Shannon 1948, sections 6 and 7), in nats a byte; 0 for an empty
// text.
struct TextEntropy {
  double unigram = 0;  // H(X)
  double bigram = 0;   // H(next byte | this byte)
};
TextEntropy text_entropy(ByteView text);

}  // namespace shoal
