#include <algorithm>
#include <limits>
#include <set>

#include "common/byte_codec.h"
#include "stages/safetensors.h"

namespace shoal {
namespace {

struct RawTensor {
  std::string name, dtype;
  Shape shape;
  std::vector<std::int64_t> offsets;
};

// Reads exactly the JSON that a safetensors header may hold: an object of tensor objects and one object of strings. The
// first mistake is remembered with its position and makes every later call fail.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  Status read(StringMap& metadata, std::vector<RawTensor>& tensors) {
    std::set<std::string> names;
    bool more = open('{', '}');
    while (more) {
      const std::string key = string();
      expect(':');
      if (ok() && !names.insert(key).second) fail("the name \"" + key + "\" occurs twice");
      if (key == "__metadata__") {
        read_metadata(metadata);
      } else {
        if (ok() && tensors.size() == kSafetensorsTensorsMax) fail("too many tensors");
        if (ok()) tensors.push_back(read_tensor(key));
      }
      more = next('}');
    }
    skip_spaces();
    if (ok() && at_ != text_.size()) fail("something follows the closing brace");
    if (ok()) return Status::success();
    return make_error(ErrorCode::kMalformed, "safetensors header at byte " + std::to_string(at_) + ": " + mistake_);
  }

 private:
  bool ok() const { return mistake_.empty(); }
  void fail(std::string text) {
    if (ok()) mistake_ = std::move(text);
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (!ok() || at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("expected '") + c + "'");
  }
  // Enters a list; false when it is empty or wrong.
  bool open(char begin, char end) {
    expect(begin);
    return ok() && !take(end);
  }
  // Behind an element: true when another one follows, false at the end or on a mistake.
  bool next(char end) {
    if (!ok() || take(end)) return false;
    expect(',');
    return ok();
  }

  std::string string() {
    std::string out;
    expect('"');
    while (ok()) {
      if (at_ >= text_.size()) {
        fail("a string does not end");
        break;
      }
      const char c = text_[at_++];
      if (c == '"') break;
      if (static_cast<unsigned char>(c) < 0x20) fail("a control character in a string");
      if (c == '\\') {
        escape(out);
      } else {
        out += c;
      }
    }
    return out;
  }

  void escape(std::string& out) {
    static constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    if (at_ >= text_.size()) return fail("a string does not end");
    const char c = text_[at_++];
    if (const std::size_t i = kFrom.find(c); i != kFrom.npos) {
      out += kTo[i];
      return;
    }
    if (c != 'u' || text_.size() - at_ < 4) return fail("an unknown escape");
    unsigned code = 0;
    for (int i = 0; i < 4; ++i) {
      const char h = text_[at_++];
      const int digit = h >= '0' && h <= '9'   ? h - '0'
                        : h >= 'a' && h <= 'f' ? h - 'a' + 10
                        : h >= 'A' && h <= 'F' ? h - 'A' + 10
                                               : -1;
      if (digit < 0) return fail("an unknown escape");
      code = code * 16 + static_cast<unsigned>(digit);
    }
    if (code >= 0xd800 && code < 0xe000) return fail("a surrogate escape");
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xc0 | code >> 6);
      out += static_cast<char>(0x80 | (code & 63));
    } else {
      out += static_cast<char>(0xe0 | code >> 12);
      out += static_cast<char>(0x80 | (code >> 6 & 63));
      out += static_cast<char>(0x80 | (code & 63));
    }
  }

  std::int64_t integer() {
    skip_spaces();
    const std::size_t begin = at_;
    std::int64_t value = 0;
    while (ok() && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      const int digit = text_[at_++] - '0';
      if (value > (std::numeric_limits<std::int64_t>::max() - digit) / 10) fail("a number is too large");
      if (ok()) value = value * 10 + digit;
    }
    if (at_ == begin) fail("expected a number that is not negative");
    if (at_ - begin > 1 && text_[begin] == '0') fail("a number with leading zeros");
    return value;
  }

  std::vector<std::int64_t> integers(std::size_t count_max) {
    std::vector<std::int64_t> out;
    bool more = open('[', ']');
    while (more) {
      if (out.size() == count_max) fail("a list is too long");
      out.push_back(integer());
      more = next(']');
    }
    return out;
  }

  void read_metadata(StringMap& metadata) {
    bool more = open('{', '}');
    while (more) {
      const std::string key = string();
      expect(':');
      const std::string value = string();
      if (ok() && !metadata.emplace(key, value).second) fail("metadata key \"" + key + "\" occurs twice");
      more = next('}');
    }
  }

  RawTensor read_tensor(const std::string& name) {
    RawTensor tensor;
    tensor.name = name;
    if (name.size() > kSafetensorsNameMax) fail("a name is too long");
    unsigned seen = 0;
    bool more = open('{', '}');
    while (more) {
      const std::string key = string();
      expect(':');
      const unsigned bit = key == "dtype" ? 1 : key == "shape" ? 2 : key == "data_offsets" ? 4 : 0;
      if (ok() && (bit == 0 || (seen & bit) != 0)) fail("key \"" + key + "\" is unknown or occurs twice");
      seen |= bit;
      if (bit == 1) tensor.dtype = string();
      if (bit == 2) tensor.shape = integers(8);
      if (bit == 4) tensor.offsets = integers(2);
      more = next('}');
    }
    if (ok() && (seen != 7 || tensor.offsets.size() != 2)) fail("tensor \"" + name + "\" is incomplete");
    return tensor;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string mistake_;
};

