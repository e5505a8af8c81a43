#include "text/bpe.h"

#include <algorithm>
#include <queue>
#include <span>

#include "text/utf8.h"

namespace shoal {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581, sentencepiece's space
constexpr std::size_t kFew = 48;                    // symbols that are merged by looking at all of them
constexpr std::uint32_t kNoRank = ~std::uint32_t{0};

// Whether a mark stands behind another character.
bool has_inner_mark(std::string_view token) {
  for (std::size_t at = token.find(kMark, 1); at != std::string_view::npos; at = token.find(kMark, at + 1)) {
    if (token.substr(0, at).size() < kMark.size() || token.substr(at - kMark.size(), kMark.size()) != kMark)
      return true;
  }
  return false;
}

// When no merged token has a mark inside, no merge ever joins what stands before a mark with the mark, unless that is a
// mark itself: the words of a piece are merged each alone, with the same outcome.
bool marks_begin_words(const BpeRules& rules) {
  const auto is_mark = [](const std::optional<std::string>& token) { return token && *token == kMark; };
  if (std::none_of(rules.tokens.begin(), rules.tokens.end(), is_mark)) return false;
  return std::none_of(rules.merges.begin(), rules.merges.end(), [&](const MergeRule& rule) {
    const auto& token = rules.tokens[rule.merged];
    return !token || has_inner_mark(*token);
  });
}

}  // namespace

Bpe::Bpe(const BpeRules& rules)
    : unit_(rules.unit),
      merges_(rules.merges),
      byte_tokens_(rules.byte_tokens),
      unknown_(rules.unknown),
      fuse_unknown_(rules.fuse_unknown),
      ignore_merges_(rules.ignore_merges) {
  for (std::uint32_t id = 0; id < rules.tokens.size(); ++id) {
    const auto& token = rules.tokens[id];
    if (!token || token->empty()) continue;
    if (ignore_merges_) whole_.emplace(*token, id);
    if (unit_ == BpeRules::Unit::kByte) {
      if (token->size() == 1) units_[static_cast<unsigned char>((*token)[0])] = id;
    } else if (character_bytes((*token)[0]) == token->size()) {
      characters_.emplace(character_at(*token, 0), id);
    }
  }
  words_begin_with_mark_ = unit_ == BpeRules::Unit::kCharacter && !ignore_merges_ && marks_begin_words(rules);
}

void Bpe::encode(std::string_view piece, BpeRoom& room, std::vector<std::uint32_t>& ids) const {
  if (!words_begin_with_mark_) return encode_word(piece, room, ids);
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t end = word_end(piece, at);
    encode_word(piece.substr(at, end - at), room, ids);
    at = end;
  }
}

// Marks, then what is none.
std::size_t Bpe::word_end(std::string_view piece, std::size_t from) const {
  while (piece.substr(from).starts_with(kMark)) from += kMark.size();
  return std::min(piece.size(), piece.find(kMark, from));
}

void Bpe::encode_word(std::string_view word, BpeRoom& room, std::vector<std::uint32_t>& ids) const {
  if (word.size() > WordCache::kWordBytesMax) return merge_word(word, room, ids);
  const WordCache::Key key(word);
  if (room.cache.append(key, ids)) return;
  const std::size_t before = ids.size();
  merge_word(word, room, ids);
  room.cache.keep(key, std::span(ids).subspan(before));
}

