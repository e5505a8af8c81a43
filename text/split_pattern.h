#pragma once
// A pattern that cuts text, compiled by PCRE2 to machine code where that can be had.
// Thread: a SplitPattern is immutable and thread-safe; a MatchRoom belongs to one call at a time.
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "common/result.h"

namespace shoal {

// What a search needs besides pattern and text; it serves every pattern.
class MatchRoom {
 public:
  MatchRoom();
  ~MatchRoom();
  MatchRoom(MatchRoom&&) noexcept;
  MatchRoom& operator=(MatchRoom&&) noexcept;

  // From now on a search in a text that ends at `end` finds nothing where its answer could be another if more text
  // followed, and reached_end() says so. Nullptr: no search does.
  void watch_end(const char* end);
  bool reached_end() const;

 private:
  friend class SplitPattern;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

struct TextRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

class SplitPattern {
 public:
  // `pattern` as tokenizer.json has it (text/pattern_dialect.h). ERRORS: kUnsupported, kTooLarge.
  static Result<SplitPattern> of_pattern(std::string_view pattern);
  // Finds just this text. ERRORS: kTooLarge.
  static Result<SplitPattern> of_literal(std::string_view text);
  ~SplitPattern();
  SplitPattern(SplitPattern&&) noexcept;
  SplitPattern& operator=(SplitPattern&&) noexcept;

  // The first match at or after `from`, which looks back before it, too. An empty one counts only beyond `from`.
  // A search that takes more than ten million steps finds nothing, so that no pattern holds us for ever.
  // REQUIRES: valid UTF-8; `from` begins a character.
  std::optional<TextRange> find(std::string_view text, std::size_t from, MatchRoom& room) const;

 private:
  struct Code;
  explicit SplitPattern(std::unique_ptr<const Code> code);
  static Result<SplitPattern> compile(const std::string& pattern);
  std::optional<TextRange> search(std::string_view text, std::size_t from, MatchRoom& room) const;
  std::unique_ptr<const Code> code_;
};

}  // namespace shoal
