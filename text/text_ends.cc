#include "text/text_ends.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/os/posix_file.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t kEndsBytesMax = 16u << 20;

// A member of an object in a file; null: there is none.
Json member_of(const fs::path& file, const char* key) {
  const auto text = read_file(file.string(), kEndsBytesMax);
  const Json json = text.ok() ? Json::parse(text->data(), text->data() + text->size(), nullptr, false) : Json();
  return json.is_object() && json.contains(key) ? json.at(key) : Json();
}

// A token is its content, or an object with it.
std::string content_of(const std::vector<fs::path>& folders, const char* key) {
  for (const fs::path& folder : folders) {
    for (const char* name : {kTokenizerConfigName, "special_tokens_map.json"}) {
      Json token = member_of(folder / name, key);
      if (token.is_object()) token = token.value("content", Json());
      if (token.is_string()) return token.get<std::string>();
    }
  }
  return {};
}

std::vector<std::uint32_t> ids_of(const std::vector<fs::path>& folders, const char* key) {
  for (const fs::path& folder : folders) {
    for (const char* name : {kGenerationConfigName, "config.json"}) {
      const Json said = member_of(folder / name, key);
      std::vector<std::uint32_t> ids;
      for (const Json& id : said.is_array() ? said : Json::array({said}))
        if (id.is_number_unsigned() && id.get<std::uint64_t>() <= UINT32_MAX) ids.push_back(id.get<std::uint32_t>());
      if (!ids.empty()) return ids;
    }
  }
  return {};
}

}  // namespace

TextEnds text_ends_of(const std::string& model, const std::string& tokenizer) {
  std::vector<fs::path> folders;  // the model's first
  if (!model.empty()) folders.emplace_back(model);
  if (!tokenizer.empty()) folders.push_back(fs::path(tokenizer).parent_path());
  TextEnds ends;
  ends.end_ids = ids_of(folders, "eos_token_id");
  if (const auto begin = ids_of(folders, "bos_token_id"); !begin.empty()) ends.begin_id = begin.front();
  const std::vector<fs::path> backwards(folders.rbegin(), folders.rend());
  ends.begin = content_of(backwards, "bos_token");
  ends.end = content_of(backwards, "eos_token");
  return ends;
}

std::string tokenizer_config_text(const TextEnds& ends) {
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  if (!ends.begin.empty()) config["bos_token"] = ends.begin;
  if (!ends.end.empty()) config["eos_token"] = ends.end;
  return config.size() == 1 ? std::string() : config.dump(2) + "\n";
}

std::string generation_config_text(const TextEnds& ends) {
  Json config = Json::object();
  if (ends.begin_id) config["bos_token_id"] = *ends.begin_id;
  if (!ends.end_ids.empty())
    config["eos_token_id"] = ends.end_ids.size() == 1 ? Json(ends.end_ids[0]) : Json(ends.end_ids);
  return config.empty() ? std::string() : config.dump(2) + "\n";
}

std::optional<std::uint32_t> document_end(const TextEnds& ends, const Tokenizer& tokenizer) {
  if (const auto end = tokenizer.id_of(ends.end)) return end;
  if (!ends.end_ids.empty() && ends.end_ids.front() < tokenizer.vocabulary()) return ends.end_ids.front();
  return tokenizer.end_of_text();
}

std::vector<std::uint32_t> writing_ends(const TextEnds& ends, const Tokenizer& tokenizer) {
  if (!ends.end_ids.empty()) return ends.end_ids;
  const auto end = document_end(ends, tokenizer);
  return end ? std::vector{*end} : std::vector<std::uint32_t>();
}

}  // namespace shoal
