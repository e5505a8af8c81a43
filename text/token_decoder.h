#pragma once
// From tokens back to text, step by step, as `tokenizers` does. Immutable; thread-safe.
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/normaliser.h"

namespace shoal {

struct ByteLevelDecode {};     // characters that stand for bytes (text/byte_map.h)
struct ByteFallbackDecode {};  // tokens <0xHH> are bytes; a run that is no UTF-8 becomes one U+FFFD a byte
struct FuseDecode {};          // all tokens become one
struct StripDecode {           // up to so many of a character from both ends of each token
  std::string character;
  std::size_t start = 0;
  std::size_t stop = 0;
};
struct MarkDecode {  // marks become spaces, and nothing in the first token if a mark was put in front
  std::string mark;
  bool prefixed = true;
};
using DecodeStep = std::variant<ByteLevelDecode, ByteFallbackDecode, ReplaceText, FuseDecode, StripDecode, MarkDecode>;

class TokenDecoder {
 public:
  TokenDecoder() = default;
  explicit TokenDecoder(std::vector<DecodeStep> steps) : steps_(std::move(steps)) {}

  // What no UTF-8 comes of becomes U+FFFD.
  std::string text_of(std::vector<std::string> tokens) const;
  // The bytes of one token wherever it stands: neither the first token nor a last one is treated apart.
  std::string bytes_of(std::string_view token) const;

 private:
  std::vector<DecodeStep> steps_;
};

}  // namespace shoal
