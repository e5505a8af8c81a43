#pragma once
// Text to the ids of a model and back: by a tokenizer, or each byte its own id.
// Immutable; thread-safe. A value that shares its tokenizer.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace shoal {

class TextCode {
 public:
  TextCode() = default;  // of bytes
  explicit TextCode(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

  std::vector<std::uint32_t> ids_of(std::string_view text) const;
  // A piece of text, which may end inside a character. Special tokens stand for nothing.
  std::string bytes_of(std::uint32_t id) const;
  std::optional<std::uint32_t> end_of_text() const;
  std::uint32_t vocabulary() const { return tokenizer_ ? tokenizer_->vocabulary() : 256; }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
};

// Holds back the bytes of a character that has not come whole. What will never be one is given as it is.
class WholeCharacters {
 public:
  // What can be shown now.
  std::string add(std::string_view bytes);
  std::string rest() { return std::exchange(held_, {}); }

 private:
  std::string held_;
};

}  // namespace shoal
