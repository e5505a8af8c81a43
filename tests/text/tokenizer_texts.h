#pragma once
// Small tokenizers as JSON, and the golden ones.
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace shoal {

using Ids = std::vector<std::uint32_t>;

inline const std::string kGolden = SHOAL_SOURCE_DIR "/tests/text/golden/";

inline std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline ByteView view_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline Result<Tokenizer> parse(const nlohmann::json& json) {
  const std::string text = json.dump();
  return Tokenizer::parse(view_of(text), "tokenizer.json");
}

inline Ids encoded(const Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  tokenizer.encode(text, ids);
  return ids;
}

// Byte-level, with all bytes as tokens, in their order, and then "ab" and "abc".
inline nlohmann::json small_tokenizer() {
  const nlohmann::json gpt2 = nlohmann::json::parse(file_text(kGolden + "gpt2.json"));
  nlohmann::json vocabulary;
  const auto add = [&](const std::string& token) { vocabulary[token] = vocabulary.size(); };
  for (const auto& [content, id] : gpt2["model"]["vocab"].items()) {
    if (id >= 1 && id <= 256) add(content);
  }
  add("ab");
  add("abc");
  const nlohmann::json level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  return {{"normalizer", nullptr},
          {"pre_tokenizer", level},
          {"decoder", {{"type", "ByteLevel"}}},
          {"added_tokens", nlohmann::json::array()},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", {"a b", "ab c"}}}}};
}

}  // namespace shoal
