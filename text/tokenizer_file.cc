#include "text/tokenizer_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "text/byte_map.h"

namespace shoal {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kTokenIdMax = 1u << 31;

Error malformed(const std::string& what) { return make_error(ErrorCode::kMalformed, what); }
// In ASCII, so that a value may be cut anywhere.
std::string shown(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "[...]" : "{...}";  // nested deeper than a stack, perhaps
  return value.dump(-1, ' ', true).substr(0, 200);
}
std::string quoted(const std::string& text) { return shown(Json(text)); }

const Json& member(const Json& object, const char* key) {
  static const Json none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

Result<bool> flag(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (value.is_null()) return false;
  if (!value.is_boolean()) return malformed(std::string("\"") + key + "\" is neither true nor false");
  return value.get<bool>();
}

Error unsupported(const char* key, const Json& value) {
  return make_error(ErrorCode::kUnsupported,
                    std::string("\"") + key + "\" is " + shown(value) + ", which shoal does not have");
}

Status check_model(const Json& model) {
  if (!model.is_object()) return malformed("\"model\" is no object");
  const Json& type = member(model, "type");  // older files leave it out
  if (!type.is_null() && type != "BPE") return unsupported("model.type", type);
  const Json& dropout = member(model, "dropout");
  if (!dropout.is_null() && dropout != 0) return unsupported("model.dropout", dropout);
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json& value = member(model, key);
    if (!value.is_null() && value != "") return unsupported((std::string("model.") + key).c_str(), value);
  }
  if (!member(model, "vocab").is_object()) return malformed("\"model.vocab\" is no object");
  if (!member(model, "merges").is_array()) return malformed("\"model.merges\" is no list");
  return Status::success();
}

Status read_vocabulary(const Json& vocabulary, TokenizerFile& file) {
  const std::size_t count = vocabulary.size();
  std::vector<const std::string*> by_id(count);
  for (const auto& [content, id] : vocabulary.items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= count) {
      return malformed("\"model.vocab\" has a hole: " + std::to_string(count) + " tokens, and " + quoted(content) +
                       " has the id " + shown(id));
    }
    const auto at = id.get<std::uint32_t>();
    if (by_id[at] != nullptr) {
      return malformed("\"model.vocab\" gives the id " + std::to_string(at) + " to " + quoted(*by_id[at]) + " and to " +
                       quoted(content));
    }
    by_id[at] = &file.ids.emplace(content, at).first->first;
  }
  for (const std::string* content : by_id) file.contents.push_back(*content);
  return Status::success();
}

// "left right", or ["left", "right"].
std::optional<std::pair<std::string, std::string>> parts_of(const Json& merge) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
    return std::pair(merge[0].get<std::string>(), merge[1].get<std::string>());
  if (!merge.is_string()) return std::nullopt;
  const auto text = merge.get<std::string>();
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) return std::nullopt;
  return std::pair(text.substr(0, space), text.substr(space + 1));
}

Status read_merges(const Json& merges, TokenizerFile& file) {
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const Json& merge = merges[rank];
    if (merge.is_string() && merge.get_ref<const std::string&>().starts_with("#version")) continue;
    const std::string named = "\"model.merges\"[" + std::to_string(rank) + "], " + shown(merge) + ", ";
    const auto parts = parts_of(merge);
    if (!parts || parts->first.empty() || parts->second.empty()) return malformed(named + "is no pair of tokens");
    MergeRule rule;
    for (const auto& [content, id] : {std::pair(parts->first, &rule.left), std::pair(parts->second, &rule.right),
                                      std::pair(parts->first + parts->second, &rule.merged)}) {
      const auto found = file.ids.find(content);
      if (found == file.ids.end()) return malformed(named + "is of " + quoted(content) + ", which is no token");
      *id = found->second;
    }
    file.rules.merges.push_back(rule);
  }
  return Status::success();
}

// Whether every text has tokens: if not, something must be said of an unknown.
bool covers_bytes(const BpeRules& rules) {
  std::array<bool, 256> covered{};
  for (const auto& token : rules.tokens) {
    if (rules.unit == BpeRules::Unit::kByte && token && token->size() == 1)
      covered[static_cast<unsigned char>((*token)[0])] = true;
  }
  for (std::size_t byte = 0; byte < 256; ++byte) covered[byte] = covered[byte] || rules.byte_tokens[byte].has_value();
  return std::find(covered.begin(), covered.end(), false) == covered.end();
}

Status read_unknown(const Json& model, TokenizerFile& file) {
  const Json& unknown = member(model, "unk_token");
  if (unknown.is_null()) return Status::success();
  if (!unknown.is_string()) return malformed("\"model.unk_token\" is no text");
  const auto found = file.ids.find(unknown.get<std::string>());
  if (found != file.ids.end()) {
    file.rules.unknown = found->second;
  } else if (!covers_bytes(file.rules)) {
    return malformed("\"model.unk_token\" is " + shown(unknown) + ", which is no token");
  }
  return Status::success();
}

void read_byte_tokens(TokenizerFile& file) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const std::string content = std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + ">";
    if (const auto found = file.ids.find(content); found != file.ids.end())
      file.rules.byte_tokens[byte] = found->second;
  }
}

