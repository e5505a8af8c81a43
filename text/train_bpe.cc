#include "text/train_bpe.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <queue>
#include <unordered_map>
#include <vector>

#include "text/byte_map.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer_steps.h"
#include "text/utf8.h"

namespace shoal {
namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr std::uint64_t kSeenMin = 2;

using Pair = std::uint64_t;  // left id << 32 | right id
Pair pair_of(std::uint32_t left, std::uint32_t right) { return Pair{left} << 32 | right; }
std::uint32_t left_of(Pair pair) { return static_cast<std::uint32_t>(pair >> 32); }
std::uint32_t right_of(Pair pair) { return static_cast<std::uint32_t>(pair); }

struct Word {
  std::vector<std::uint32_t> symbols;
  std::uint64_t count;
};

struct Candidate {
  std::uint64_t count;
  Pair pair;
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

// The words as sequences of tokens, merged pair by pair.
class Merger {
 public:
  explicit Merger(const std::unordered_map<std::string, std::uint64_t>& counts) {
    add_token(std::string(kEndOfText));
    std::vector<std::pair<char32_t, unsigned char>> bytes;
    for (int byte = 0; byte < 256; ++byte)
      bytes.emplace_back(character_of_byte(static_cast<std::uint8_t>(byte)), static_cast<unsigned char>(byte));
    std::sort(bytes.begin(), bytes.end());
    std::vector<std::uint32_t> token_by_byte(256);
    for (const auto& [character, byte] : bytes)
      token_by_byte[byte] = add_token(characters_of_bytes(std::string(1, static_cast<char>(byte))));
    words_.reserve(counts.size());
    for (const auto& [text, count] : counts) {
      Word word{{}, count};
      for (const char byte : text) word.symbols.push_back(token_by_byte[static_cast<unsigned char>(byte)]);
      words_.push_back(std::move(word));
      const std::vector<std::uint32_t>& symbols = words_.back().symbols;
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i) more(pair_of(symbols[i], symbols[i + 1]), words_.size() - 1);
    }
    push_seen();
  }

  Status merge_until(std::uint32_t vocabulary, const std::function<bool()>& stop) {
    while (tokens_.size() < vocabulary && !queue_.empty()) {
      if (stop && stop()) return make_error(ErrorCode::kInterrupted, "no tokenizer was written: interrupted");
      const Candidate top = queue_.top();
      queue_.pop();
      const std::uint64_t count = counts_[top.pair];
      if (count < kSeenMin) continue;
      if (count != top.count) {
        queue_.push({count, top.pair});
      } else {
        merge(top.pair);
      }
    }
    return {};
  }

  const std::vector<std::string>& tokens() const { return tokens_; }
  const std::vector<Pair>& merges() const { return merges_; }

 private:
  std::uint32_t add_token(const std::string& content) {
    const auto [found, is_new] = ids_.emplace(content, static_cast<std::uint32_t>(tokens_.size()));
    if (is_new) tokens_.push_back(content);
    return found->second;
  }

  // A pair counts as often as it stands in a word, times the word.
  void more(Pair pair, std::size_t at) {
    counts_[pair] += words_[at].count;
    std::vector<std::uint32_t>& places = places_[pair];
    if (!places.empty() && places.back() == at) return;
    places.push_back(static_cast<std::uint32_t>(at));
    seen_.push_back(pair);
  }
  void fewer(Pair pair, std::size_t at) { counts_[pair] -= words_[at].count; }

  // A merge makes no pair more frequent than it was, unless it has the new token.
  void push_seen() {
    std::sort(seen_.begin(), seen_.end());
    seen_.erase(std::unique(seen_.begin(), seen_.end()), seen_.end());
    for (const Pair pair : seen_) {
      if (counts_[pair] >= kSeenMin) queue_.push({counts_[pair], pair});
    }
    seen_.clear();
  }

  void merge(Pair pair) {
    const std::uint32_t merged = add_token(tokens_[left_of(pair)] + tokens_[right_of(pair)]);
    merges_.push_back(pair);
    const std::vector<std::uint32_t> places = std::move(places_[pair]);
    for (const std::uint32_t at : places) replace(at, pair, merged);
    places_.erase(pair);
    counts_.erase(pair);
    push_seen();
  }

