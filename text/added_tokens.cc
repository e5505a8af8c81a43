#include "text/added_tokens.h"

#include <algorithm>

#include "text/utf8.h"

namespace shoal {
namespace {

// White_Space and the characters of words, as patterns have them.
struct Classes {
  SplitPattern space = SplitPattern::of_pattern("\\s").value();
  SplitPattern word = SplitPattern::of_pattern("\\w").value();

  static const Classes& get() {
    static const Classes classes;
    return classes;
  }
};

std::size_t previous(std::string_view text, std::size_t at) {
  do --at;
  while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

bool is_of(const SplitPattern& set, std::string_view text, std::size_t at, MatchRoom& room) {
  return set.find(text.substr(at, character_bytes(text[at])), 0, room).has_value();
}

std::size_t before_spaces(std::string_view text, std::size_t at, MatchRoom& room) {
  while (at > 0 && is_of(Classes::get().space, text, previous(text, at), room)) at = previous(text, at);
  return at;
}

std::size_t behind_spaces(std::string_view text, std::size_t at, MatchRoom& room) {
  while (at < text.size() && is_of(Classes::get().space, text, at, room)) at += character_bytes(text[at]);
  return at;
}

}  // namespace

TokenFinder::TokenFinder() = default;

void TokenFinder::add(const AddedToken& token, std::string_view content) {
  SHOAL_CHECK(!content.empty());
  std::uint32_t at = 0;
  for (const char byte : content) {
    auto& next = nodes_[at].next;
    const auto found = std::find_if(next.begin(), next.end(), [&](const auto& edge) { return edge.first == byte; });
    if (found != next.end()) {
      at = found->second;
      continue;
    }
    const auto made = static_cast<std::uint32_t>(nodes_.size());
    next.emplace_back(byte, made);
    nodes_.emplace_back();  // `next` is no longer there
    at = made;
  }
  begins_[static_cast<unsigned char>(content[0])] = true;
  if (nodes_[at].token >= 0) return;
  nodes_[at].token = static_cast<std::int32_t>(tokens_.size());
  tokens_.push_back(token);
}

std::optional<TokenFinder::Match> TokenFinder::match_at(std::string_view text, std::size_t at) const {
  std::optional<Match> longest;
  for (std::uint32_t node = 0; at < text.size();) {
    const auto& next = nodes_[node].next;
    const auto found = std::find_if(next.begin(), next.end(), [&](const auto& edge) { return edge.first == text[at]; });
    if (found == next.end()) break;
    node = found->second;
    ++at;
    if (nodes_[node].token >= 0) longest = Match{at, &tokens_[static_cast<std::size_t>(nodes_[node].token)]};
  }
  return longest;
}

bool TokenFinder::is_single(std::string_view text, TextRange range, MatchRoom& room) const {
  const SplitPattern& word = Classes::get().word;
  if (range.begin > 0 && is_of(word, text, previous(text, range.begin), room)) return false;
  return range.end == text.size() || !is_of(word, text, range.end, room);
}

void TokenFinder::cut(std::string_view text, MatchRoom& room, std::vector<TextSection>& sections) const {
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size() && !empty();) {
    if (!begins_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const std::optional<Match> match = match_at(text, at);
    if (!match) {
      ++at;
      continue;
    }
    TextRange range{at, match->end};
    at = match->end;
    if (match->token->single_word && !is_single(text, range, room)) continue;
    // Spaces that the token before has taken are its own.
    if (match->token->lstrip) range.begin = std::max(done, before_spaces(text, range.begin, room));
    if (match->token->rstrip) range.end = behind_spaces(text, range.end, room);
    if (done < range.begin) sections.push_back({{done, range.begin}, std::nullopt});
    sections.push_back({range, match->token->id});
    done = range.end;
  }
  if (done < text.size()) sections.push_back({{done, text.size()}, std::nullopt});
}

}  // namespace shoal