Error malformed(std::string text) { return make_error(ErrorCode::kMalformed, "safetensors: " + std::move(text)); }

Result<StoredType> parse_type(const RawTensor& tensor) {
  const auto* name = std::ranges::find(kStoredTypeNames, tensor.dtype);
  if (name != std::end(kStoredTypeNames)) return static_cast<StoredType>(name - kStoredTypeNames);
  return make_error(ErrorCode::kUnsupported,
                    "safetensors: tensor \"" + tensor.name + "\" has the unknown dtype \"" + tensor.dtype + "\"");
}

Result<DType> dtype_of(const SafetensorsHeader::Place& place) {
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kI32, DType::kU32, DType::kU16, DType::kU8})
    if (stored_type_of(dtype) == place.type) return dtype;
  return make_error(ErrorCode::kUnsupported, "safetensors: tensor \"" + place.name + "\" has dtype \"" +
                                                 std::string(name_of(place.type)) +
                                                 "\"; shoal reads F64, F32, I32, U32, U16 and U8 here");
}

// Bytes the shape needs. ERRORS: kTooLarge (overflow).
Result<std::uint64_t> bytes_needed(const RawTensor& tensor, StoredType type) {
  std::uint64_t bytes = size_of(type);
  for (const std::int64_t extent : tensor.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) {
      return make_error(ErrorCode::kTooLarge, "safetensors: tensor \"" + tensor.name + "\" is too large");
    }
  }
  return bytes;
}

Result<std::size_t> header_length(ByteView front, std::uint64_t file_bytes) {
  if (front.size() < 8) return malformed("shorter than the length word");
  const auto length = get_le<std::uint64_t>(front, 0);
  if (length <= kSafetensorsHeaderMax && length > file_bytes - 8) return malformed("the header ends behind the file");
  if (length > std::min<std::uint64_t>(kSafetensorsHeaderMax, front.size() - 8)) {
    return make_error(ErrorCode::kTooLarge, "safetensors: a header of " + std::to_string(length) + " bytes");
  }
  if (length == 0 || front[8] != '{') return malformed("the header does not start with '{'");
  return static_cast<std::size_t>(length);
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(ByteView front, std::uint64_t file_bytes) {
  SHOAL_ASSIGN(const std::size_t length, header_length(front, file_bytes));
  SafetensorsHeader parsed;
  std::vector<RawTensor> raw;
  HeaderReader reader({reinterpret_cast<const char*>(front.data()) + 8, length});
  SHOAL_TRY(reader.read(parsed.metadata, raw));
  std::stable_sort(raw.begin(), raw.end(),
                   [](const RawTensor& a, const RawTensor& b) { return a.offsets < b.offsets; });

  const std::uint64_t data_at = 8 + length, data_bytes = file_bytes - data_at;
  std::uint64_t covered = 0;
  for (const RawTensor& tensor : raw) {
    SHOAL_ASSIGN(const StoredType type, parse_type(tensor));
    SHOAL_ASSIGN(const std::uint64_t bytes, bytes_needed(tensor, type));
    const auto begin = static_cast<std::uint64_t>(tensor.offsets[0]),
               end = static_cast<std::uint64_t>(tensor.offsets[1]);
    if (begin != covered) return malformed("a hole or an overlap before tensor \"" + tensor.name + "\"");
    if (end < begin || end - begin != bytes)
      return malformed("the offsets of tensor \"" + tensor.name + "\" do not fit its shape");
    if (end > data_bytes) return malformed("tensor \"" + tensor.name + "\" ends behind the file");
    parsed.tensors.push_back({tensor.name, type, tensor.shape, data_at + begin, data_at + end});
    covered = end;
  }
  if (covered != data_bytes) return malformed(std::to_string(data_bytes - covered) + " bytes behind the last tensor");
  return parsed;
}

Result<Safetensors> parse_safetensors(Bytes file) {
  SHOAL_ASSIGN(SafetensorsHeader header, parse_safetensors_header(file, file.size()));
  Safetensors parsed{.metadata = std::move(header.metadata), .tensors = {}, .file = std::move(file)};
  for (SafetensorsHeader::Place& place : header.tensors) {
    SHOAL_ASSIGN(const DType dtype, dtype_of(place));
    parsed.tensors.push_back(
        {std::move(place.name),
         {dtype, std::move(place.shape), parsed.file.view().subspan(place.begin, place.end - place.begin)}});
  }
  return parsed;
}

}  // namespace shoal
