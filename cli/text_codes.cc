#include "cli/text_codes.h"

#include <filesystem>

#include "text/text_ends.h"

namespace shoal {

std::string begin_said(const std::vector<std::uint32_t>& begin) {
  std::string ids;
  for (const std::uint32_t id : begin) ids += " " + std::to_string(id);
  return begin.empty() ? "" : " begins with" + ids + ", as the tokenizer's post-processor has it";
}

Result<TextCode> code_of(const TextCodeNeed& need) {
  std::string path = need.named;
  if (path.empty() && !need.folder.empty() && std::filesystem::exists(need.folder + "/tokenizer.json"))
    path = need.folder + "/tokenizer.json";
  const TextEnds ends = text_ends_of(need.folder, path);
  if (path.empty()) {
    for (const char* other : {"tokenizer.model", "vocab.json"})
      if (!need.folder.empty() && std::filesystem::exists(need.folder + "/" + other))
        return make_error(ErrorCode::kInput,
                          need.folder + " has " + other + " and no tokenizer.json" + kMakeTokenizerHint);
    if (need.vocabulary == 256 && need.tokenizer.empty()) return TextCode({}, ends.end_ids);
    return make_error(ErrorCode::kInput, "no tokenizer of " + need.of + " is known, and its " +
                                             std::to_string(need.vocabulary) +
                                             " ids are no bytes. HINT: --tokenizer FILE, or [data] tokenizer");
  }
  SHOAL_ASSIGN(Tokenizer tokenizer, Tokenizer::load(path));
  const bool another = !need.tokenizer.empty() && need.tokenizer.front() != tokenizer.digest();
  if (another || tokenizer.vocabulary() > need.vocabulary)
    return make_error(ErrorCode::kInput,
                      path +
                          (another ? " is not the tokenizer that made the ids of " + need.of
                                   : " has " + std::to_string(tokenizer.vocabulary()) + " ids, and " + need.of +
                                         " knows " + std::to_string(need.vocabulary)) +
                          ". HINT: give the one that it was trained with");
  std::vector<std::uint32_t> over = writing_ends(ends, tokenizer);
  return TextCode(std::make_shared<const Tokenizer>(std::move(tokenizer)), std::move(over));
}

}  // namespace shoal
