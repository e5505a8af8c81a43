#include "cli/text_codes.h"

#include <filesystem>

namespace shoal {

Result<TextCode> code_of(const std::string& named, const std::string& folder, std::uint32_t vocabulary) {
  std::string path = named;
  if (path.empty() && std::filesystem::exists(folder + "/tokenizer.json")) path = folder + "/tokenizer.json";
  if (path.empty()) {
    if (vocabulary == 256) return TextCode();
    return make_error(ErrorCode::kInput, folder + " has no tokenizer.json, and its " + std::to_string(vocabulary) +
                                             " ids are no bytes. HINT: --tokenizer FILE");
  }
  SHOAL_ASSIGN(Tokenizer tokenizer, Tokenizer::load(path));
  if (tokenizer.vocabulary() > vocabulary)
    return make_error(ErrorCode::kInput, path + " has " + std::to_string(tokenizer.vocabulary()) +
                                             " ids, and the model knows " + std::to_string(vocabulary) +
                                             ": it is another model's. HINT: --tokenizer FILE");
  return TextCode(std::make_shared<const Tokenizer>(std::move(tokenizer)));
}

}  // namespace shoal
