#pragma once
// Byte-pair encoding (Sennrich et al. 2016, algorithm 1): a piece falls into bytes or characters, and the earliest rule
// that fits merges two neighbours until none fits; of equal ones the leftmost first. O(n log n) in a piece.
// Thread: a Bpe is immutable and thread-safe; a BpeRoom belongs to one call at a time.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/merge_table.h"
#include "text/word_cache.h"

namespace shoal {

// What a Bpe is made of.
struct BpeRules {
  enum class Unit { kByte, kCharacter };
  Unit unit = Unit::kByte;
  // The tokens that text can become, each with its bytes, by id; none where a token stands for no bytes of a text.
  std::vector<std::optional<std::string>> tokens;
  std::vector<MergeRule> merges;                                // in their order; no part of one is empty
  std::array<std::optional<std::uint32_t>, 256> byte_tokens{};  // for characters that are no token: byte fallback
  std::optional<std::uint32_t> unknown;                         // for what has no token; without it that is left out
  bool fuse_unknown = false;                                    // one for several in a row
  bool ignore_merges = false;                                   // a piece that is a token becomes it
};

// What a call needs besides: memory that is used again, and the words it saw.
struct BpeRoom {
  WordCache cache;
  std::vector<std::uint32_t> symbols;
};

class Bpe {
 public:
  explicit Bpe(const BpeRules& rules);

  // Appends the tokens of a piece. REQUIRES: UTF-8 where characters are the units.
  void encode(std::string_view piece, BpeRoom& room, std::vector<std::uint32_t>& ids) const;

 private:
  void encode_word(std::string_view word, BpeRoom& room, std::vector<std::uint32_t>& ids) const;
  void merge_word(std::string_view word, BpeRoom& room, std::vector<std::uint32_t>& ids) const;
  void split(std::string_view word, std::vector<std::uint32_t>& symbols) const;
  bool append_bytes(std::string_view character, std::vector<std::uint32_t>& symbols) const;
  std::optional<std::uint32_t> unit_token(std::string_view unit) const;
  void merge_few(std::vector<std::uint32_t>& symbols) const;
  void merge_many(std::vector<std::uint32_t>& symbols) const;
  std::size_t word_end(std::string_view piece, std::size_t from) const;

  BpeRules::Unit unit_;
  MergeTable merges_;
  std::array<std::optional<std::uint32_t>, 256> units_{};  // tokens of one byte
  std::unordered_map<char32_t, std::uint32_t> characters_;
  std::array<std::optional<std::uint32_t>, 256> byte_tokens_;
  std::optional<std::uint32_t> unknown_;
  bool fuse_unknown_;
  bool ignore_merges_;
  bool words_begin_with_mark_ = false;  // no merge goes over the begin of a word: pieces fall into words
  std::unordered_map<std::string, std::uint32_t> whole_;  // for ignore_merges
};

}  // namespace shoal
