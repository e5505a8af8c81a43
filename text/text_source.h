#pragma once
// The text of a file, in UTF-8 whatever the file has: decompressed, converted from UTF-16, without the byte order mark,
// and with U+FFFD in place of what is no text (text/utf8.h, with_replacements). One thread at a time.
#include <cstdint>
#include <memory>
#include <string>

#include "common/packed/byte_source.h"
#include "common/result.h"
#include "text/text_content.h"

namespace shoal {

class TextSource {
 public:
  // ERRORS: ByteSource's; kInput (no text: what it is, and the command that makes text of it).
  static Result<TextSource> open(const std::string& path);

  // Appends some more of the text to `text`, which stays valid UTF-8; false: there is no more. ERRORS: ByteSource's.
  Result<bool> read(std::string& text);
  std::uint64_t taken() const { return source_->taken(); }  // bytes of the file itself
  std::uint64_t replaced() const { return replaced_; }      // became U+FFFD so far
  bool is_converted() const { return content_.form != TextContent::Form::kUtf8; }

 private:
  explicit TextSource(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
  Status read_bytes();
  void append_utf8(std::string& text);
  void append_utf16(std::string& text, bool big);

  std::unique_ptr<ByteSource> source_;
  TextContent content_;
  std::string bytes_;  // that are not converted yet
  bool all_read_ = false;
  std::uint64_t replaced_ = 0;
};

}  // namespace shoal
