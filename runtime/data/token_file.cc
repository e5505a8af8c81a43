#include "runtime/data/token_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "common/os/posix_file.h"
#include "text/text_content.h"

namespace shoal {
namespace {

// `begin`: where the ids begin in the file.
Status check_ids(ByteView bytes, std::size_t begin, DType width, std::uint32_t vocabulary, const std::string& origin) {
  const std::size_t step = size_of(width);
  if (std::uint64_t{vocabulary} >> 8 * step > 0) return {};
  for (std::size_t i = 0; i < bytes.size() / step; ++i) {
    const std::uint32_t id = id_at(bytes, width, i);
    if (id < vocabulary) continue;
    return make_error(ErrorCode::kInput,
                      origin + ": token id " + std::to_string(id) + " at byte " + std::to_string(begin + i * step) +
                          " is not below [model] vocabulary = " + std::to_string(vocabulary) +
                          (step > 1 ? ". Is this a file of narrower tokens? Then set [data] width = " +
                                          std::string(step == 2 ? "\"u8\"" : "\"u16\" or \"u8\"")
                                    : ""));
  }
  return {};
}

// Every second id of 16 bits is below 4, and not all are: ids of a vocabulary of up to 262,144 that have 32.
bool are_wider(ByteView bytes) {
  constexpr std::size_t kLookedAt = 1u << 16, kFew = 16;
  const std::size_t pairs = std::min(bytes.size() / 4, kLookedAt);
  bool low = false;
  for (std::size_t i = 0; i < pairs; ++i) {
    if (id_at(bytes, DType::kU16, 2 * i + 1) >= 4) return false;
    low = low || id_at(bytes, DType::kU16, 2 * i) >= 4;
  }
  return low && pairs >= kFew && bytes.size() % 4 == 0;
}

// Where ids without a header begin, by what the bytes themselves tell. Any bytes may be learned, but nobody means to
// learn those of a packed text.
Result<std::size_t> begin_of_ids(ByteView bytes, DType width, const std::string& origin) {
  if (width == DType::kU16 && are_wider(bytes))
    return make_error(ErrorCode::kInput,
                      origin +
                          ": every second id of 16 bits is 0, as in a file of ids of 32 bits. Set [data] width = "
                          "\"u32\"");
  if (width != DType::kU8) return std::size_t{0};
  const TextContent content = judge_content(bytes.first(std::min(bytes.size(), kJudgedBytes)));
  if (content.form == TextContent::Form::kUtf8 || content.form == TextContent::Form::kNotUtf8)
    return content.mark_bytes;
  return make_error(ErrorCode::kInput, not_plain_text(origin, content) +
                                           "; or `shoal data prepare` makes a file of ids of a text, packed or not");
}

Result<Bytes> map_file(const std::string& path) {
  auto opened = open_regular_file(path);
  if (!opened.ok() && opened.code() == ErrorCode::kInput)
    return make_error(ErrorCode::kInput, opened.error().message + ". HINT: [data] path names a file of token ids");
  SHOAL_ASSIGN(const Descriptor file, std::move(opened));
  struct stat facts;
  if (fstat(file.get(), &facts) != 0) return error_of_errno("examine", path, errno);
  if (facts.st_size == 0)
    return make_error(ErrorCode::kInput, path + " is empty. HINT: give a text of some thousand tokens as [data] path");
  const std::size_t size = static_cast<std::size_t>(facts.st_size);
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) return error_of_errno("map", path, errno);
  const std::shared_ptr<const void> owner(memory, [size](void* p) { munmap(p, size); });
  return Bytes::wrap(owner, {static_cast<const std::uint8_t*>(memory), size});
}

Error another_width(const std::string& origin, const std::string& says, DType found, DType wanted) {
  return make_error(ErrorCode::kInput, origin + ": " + says + " ids of " + std::string(name_of_width(found)) +
                                           ", and [data] width is \"" + std::string(name_of_width(wanted)) +
                                           "\". Set [data] width = \"" + std::string(name_of_width(found)) + "\"");
}

Status check_sidecar(const TokenSidecar& sidecar, const TokenFile& file, std::uint32_t vocabulary) {
  const std::string path = sidecar_path(file.path());
  if (sidecar.tokens != file.tokens())
    return make_error(ErrorCode::kInput, path + ": tells of " + std::to_string(sidecar.tokens) + " tokens, but " +
                                             file.path() + " has " + std::to_string(file.tokens()) +
                                             ". HINT: it belongs to another file; copy both once more");
  if (sidecar.vocabulary > vocabulary)
    return make_error(ErrorCode::kInput, path + ": the tokenizer has " + std::to_string(sidecar.vocabulary) +
                                             " ids, but [model] vocabulary = " + std::to_string(vocabulary) +
                                             ". Set [model] vocabulary = " + std::to_string(sidecar.vocabulary) +
                                             ", or more");
  return {};
}

}  // namespace

Result<TokenFile> TokenFile::open(const std::string& path, DType width, std::uint32_t vocabulary) {
  SHOAL_ASSIGN(Bytes bytes, map_file(path));
  SHOAL_ASSIGN(std::optional<TokenSidecar> sidecar, load_sidecar(path));
  if (sidecar && sidecar->width != width) return another_width(sidecar_path(path), "tells of", sidecar->width, width);
  SHOAL_ASSIGN(TokenFile file, from_bytes(std::move(bytes), width, vocabulary, path));
  if (sidecar) SHOAL_TRY(check_sidecar(*sidecar, file, vocabulary));
  file.sidecar_ = std::move(sidecar);
  return file;
}

Result<TokenFile> TokenFile::from_bytes(Bytes bytes, DType width, std::uint32_t vocabulary, const std::string& origin) {
  SHOAL_CHECK(holds_ids(width));
  SHOAL_ASSIGN(const auto header, read_llmc_header(bytes, bytes.size(), origin));
  if (header && header->width != width) return another_width(origin, "its header tells of", header->width, width);
  std::size_t begin = kLlmcHeaderBytes;
  if (!header) {
    SHOAL_ASSIGN(begin, begin_of_ids(bytes, width, origin));
  }
  TokenFile file;
  file.path_ = origin;
  file.header_ = header ? TokenHeader::kLlmc : TokenHeader::kNone;
  file.width_ = width;
  file.ids_ = bytes.slice(begin, bytes.size() - begin);
  if (const std::size_t step = size_of(width); file.ids_.size() % step != 0) {
    return make_error(ErrorCode::kInput,
                      origin + ": has " + std::to_string(bytes.size()) + " bytes, no multiple of " +
                          std::to_string(step) + ", so it holds no " + std::to_string(8 * step) +
                          "-bit tokens. Set [data] width = " + (step == 2 ? "\"u8\"?" : "\"u16\" or \"u8\"?"));
  }
  SHOAL_TRY(check_ids(file.ids_, begin, width, vocabulary, origin));
  file.digest_ = blake2b_256(bytes);
  return file;
}

ByteView TokenFile::tokens_at(std::uint64_t first, std::uint64_t count) const {
  SHOAL_CHECK_LE(count, tokens());
  SHOAL_CHECK_LE(first, tokens() - count);
  return ids_.view().subspan(first * size_of(width_), count * size_of(width_));
}

}  // namespace shoal
