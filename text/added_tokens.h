#pragma once
// Tokens that a tokenizer got besides those it learned: they are found in the text as they stand, before anything is
// cut or merged. Immutable; thread-safe.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/split_pattern.h"

namespace shoal {

struct AddedToken {
  std::uint32_t id = 0;
  std::string content;
  bool special = false;
  bool normalized = false;   // is looked for in the normalized text
  bool lstrip = false;       // takes the spaces before it
  bool rstrip = false;       // takes the spaces behind it
  bool single_word = false;  // is none where a letter or digit touches it
};

// A part of a text: a token, or what stands between two.
struct TextSection {
  TextRange range;
  std::optional<std::uint32_t> token;
};

// Finds some tokens in one pass: at each place the longest, and of equal ones the first.
class TokenFinder {
 public:
  TokenFinder();
  // REQUIRES: the content is not empty.
  void add(const AddedToken& token, std::string_view content);
  bool empty() const { return tokens_.empty(); }
  // Appends the sections of `text`, in order; none is empty. REQUIRES: valid UTF-8.
  void cut(std::string_view text, MatchRoom& room, std::vector<TextSection>& sections) const;

 private:
  struct Match {
    std::size_t end;
    const AddedToken* token;
  };
  std::optional<Match> match_at(std::string_view text, std::size_t at) const;
  bool is_single(std::string_view text, TextRange range, MatchRoom& room) const;

  struct Node {
    std::vector<std::pair<char, std::uint32_t>> next;
    std::int32_t token = -1;
  };
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::vector<AddedToken> tokens_;
  std::array<bool, 256> begins_{};  // whether a token begins with the byte
};

}  // namespace shoal
