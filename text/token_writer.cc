#include "text/token_writer.h"

#include <utility>

#include "common/byte_codec.h"

namespace shoal {
namespace {

Status write_view(OutputFile& file, ByteView bytes) { return file.write({Bytes::wrap(nullptr, bytes)}); }

}  // namespace

Result<TokenWriter> TokenWriter::open(const std::string& path, DType width, TokenHeader header) {
  for (const std::string& name : {path, sidecar_path(path)}) SHOAL_TRY(check_output_file(name));
  auto file = OutputFile::begin(path);
  if (!file.ok()) return cannot_make(file.error());
  if (header == TokenHeader::kLlmc) SHOAL_TRY(write_view(*file, std::vector<std::uint8_t>(kLlmcHeaderBytes)));
  return TokenWriter(path, std::move(*file), width, header);
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
  return write_view(file_, bytes_);
}

Status TokenWriter::finish(const TokenSidecar& sidecar) {
  if (header_ == TokenHeader::kLlmc) {
    SHOAL_TRY(file_.rewind());
    SHOAL_TRY(write_view(file_, llmc_header({.width = width_, .tokens = tokens_})));
  }
  NewFiles made;
  made.expect(path_);
  SHOAL_ASSIGN(OutputFile beside, OutputFile::begin(sidecar_path(path_)));
  const std::string text = sidecar_text(sidecar);
  SHOAL_TRY(beside.write({Bytes::copy_of(std::string_view(text))}));
  SHOAL_TRY(beside.sync());
  SHOAL_TRY(file_.sync());
  SHOAL_TRY(file_.place());
  SHOAL_TRY(beside.place());
  made.keep();
  return {};
}

}  // namespace shoal
