#pragma once
// Writes a token file and its sidecar beside their places, and puts them there when both are whole. What is not
// finished is removed again. One thread at a time.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/os/new_files.h"
#include "common/os/posix_file.h"
#include "common/result.h"
#include "common/tensor_view.h"
#include "text/token_format.h"

namespace shoal {

class TokenWriter {
 public:
  // ERRORS: kOutput (cannot be made).
  static Result<TokenWriter> open(const std::string& path, DType width, TokenHeader header);

  // REQUIRES: ids are below ids_of_width(width). ERRORS: kIo; kInput (more tokens than the header can say).
  Status write(std::span<const std::uint32_t> ids);
  std::uint64_t tokens() const { return tokens_; }
  // Header, sync, rename, and the sidecar beside it. ERRORS: kIo.
  Status finish(const TokenSidecar& sidecar);

 private:
  TokenWriter(std::string path, OutputFile file, DType width, TokenHeader header)
      : path_(std::move(path)), file_(std::move(file)), width_(width), header_(header) {}
  std::string path_;
  OutputFile file_;
  DType width_;
  TokenHeader header_;
  std::uint64_t tokens_ = 0;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace shoal