  // Only the neighbours of what is replaced are counted anew: a word may be as long as a text.
  void replace(std::size_t at, Pair pair, std::uint32_t merged) {
    std::vector<std::uint32_t>& symbols = words_[at].symbols;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      const bool found = i + 1 < symbols.size() && pair_of(symbols[i], symbols[i + 1]) == pair;
      if (!found) {
        symbols[kept++] = symbols[i];
        continue;
      }
      fewer(pair, at);
      if (kept > 0) {
        fewer(pair_of(symbols[kept - 1], symbols[i]), at);
        more(pair_of(symbols[kept - 1], merged), at);
      }
      ++i;
      if (i + 1 < symbols.size()) {
        fewer(pair_of(symbols[i], symbols[i + 1]), at);
        more(pair_of(merged, symbols[i + 1]), at);
      }
      symbols[kept++] = merged;
    }
    symbols.resize(kept);
  }

  std::vector<Word> words_;
  std::vector<std::string> tokens_;  // as the file writes them
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<Pair> merges_;
  std::unordered_map<Pair, std::uint64_t> counts_;
  std::unordered_map<Pair, std::vector<std::uint32_t>> places_;  // words that had the pair when they were looked at
  std::vector<Pair> seen_;                                       // pairs whose counts may have grown
  std::priority_queue<Candidate> queue_;
};

nlohmann::ordered_json byte_level(bool prefix) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", prefix}, {"trim_offsets", true}, {"use_regex", true}};
}

std::string json_of(const Merger& merger) {
  nlohmann::ordered_json vocabulary = nlohmann::ordered_json::object();
  auto merges = nlohmann::ordered_json::array();
  const std::vector<std::string>& tokens = merger.tokens();
  // Not by name: an ordered object looks at all its members for it.
  auto& members = vocabulary.get_ref<nlohmann::ordered_json::object_t&>();
  for (std::size_t id = 0; id < tokens.size(); ++id)
    members.nlohmann::ordered_json::object_t::Container::emplace_back(tokens[id], id);
  for (const Pair pair : merger.merges()) merges.push_back(tokens[left_of(pair)] + " " + tokens[right_of(pair)]);
  const nlohmann::ordered_json end = {{"id", 0},         {"content", kEndOfText}, {"single_word", false},
                                      {"lstrip", false}, {"rstrip", false},       {"normalized", false},
                                      {"special", true}};
  const nlohmann::ordered_json model = {{"type", "BPE"},
                                        {"dropout", nullptr},
                                        {"unk_token", nullptr},
                                        {"continuing_subword_prefix", nullptr},
                                        {"end_of_word_suffix", nullptr},
                                        {"fuse_unk", false},
                                        {"byte_fallback", false},
                                        {"ignore_merges", false},
                                        {"vocab", std::move(vocabulary)},
                                        {"merges", std::move(merges)}};
  const nlohmann::ordered_json file = {{"version", "1.0"},
                                       {"truncation", nullptr},
                                       {"padding", nullptr},
                                       {"added_tokens", nlohmann::ordered_json::array({end})},
                                       {"normalizer", nullptr},
                                       {"pre_tokenizer", byte_level(false)},
                                       {"post_processor", nullptr},
                                       {"decoder", byte_level(true)},
                                       {"model", model}};
  return file.dump(1) + "\n";
}

PreTokenizer gpt2_words() {
  return PreTokenizer(std::move(read_pre_tokenizer(R"({"type":"ByteLevel","add_prefix_space":false})").value().steps));
}

}  // namespace

struct BpeTrainer::Counts {
  PreTokenizer words = gpt2_words();
  MatchRoom room;
  std::unordered_map<std::string, std::uint64_t> counts;
};

BpeTrainer::BpeTrainer() : counts_(std::make_unique<Counts>()) {}
BpeTrainer::~BpeTrainer() = default;

void BpeTrainer::add(std::string_view document) {
  if (!is_utf8(document)) return add(with_replacements(document));
  auto& counts = counts_->counts;
  counts_->words.cut(document, true, counts_->room, [&](std::string_view piece) {
    std::string word(piece);
    if (counts.size() < kTrainedWordsMax) {
      ++counts[std::move(word)];
    } else if (const auto found = counts.find(word); found != counts.end()) {
      ++found->second;
    }
  });
}

Result<std::string> BpeTrainer::finish(std::uint32_t vocabulary, const std::function<bool()>& stop) const {
  if (vocabulary < kTrainedVocabularyMin || vocabulary > kTrainedVocabularyMax) {
    return make_error(ErrorCode::kInput,
                      "a vocabulary of " + std::to_string(vocabulary) +
                          " tokens cannot be learned. HINT: " + std::to_string(kTrainedVocabularyMin) + " to " +
                          std::to_string(kTrainedVocabularyMax) + " can");
  }
  if (counts_->counts.empty())
    return make_error(ErrorCode::kInput,
                      "a tokenizer cannot be learned from no text. HINT: give a text that is not empty");
  Merger merger(counts_->counts);
  SHOAL_TRY(merger.merge_until(vocabulary, stop));
  return json_of(merger);
}

}  // namespace shoal
