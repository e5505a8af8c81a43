#include "runtime/data/text_set.h"

#include "common/os/posix_file.h"
#include "text/tokenizer.h"

namespace shoal {
namespace {

std::string short_hex(const Digest& digest) { return hex_of(digest).substr(0, 16); }

Error not_the_one(const std::string& what, const std::string& path, const Digest& found, const Digest& wanted,
                  const std::string& key) {
  return make_error(ErrorCode::kInput, what + " " + path + " is not the one that the run was begun with (BLAKE2b " +
                                           short_hex(found) + ", wanted " + short_hex(wanted) +
                                           "). HINT: put the old file back, or name it as [data] " + key +
                                           "; another text takes a new run");
}

Status check_digest(const TokenFile& file, std::size_t place, const TextFiles& files, const std::string& key) {
  if (files.digests.empty() || files.digests[place] == file.digest()) return {};
  return not_the_one("token file", file.path(), file.digest(), files.digests[place], key);
}

Result<std::optional<Digest>> named_tokenizer(const TextFiles& files) {
  if (files.tokenizer.empty()) return files.tokenizer_digest;
  SHOAL_ASSIGN(const Bytes bytes, read_file(files.tokenizer, kTokenizerBytesMax));
  const Digest found = blake2b_256(bytes);
  if (files.tokenizer_digest && *files.tokenizer_digest != found)
    return not_the_one("tokenizer", files.tokenizer, found, *files.tokenizer_digest, "tokenizer");
  return std::optional(found);
}

// Ids of two tokenizers are two languages. `tokenizer` becomes what the first sidecar says where nothing else does.
Status check_tokenizer(const std::string& path, std::optional<Digest>& tokenizer) {
  SHOAL_ASSIGN(const auto sidecar, load_sidecar(path));
  if (!sidecar) return {};
  if (!tokenizer) tokenizer = sidecar->tokenizer;
  if (sidecar->tokenizer == *tokenizer) return {};
  return make_error(ErrorCode::kInput,
                    path + " was made with the tokenizer " + short_hex(sidecar->tokenizer) + " (BLAKE2b, in " +
                        sidecar_path(path) + "), and this run's is " + short_hex(*tokenizer) +
                        ". HINT: name the tokenizer that made the ids as [data] tokenizer, or prepare the text anew "
                        "with this one");
}

}  // namespace

Result<TextSet> TextSet::open(const TextFiles& files) {
  if (const std::size_t count = files.paths.size() + (files.validation.empty() ? 0 : 1);
      !files.digests.empty() && files.digests.size() != count)
    return make_error(ErrorCode::kInput, "[data] digests names " + std::to_string(files.digests.size()) +
                                             " files, and [data] path and validation name " + std::to_string(count) +
                                             ". HINT: give as many paths, in the same order");
  TextSet text;
  text.weights = files.weights;
  SHOAL_ASSIGN(text.tokenizer, named_tokenizer(files));
  const auto open_one = [&](const std::string& path, const std::string& key) -> Result<TokenFile> {
    SHOAL_TRY(check_tokenizer(path, text.tokenizer));
    SHOAL_ASSIGN(TokenFile file, TokenFile::open(path, files.width, files.vocabulary));
    SHOAL_TRY(check_digest(file, text.training.size(), files, key));
    return file;
  };
  for (const std::string& path : files.paths) {
    SHOAL_ASSIGN(TokenFile file, open_one(path, "path"));
    text.training.push_back(std::move(file));
  }
  if (!files.validation.empty()) {
    SHOAL_ASSIGN(text.validation, open_one(files.validation, "validation"));
  }
  return text;
}

TextSet TextSet::of(TokenFile file) {
  TextSet text;
  text.training.push_back(std::move(file));
  return text;
}

std::vector<Digest> TextSet::digests() const {
  std::vector<Digest> digests;
  for (const TokenFile& file : training) digests.push_back(file.digest());
  if (validation) digests.push_back(validation->digest());
  return digests;
}

Digest TextSet::digest() const {
  const std::vector<Digest> all = digests();
  if (all.size() == 1) return all.front();
  Hasher hasher;
  for (const Digest& one : all) hasher.update(ByteView(one.bytes));
  return hasher.finish();
}

}  // namespace shoal