void Bpe::merge_word(std::string_view word, BpeRoom& room, std::vector<std::uint32_t>& ids) const {
  if (ignore_merges_) {
    if (const auto whole = whole_.find(std::string(word)); whole != whole_.end()) return ids.push_back(whole->second);
  }
  std::vector<std::uint32_t>& symbols = room.symbols;
  symbols.clear();
  split(word, symbols);
  if (symbols.size() <= kFew) {
    merge_few(symbols);
  } else {
    merge_many(symbols);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

std::optional<std::uint32_t> Bpe::unit_token(std::string_view unit) const {
  if (unit_ == BpeRules::Unit::kByte) return units_[static_cast<unsigned char>(unit[0])];
  const auto found = characters_.find(character_at(unit, 0));
  if (found == characters_.end()) return std::nullopt;
  return found->second;
}

// All bytes of a character have tokens, or none is taken.
bool Bpe::append_bytes(std::string_view character, std::vector<std::uint32_t>& symbols) const {
  const auto token = [&](char byte) { return byte_tokens_[static_cast<unsigned char>(byte)]; };
  if (!std::all_of(character.begin(), character.end(), [&](char byte) { return token(byte).has_value(); }))
    return false;
  for (const char byte : character) symbols.push_back(*token(byte));
  return true;
}

// An unknown is added when the next known one comes, as in `tokenizers`: bytes that stand for a character do not end
// it.
void Bpe::split(std::string_view word, std::vector<std::uint32_t>& symbols) const {
  bool pending = false;
  const auto flush = [&] {
    if (pending) symbols.push_back(*unknown_);
    pending = false;
  };
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t bytes = unit_ == BpeRules::Unit::kByte ? 1 : character_bytes(word[at]);
    const std::string_view unit = word.substr(at, bytes);
    at += bytes;
    if (const auto token = unit_token(unit)) {
      flush();
      symbols.push_back(*token);
    } else if (!append_bytes(unit, symbols) && unknown_) {
      if (!fuse_unknown_) flush();
      pending = true;
    }
  }
  flush();
}

void Bpe::merge_few(std::vector<std::uint32_t>& symbols) const {
  struct Pair {
    std::uint32_t rank = kNoRank;
    std::uint32_t merged = 0;
  };
  std::array<Pair, kFew> pairs;  // of each symbol and the one behind it
  const auto look = [&](std::size_t at) {
    const MergeTable::Entry* entry = merges_.find(symbols[at], symbols[at + 1]);
    pairs[at] = entry == nullptr ? Pair{} : Pair{entry->rank, entry->merged};
  };
  std::size_t count = symbols.size();
  for (std::size_t at = 0; at + 1 < count; ++at) look(at);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t at = 1; at + 1 < count; ++at) {
      if (pairs[at].rank < pairs[best].rank) best = at;
    }
    if (pairs[best].rank == kNoRank) break;
    symbols[best] = pairs[best].merged;
    for (std::size_t at = best + 1; at + 1 < count; ++at) {
      symbols[at] = symbols[at + 1];
      pairs[at] = pairs[at + 1];
    }
    --count;
    if (best > 0) look(best - 1);
    if (best + 1 < count) look(best);
  }
  symbols.resize(count);
}

// Neighbours are a list over the symbols; what may merge waits in a heap. An entry whose pair is gone is dropped when
// it comes: ranks tell pairs apart.
void Bpe::merge_many(std::vector<std::uint32_t>& symbols) const {
  const std::size_t count = symbols.size();
  constexpr std::uint32_t kGone = ~std::uint32_t{0};
  std::vector<std::uint32_t> before(count), behind(count);  // count: there is none
  std::vector<std::uint64_t> first;
  const auto entry_at = [&](std::size_t at, const MergeTable::Entry*& entry) {
    entry = behind[at] < count ? merges_.find(symbols[at], symbols[behind[at]]) : nullptr;
    return entry == nullptr ? 0 : std::uint64_t{entry->rank} << 32 | at;
  };
  const MergeTable::Entry* entry = nullptr;
  for (std::size_t at = 0; at < count; ++at) {
    before[at] = static_cast<std::uint32_t>(at == 0 ? count : at - 1);
    behind[at] = static_cast<std::uint32_t>(at + 1);
  }
  for (std::size_t at = 0; at < count; ++at) {
    const std::uint64_t waiting = entry_at(at, entry);
    if (entry != nullptr) first.push_back(waiting);
  }
  std::priority_queue queue(std::greater<std::uint64_t>(), std::move(first));
  while (!queue.empty()) {
    const std::uint64_t top = queue.top();
    queue.pop();
    const auto at = static_cast<std::uint32_t>(top);
    if (symbols[at] == kGone || entry_at(at, entry) != top || entry == nullptr) continue;
    const std::uint32_t right = behind[at];
    symbols[at] = entry->merged;
    symbols[right] = kGone;
    behind[at] = behind[right];
    if (behind[at] < count) before[behind[at]] = at;
    for (const std::size_t changed : {std::size_t{before[at]}, std::size_t{at}}) {
      if (changed >= count) continue;
      const std::uint64_t waiting = entry_at(changed, entry);
      if (entry != nullptr) queue.push(waiting);
    }
  }
  std::erase(symbols, kGone);
}

}  // namespace shoal
