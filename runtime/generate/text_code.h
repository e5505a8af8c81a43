#pragma once
// Text to the ids of a model and back: by a tokenizer, or each byte its own id.
// Immutable; thread-safe. A value that shares its tokenizer.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace shoal {

class TextCode {
 public:
  TextCode() = default;  // of bytes
  // No tokenizer: bytes. `ends`: behind any of these ids a text is over.
  TextCode(std::shared_ptr<const Tokenizer> tokenizer, std::vector<std::uint32_t> ends)
      : tokenizer_(std::move(tokenizer)), ends_(std::move(ends)) {}

  std::vector<std::uint32_t> ids_of(std::string_view text) const;
  // A piece of text, which may end inside a character. Special tokens stand for nothing.
  std::string bytes_of(std::uint32_t id) const;
  // What the tokenizer puts in front of a text; ids_of() does not.
  std::vector<std::uint32_t> begin() const;
  const std::vector<std::uint32_t>& ends() const { return ends_; }
  std::uint32_t vocabulary() const { return tokenizer_ ? tokenizer_->vocabulary() : 256; }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<std::uint32_t> ends_;
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
