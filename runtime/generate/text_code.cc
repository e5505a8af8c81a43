#include "runtime/generate/text_code.h"

#include <algorithm>

namespace shoal {
namespace {

// Bytes that a character with this first byte has; 0: none begins so.
std::size_t length_of(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

std::vector<std::uint32_t> TextCode::ids_of(std::string_view text) const {
  std::vector<std::uint32_t> ids;
  if (tokenizer_) {
    tokenizer_->encode(text, ids);
  } else {
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  }
  return ids;
}

std::string TextCode::bytes_of(std::uint32_t id) const {
  if (!tokenizer_) return id < 256 ? std::string(1, static_cast<char>(id)) : std::string();
  return tokenizer_->is_special(id) ? std::string() : tokenizer_->bytes_of(id);
}

std::vector<std::uint32_t> TextCode::begin() const {
  return tokenizer_ ? tokenizer_->begin() : std::vector<std::uint32_t>();
}

std::string WholeCharacters::add(std::string_view bytes) {
  held_ += bytes;
  // Only the last three bytes can begin a character that is cut.
  const std::size_t from = held_.size() - std::min<std::size_t>(3, held_.size());
  for (std::size_t at = from; at < held_.size(); ++at) {
    const std::size_t length = length_of(static_cast<unsigned char>(held_[at]));
    const bool cut = length > held_.size() - at &&
                     std::all_of(held_.begin() + static_cast<std::ptrdiff_t>(at) + 1, held_.end(), continues);
    if (!cut) continue;
    std::string whole = held_.substr(0, at);
    held_.erase(0, at);
    return whole;
  }
  return rest();
}

}  // namespace shoal
