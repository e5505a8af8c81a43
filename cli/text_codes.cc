#include "cli/text_codes.h"

#include <filesystem>

namespace shoal {

Result<TextCode> code_of(const TextCodeNeed& need) {
  std::string path = need.named;
  if (path.empty() && !need.folder.empty() && std::filesystem::exists(need.folder + "/tokenizer.json"))
    path = need.folder + "/tokenizer.json";
  if (path.empty()) {
    if (need.vocabulary == 256 && need.tokenizer.empty()) return TextCode();
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
  return TextCode(std::make_shared<const Tokenizer>(std::move(tokenizer)));
}

}  // namespace shoal