Status read_model(const Json& model, TokenizerFile& file) {
  SHOAL_TRY(check_model(model));
  SHOAL_TRY(read_vocabulary(model.at("vocab"), file));
  SHOAL_TRY(read_merges(model.at("merges"), file));
  BpeRules& rules = file.rules;
  SHOAL_ASSIGN(const bool byte_fallback, flag(model, "byte_fallback"));
  SHOAL_ASSIGN(rules.fuse_unknown, flag(model, "fuse_unk"));
  SHOAL_ASSIGN(rules.ignore_merges, flag(model, "ignore_merges"));
  const bool byte_level = file.pre_tokenizer.byte_level;
  if (byte_level && byte_fallback) {
    return make_error(ErrorCode::kUnsupported, "\"model.byte_fallback\" is true, and \"pre_tokenizer\" is ByteLevel");
  }
  rules.unit = byte_level ? BpeRules::Unit::kByte : BpeRules::Unit::kCharacter;
  for (const std::string& content : file.contents)
    rules.tokens.push_back(byte_level ? bytes_of_characters(content) : std::optional(content));
  if (byte_fallback) read_byte_tokens(file);
  return read_unknown(model, file);
}

Result<AddedToken> read_added_token(const Json& token) {
  if (!token.is_object() || !member(token, "id").is_number_unsigned() || !member(token, "content").is_string())
    return malformed("\"added_tokens\" has " + shown(token) + ", which lacks id or content");
  AddedToken added;
  if (token.at("id").get<std::uint64_t>() > kTokenIdMax)
    return malformed("\"added_tokens\" has the id " + shown(token.at("id")));
  added.id = token.at("id").get<std::uint32_t>();
  added.content = token.at("content").get<std::string>();
  if (added.content.empty()) return malformed("\"added_tokens\" has an empty token");
  for (const auto& [key, value] : {std::pair("special", &added.special), std::pair("normalized", &added.normalized),
                                   std::pair("lstrip", &added.lstrip), std::pair("rstrip", &added.rstrip),
                                   std::pair("single_word", &added.single_word)}) {
    SHOAL_ASSIGN(*value, flag(token, key));
  }
  return added;
}

// A token that the vocabulary has keeps its id; the others are numbered on from it, as `tokenizers` does whatever the
// file says.
Status read_added_tokens(const Json& tokens, TokenizerFile& file) {
  if (tokens.is_null()) return Status::success();
  if (!tokens.is_array()) return malformed("\"added_tokens\" is no list");
  std::vector<bool> seen(file.contents.size());
  for (const Json& token : tokens) {
    SHOAL_ASSIGN(const AddedToken added, read_added_token(token));
    const auto next = static_cast<std::uint32_t>(file.contents.size());
    const auto [found, is_new] = file.ids.emplace(added.content, next);
    if (found->second != added.id) {
      return malformed("\"added_tokens\" gives the id " + std::to_string(added.id) + " to " + quoted(added.content) +
                       (is_new ? ", and the next one is " : ", and the vocabulary gives it ") +
                       std::to_string(found->second));
    }
    if (is_new) {
      file.contents.push_back(added.content);
      seen.push_back(false);
    }
    if (!seen[added.id]) file.added.push_back(added);
    seen[added.id] = true;
  }
  return Status::success();
}

// A template names special tokens, which it lists with their ids, and the text, a "Sequence".
Status read_template(const Json& processor, TokenizerFile& file) {
  const Json &single = member(processor, "single"), &tokens = member(processor, "special_tokens");
  for (const Json& piece : single.is_array() ? single : Json::array()) {
    if (!piece.is_object() || !piece.contains("SpecialToken")) break;
    const Json& name = member(piece.at("SpecialToken"), "id");
    const Json& token = name.is_string() ? member(tokens, name.get_ref<const std::string&>().c_str()) : name;
    const Json& ids = token.is_object() ? member(token, "ids") : token;
    if (!ids.is_array()) return malformed("\"post_processor\" names " + shown(name) + ", and no ids of it");
    for (const Json& id : ids) {
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= file.contents.size())
        return malformed("\"post_processor\" gives " + shown(name) + " the id " + shown(id));
      file.begin.push_back(id.get<std::uint32_t>());
    }
  }
  return Status::success();
}

// Nothing is taken of other kinds than a template, which may stand in a sequence.
Status read_post_processor(const Json& processor, TokenizerFile& file) {
  if (!processor.is_object()) return Status::success();
  if (member(processor, "type") == "TemplateProcessing") return read_template(processor, file);
  const Json& several = member(processor, "processors");
  for (const Json& one : several.is_array() ? several : Json::array())
    if (one.is_object() && member(one, "type") == "TemplateProcessing") SHOAL_TRY(read_template(one, file));
  return Status::success();
}

}  // namespace

Result<TokenizerFile> read_tokenizer_file(ByteView json) {
  const Json root = Json::parse(json.begin(), json.end(), nullptr, false);
  if (root.is_discarded()) return malformed("it is no JSON");
  if (!root.is_object() || !root.contains("model")) return malformed("it has no \"model\"");
  TokenizerFile file;
  SHOAL_ASSIGN(file.normaliser, read_normalizer(member(root, "normalizer").dump()));
  SHOAL_ASSIGN(file.pre_tokenizer, read_pre_tokenizer(member(root, "pre_tokenizer").dump()));
  SHOAL_ASSIGN(file.decoder, read_decoder(member(root, "decoder").dump()));
  SHOAL_TRY(read_model(root.at("model"), file));
  SHOAL_TRY(read_added_tokens(member(root, "added_tokens"), file));
  SHOAL_TRY(read_post_processor(member(root, "post_processor"), file));
  return file;
}

}  // namespace shoal
