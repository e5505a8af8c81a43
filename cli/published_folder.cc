#include "cli/published_folder.h"

#include <array>
#include <filesystem>

#include "common/os/posix_file.h"
#include "common/program/json_text.h"
#include "runtime/solo/saved_model.h"
#include "stages/pretrained/published_model.h"
#include "stages/stage_file.h"
#include "text/tokenizer.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

// The contents that the tokenizer has, and the ids that they and the folders say.
TextEnds known_ends(const TextEnds& said, const Tokenizer& tokenizer) {
  const auto content = [&](std::optional<std::uint32_t> id) {
    return id ? tokenizer.decode(std::array{*id}, true) : std::string();
  };
  std::optional<std::uint32_t> begin = tokenizer.id_of(said.begin);
  if (!begin) begin = said.begin_id;
  if (!begin && !tokenizer.begin().empty()) begin = tokenizer.begin().front();
  for (const std::string_view name : {"<s>", "<|begin_of_text|>", "<|endoftext|>"})
    if (!begin) begin = tokenizer.id_of(name);
  const std::vector<std::uint32_t> over = writing_ends(said, tokenizer);
  return {.begin = content(begin), .end = content(document_end(said, tokenizer)), .begin_id = begin, .end_ids = over};
}

}  // namespace

void expect_published_model(NewFiles& made, const std::string& folder, const std::vector<StageSpec>& specs) {
  made.expect(folder);
  for (const char* name : {kSavedTokenizerName, kTokenizerConfigName, kGenerationConfigName, kIndexFileName,
                           kArchitectureFileName, kBoundaryClassName})
    made.expect((fs::path(folder) / name).string());
  for (const StageSpec& spec : specs) made.expect((fs::path(folder) / published_file_name(spec)).string());
}

std::string tokenizer_beside(const std::string& model, const std::string& named) {
  std::error_code failure;
  const fs::path beside = fs::path(model) / kSavedTokenizerName;
  return named.empty() && fs::exists(beside, failure) ? beside.string() : named;
}

Result<TextEnds> write_tokenizer(const std::string& folder, const std::string& path, const TextEnds& said,
                                 const ModelSpec& model, const std::vector<Digest>& made_ids) {
  if (path.empty()) return said;
  SHOAL_ASSIGN(const Tokenizer tokenizer, Tokenizer::load(path));
  if (!made_ids.empty() && made_ids.front() != tokenizer.digest())
    return make_error(ErrorCode::kInput,
                      path + " is not the tokenizer that made the run's ids. HINT: --tokenizer FILE");
  if (tokenizer.vocabulary() > model.vocabulary)
    return make_error(ErrorCode::kInput, path + " has " + std::to_string(tokenizer.vocabulary()) +
                                             " ids, and the model " + std::to_string(model.vocabulary) +
                                             ": it is another model's. HINT: --tokenizer FILE");
  SHOAL_ASSIGN(const Bytes text, read_file(path, kTokenizerBytesMax));
  const TextEnds ends = known_ends(said, tokenizer);
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                 {"model_max_length", model.context_length()},
                 {"clean_up_tokenization_spaces", false}};
  for (const auto& [key, content] : {std::pair("bos_token", ends.begin), std::pair("eos_token", ends.end)})
    if (!content.empty()) config.set(key, content);
  SHOAL_TRY(replace_file((fs::path(folder) / kSavedTokenizerName).string(), {text}));
  SHOAL_TRY(replace_file((fs::path(folder) / kTokenizerConfigName).string(),
                         {Bytes::copy_of(std::string_view(config.text() + "\n"))}));
  return ends;
}

}  // namespace shoal
