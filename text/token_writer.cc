#include "text/token_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/byte_codec.h"
#include "common/fault.h"

namespace shoal {
namespace {

Status write_view(const Descriptor& file, const std::string& path, ByteView bytes) {
  if (SHOAL_FAULT("prepare.write")) return error_of_errno("write", path, ENOSPC);
  return write_all(file, path, {Bytes::wrap(nullptr, bytes)});
}

}  // namespace

TokenWriter::TokenWriter(std::string path, DType width, TokenHeader header)
    : path_(std::move(path)),
      temporary_(path_ + ".tmp." + std::to_string(::getpid())),
      sidecar_temporary_(sidecar_path(temporary_)),
      width_(width),
      header_(header) {}

Result<TokenWriter> TokenWriter::open(const std::string& path, DType width, TokenHeader header) {
  for (const std::string& name : {path, sidecar_path(path)}) SHOAL_TRY(check_output_file(name));
  TokenWriter writer(path, width, header);
  auto file = open_file(writer.temporary_, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.ok()) return cannot_make(file.error());
  writer.file_ = std::move(*file);
  if (header == TokenHeader::kLlmc)
    SHOAL_TRY(write_view(writer.file_, writer.temporary_, std::vector<std::uint8_t>(kLlmcHeaderBytes)));
  return writer;
}

TokenWriter::~TokenWriter() {
  if (file_.get() < 0) return;
  ::unlink(temporary_.c_str());
  ::unlink(sidecar_temporary_.c_str());
}

Status TokenWriter::write(std::span<const std::uint32_t> ids) {
  tokens_ += ids.size();
  if (header_ == TokenHeader::kLlmc && tokens_ > kLlmcTokensMax)
    return make_error(ErrorCode::kInput, path_ + ": the header of llm.c counts at most " +
                                             std::to_string(kLlmcTokensMax) +
                                             " tokens. HINT: --format plain, or fewer inputs a file");
  bytes_.resize(ids.size() * size_of(width_));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (width_ == DType::kU8) put_le(bytes_.data() + i, static_cast<std::uint8_t>(ids[i]));
    if (width_ == DType::kU16) put_le(bytes_.data() + 2 * i, static_cast<std::uint16_t>(ids[i]));
    if (width_ == DType::kU32) put_le(bytes_.data() + 4 * i, ids[i]);
  }
  return write_view(file_, temporary_, bytes_);
}

Status TokenWriter::finish(const TokenSidecar& sidecar) {
  if (header_ == TokenHeader::kLlmc) {
    if (::lseek(file_.get(), 0, SEEK_SET) != 0) return error_of_errno("write", temporary_, errno);
    SHOAL_TRY(write_view(file_, temporary_, llmc_header({.width = width_, .tokens = tokens_})));
  }
  const std::string beside = sidecar_path(path_), text = sidecar_text(sidecar);
  SHOAL_ASSIGN(const Descriptor told, open_file(sidecar_temporary_, O_WRONLY | O_CREAT | O_TRUNC));
  SHOAL_TRY(write_view(told, sidecar_temporary_, Bytes::copy_of(std::string_view(text))));
  if (SHOAL_FAULT("prepare.finish")) return error_of_errno("write", sidecar_temporary_, ENOSPC);
  SHOAL_TRY(sync_file(told, sidecar_temporary_));
  SHOAL_TRY(sync_file(file_, temporary_));
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return error_of_errno("replace", path_, errno);
  if (::rename(sidecar_temporary_.c_str(), beside.c_str()) != 0) return error_of_errno("replace", beside, errno);
  file_ = Descriptor();
  return sync_folder_of(path_);
}

}  // namespace shoal
