#include "runtime/solo/saved_model.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "common/crypto/hash.h"
#include "common/crypto/text_codes.h"
#include "common/log.h"
#include "common/os/posix_file.h"
#include "stages/stage_file.h"
#include "text/text_ends.h"
#include "text/tokenizer.h"

namespace shoal {
namespace {

constexpr std::size_t kPieceBytes = 4u << 20;
constexpr std::size_t kHexDigits = 64;
constexpr std::string_view kGap = "  ";  // between digest and name

// In pieces: a stage's file may be larger than the memory that is free.
Result<Digest> digest_of_file(const std::string& path) {
  SHOAL_ASSIGN(const Descriptor file, open_regular_file(path));
  std::vector<std::uint8_t> piece(kPieceBytes);
  Hasher hasher;
  while (true) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error_of_errno("read", path, errno);
    if (got == 0) return hasher.finish();
    hasher.update(ByteView(piece).first(static_cast<std::size_t>(got)));
  }
}

Error not_as_saved(const std::string& path, const std::string& why) {
  return make_error(ErrorCode::kCorrupt,
                    path + why + ". HINT: copy the folder that --save wrote once more, or save again");
}

Status check_line(const std::string& folder, std::string_view line) {
  const std::string sums = folder + "/" + kSavedSumsName;
  if (line.size() <= kHexDigits + kGap.size() || line.substr(kHexDigits, kGap.size()) != kGap)
    return not_as_saved(sums, " has a line that is no digest and name");
  const auto wanted = parse_hex32(line.substr(0, kHexDigits));
  const std::string name(line.substr(kHexDigits + kGap.size()));
  if (!wanted.ok() || name.find('/') != std::string::npos)
    return not_as_saved(sums, " has a line that is no digest and name");
  SHOAL_ASSIGN(const Digest found, digest_of_file(folder + "/" + name));
  if (found.bytes == *wanted) return {};
  return not_as_saved(folder + "/" + name,
                      " is not as it was saved: " + std::string(kSavedSumsName) + " says another BLAKE2b digest");
}

// What begins and ends a text, as the model's folder and the tokenizer's say it: those of the saved model say the same.
Status save_text_ends(const std::string& folder, const RunConfig& config, std::vector<std::string>& names) {
  const TextEnds ends = text_ends_of(config.model.from, config.data.tokenizer);
  for (const auto& [name, text] : {std::pair(kTokenizerConfigName, tokenizer_config_text(ends)),
                                   std::pair(kGenerationConfigName, generation_config_text(ends))}) {
    if (text.empty()) continue;
    SHOAL_TRY(replace_file(folder + "/" + name, {Bytes::copy_of(std::string_view(text))}));
    names.emplace_back(name);
  }
  return {};
}

}  // namespace

void expect_saved_model(NewFiles& made, const std::string& folder, const std::vector<StageSpec>& specs) {
  made.expect(folder);
  for (const StageSpec& spec : specs) made.expect(folder + "/" + stage_file_name(spec.stage, spec.stages));
  for (const char* name : {kIndexFileName, kArchitectureFileName, kSavedConfigName, kSavedTokenizerName,
                           kTokenizerConfigName, kGenerationConfigName, kSavedSumsName})
    made.expect(folder + "/" + name);
}

Status finish_saved_model(const std::string& folder, const RunConfig& config, const std::vector<StageSpec>& specs) {
  SHOAL_ASSIGN(const std::string manifest, canonical_text(config));
  SHOAL_TRY(save_index(folder, specs));
  SHOAL_TRY(replace_file(folder + "/" + kSavedConfigName, {Bytes::copy_of(std::string_view(manifest))}));
  std::vector<std::string> names;
  if (!config.data.tokenizer.empty()) {
    // At the end of a run it is no reason to lose the model.
    const auto tokenizer = read_file(config.data.tokenizer, kTokenizerBytesMax);
    if (tokenizer.ok()) {
      SHOAL_TRY(replace_file(folder + "/" + kSavedTokenizerName, {*tokenizer}));
      names.push_back(kSavedTokenizerName);
    } else {
      log_warning("the model is saved without its tokenizer: ", tokenizer.error().message);
    }
  }
  SHOAL_TRY(save_text_ends(folder, config, names));
  for (const StageSpec& spec : specs) names.push_back(stage_file_name(spec.stage, spec.stages));
  names.push_back(kIndexFileName);
  if (has_architecture(config.model)) names.push_back(kArchitectureFileName);
  names.push_back(kSavedConfigName);
  std::string sums;
  for (const std::string& name : names) {
    SHOAL_ASSIGN(const Digest digest, digest_of_file(folder + "/" + name));
    sums += hex_of(digest) + std::string(kGap) + name + "\n";
  }
  return replace_file(folder + "/" + kSavedSumsName, {Bytes::copy_of(std::string_view(sums))});
}

Status check_saved_model(const std::string& folder) {
  const auto sums = read_file(folder + "/" + kSavedSumsName, kSavedSumsBytesMax);
  if (!sums.ok() && sums.code() == ErrorCode::kMissing) return {};
  if (!sums.ok()) return sums.error();
  std::string_view text(reinterpret_cast<const char*>(sums->data()), sums->size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    SHOAL_TRY(check_line(folder, text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

Result<RunConfig> load_saved_config(const std::string& folder) {
  SHOAL_ASSIGN(const Bytes text, read_file(folder + "/" + kSavedConfigName, kConfigBytesMax));
  return parse_manifest({reinterpret_cast<const char*>(text.data()), text.size()});
}

}  // namespace shoal
