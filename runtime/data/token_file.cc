#include "runtime/data/token_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "common/os/posix_file.h"

namespace shoal {
namespace {

Status check_ids(ByteView bytes, DType width, std::uint32_t vocabulary, const std::string& origin) {
  const std::size_t step = size_of(width);
  if (std::uint64_t{vocabulary} >> 8 * step > 0) return {};
  for (std::size_t i = 0; i < bytes.size() / step; ++i) {
    const std::uint32_t id = id_at(bytes, width, i);
    if (id < vocabulary) continue;
    return make_error(ErrorCode::kInput,
                      origin + ": token id " + std::to_string(id) + " at byte " + std::to_string(i * step) +
                          " is not below [model] vocabulary = " + std::to_string(vocabulary) +
                          (step > 1 ? ". Is this a file of narrower tokens? Then set [data] width = " +
                                          std::string(step == 2 ? "\"u8\"" : "\"u16\" or \"u8\"")
                                    : ""));
  }
  return {};
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

}  // namespace

Result<TokenFile> TokenFile::open(const std::string& path, DType width, std::uint32_t vocabulary) {
  SHOAL_ASSIGN(Bytes bytes, map_file(path));
  return from_bytes(std::move(bytes), width, vocabulary, path);
}

Result<TokenFile> TokenFile::from_bytes(Bytes bytes, DType width, std::uint32_t vocabulary, const std::string& origin) {
  SHOAL_CHECK(holds_ids(width));
  if (const std::size_t step = size_of(width); bytes.size() % step != 0) {
    return make_error(ErrorCode::kInput,
                      origin + ": has " + std::to_string(bytes.size()) + " bytes, no multiple of " +
                          std::to_string(step) + ", so it holds no " + std::to_string(8 * step) +
                          "-bit tokens. Set [data] width = " + (step == 2 ? "\"u8\"?" : "\"u16\" or \"u8\"?"));
  }
  SHOAL_TRY(check_ids(bytes, width, vocabulary, origin));
  return TokenFile(std::move(bytes), width);
}

Digest TokenFile::digest() const { return blake2b_256(bytes_); }

ByteView TokenFile::tokens_at(std::uint64_t first, std::uint64_t count) const {
  SHOAL_CHECK_LE(count, tokens());
  SHOAL_CHECK_LE(first, tokens() - count);
  return bytes_.view().subspan(first * size_of(width_), count * size_of(width_));
}

}  // namespace shoal
