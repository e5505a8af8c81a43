#include "text/text_source.h"

#include "text/utf8.h"

namespace shoal {
namespace {

constexpr std::size_t kReadBytes = 256u << 10;

}  // namespace

Result<TextSource> TextSource::open(const std::string& path) {
  SHOAL_ASSIGN(auto bytes, ByteSource::open(path));
  TextSource source(std::move(bytes));
  while (source.bytes_.size() < kJudgedBytes && !source.all_read_) SHOAL_TRY(source.read_bytes());
  source.content_ = judge_content({reinterpret_cast<const std::uint8_t*>(source.bytes_.data()), source.bytes_.size()});
  if (!source.content_.is_text()) return make_error(ErrorCode::kInput, not_plain_text(path, source.content_));
  source.bytes_.erase(0, source.content_.mark_bytes);
  return source;
}

Status TextSource::read_bytes() {
  const std::size_t before = bytes_.size();
  bytes_.resize(before + kReadBytes);
  const auto got = source_->read({reinterpret_cast<std::uint8_t*>(bytes_.data()) + before, kReadBytes});
  bytes_.resize(before + (got.ok() ? *got : 0));
  if (!got.ok()) return got.error();
  all_read_ = *got == 0;
  return {};
}

Result<bool> TextSource::read(std::string& text) {
  const std::size_t before = text.size();
  while (text.size() == before) {
    if (bytes_.empty() && all_read_) return false;
    if (!all_read_) SHOAL_TRY(read_bytes());
    if (content_.form == TextContent::Form::kUtf8) {
      append_utf8(text);
    } else {
      append_utf16(text, content_.form == TextContent::Form::kUtf16Big);
    }
  }
  return true;
}

void TextSource::append_utf8(std::string& text) {
  const std::string_view whole = all_read_ ? std::string_view(bytes_) : whole_characters(bytes_);
  if (is_utf8(whole)) {
    text += whole;
  } else {
    text += with_replacements(whole, &replaced_);
  }
  bytes_.erase(0, whole.size());
}

void TextSource::append_utf16(std::string& text, bool big) {
  std::size_t at = 0;
  for (; at + 1 < bytes_.size(); at += 2) {
    const std::string_view rest = std::string_view(bytes_).substr(at);
    char32_t character = utf16_unit(rest, big);
    if (is_first_half(character) && rest.size() < 4 && !all_read_) break;
    if (is_first_half(character) && rest.size() >= 4 && is_second_half(utf16_unit(rest.substr(2), big))) {
      character = joined_halves(character, utf16_unit(rest.substr(2), big));
      at += 2;
    }
    if (is_first_half(character) || is_second_half(character)) {
      text += kReplacement;
      ++replaced_;
    } else {
      append_character(text, character);
    }
  }
  bytes_.erase(0, at);
  if (!all_read_ || bytes_.empty()) return;
  text += kReplacement;  // half a unit
  ++replaced_;
  bytes_.clear();
}

}  // namespace shoal
