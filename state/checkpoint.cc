#include "state/checkpoint.h"

#include <algorithm>
#include <charconv>

#include "common/byte_codec.h"
#include "stages/safetensors.h"
#include "sync/rule_arrays.h"

namespace shoal {
namespace {

constexpr const char* kFormat = "1";
constexpr const char* kSignature = "shoal.signature";

Error malformed(const std::string& what) { return make_error(ErrorCode::kMalformed, "checkpoint: " + what); }

std::string_view name_of(ArenaRole role) {
  switch (role) {
    case ArenaRole::kMoment1:
      return "moment1";
    case ArenaRole::kMoment2:
      return "moment2";
    case ArenaRole::kOuterMomentum:
      return "outer_momentum";
    default:
      return "state";
  }
}

// In the order of an image, which is also that of their names: so they lie in a file as in an image.
std::vector<std::string> array_names(const OuterRule& rule) {
  std::vector<std::string> names{"anchor"};
  for (const ArenaRole role : rule.shared_roles())
    names.push_back("shared." + std::to_string(names.size()) + "." + std::string(name_of(role)));
  return names;
}

// What the signature is of: each value of the metadata but itself, a line each.
std::vector<std::uint8_t> signed_text(const StringMap& metadata) {
  std::string text = "shoal checkpoint 1\n";
  for (const auto& [key, value] : metadata)
    if (key != kSignature && key.starts_with("shoal.")) text += key + "=" + value + "\n";
  return {text.begin(), text.end()};
}

class MetadataReader {
 public:
  explicit MetadataReader(const StringMap& metadata) : metadata_(metadata) {}

  Result<std::string> text(const char* key) const {
    const auto found = metadata_.find(key);
    if (found == metadata_.end()) return malformed(std::string("the metadata lack ") + key);
    return found->second;
  }
  template <class Number>
  Status number(const char* key, Number& out) const {
    SHOAL_ASSIGN(const std::string value, text(key));
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
    if (error == std::errc() && end == value.data() + value.size()) return {};
    return malformed(std::string("the metadata's ") + key + " is no number in range");
  }
  template <class Key>
  Status key32(const char* key, Key& out) const {
    SHOAL_ASSIGN(const std::string value, text(key));
    auto bytes = parse_hex32(value);
    if (!bytes.ok()) return malformed(std::string("the metadata's ") + key + " are not 64 hex digits");
    out.bytes = *bytes;
    return {};
  }

 private:
  const StringMap& metadata_;
};

Status check_signature(const StringMap& metadata, const PeerId& peer) {
  SHOAL_ASSIGN(const std::string text, MetadataReader(metadata).text(kSignature));
  Signature signature{};
  const std::size_t half = signature.size() / 2;
  if (text.size() != 4 * half) return malformed(std::string("the metadata's ") + kSignature + " is no signature");
  for (std::size_t i = 0; i < 2; ++i) {
    auto bytes = parse_hex32(std::string_view(text).substr(2 * half * i, 2 * half));
    if (!bytes.ok()) return malformed(std::string("the metadata's ") + kSignature + " is no signature");
    std::copy(bytes->begin(), bytes->end(), signature.begin() + static_cast<std::ptrdiff_t>(half * i));
  }
  if (verify(peer, signed_text(metadata), signature)) return {};
  return make_error(ErrorCode::kCorrupt, "checkpoint: what it says of itself is not what its peer signed");
}

Result<CheckpointInfo> info_of(const StringMap& metadata) {
  const MetadataReader read(metadata);
  SHOAL_ASSIGN(const std::string format, read.text("shoal.checkpoint"));
  if (format != kFormat)
    return make_error(ErrorCode::kUnsupported, "checkpoint: format " + format + ", this program reads " + kFormat);
  CheckpointInfo info;
  SHOAL_TRY(read.key32("shoal.run", info.run));
  SHOAL_TRY(read.key32("shoal.peer", info.peer));
  SHOAL_TRY(read.key32("shoal.digest", info.digest));
  SHOAL_TRY(read.number("shoal.stage", info.state.stage.value));
  SHOAL_TRY(read.number("shoal.version", info.state.version.value));
  SHOAL_TRY(read.number("shoal.tag", info.state.tag));
  SHOAL_TRY(read.number("shoal.sequence", info.sequence));
  SHOAL_TRY(read.number("shoal.saved", info.saved_s));
  SHOAL_ASSIGN(const std::string rule, read.text("shoal.rule"));
  const auto id = rule_named(rule);
  if (!id) return malformed("of the rule \"" + rule + "\", which this program does not have");
  info.state.rule = *id;
  SHOAL_TRY(check_signature(metadata, info.peer));
  return info;
}

// Where its arrays begin, which lie in the order of an image. ERRORS: kMalformed.
Result<std::uint64_t> find_arrays(const SafetensorsHeader& file, StateHeader& header) {
  const std::vector<std::string> names = array_names(*OuterRules().of(header.rule));
  if (file.tensors.size() != names.size())
    return malformed("it has " + std::to_string(file.tensors.size()) + " arrays, and its rule " +
                     std::to_string(names.size()));
  const auto bytes_of = [](const SafetensorsHeader::Place& place) { return place.end - place.begin; };
  header.roles = static_cast<std::uint8_t>(names.size() - 1);
  header.floats = bytes_of(file.tensors.front()) / sizeof(float);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const SafetensorsHeader::Place& place = file.tensors[i];
    if (place.name != names[i] || place.type != StoredType::kF32 || bytes_of(place) != header.floats * sizeof(float))
      return malformed("array \"" + place.name + "\" is not the one that belongs there");
  }
  return file.tensors.front().begin;
}

}  // namespace

std::vector<Bytes> checkpoint_parts(const CheckpointOrigin& origin, const Bytes& image, const KeyPair& key) {
  const StateHeader header = *parse_state_header(image);
  StringMap metadata{{"shoal.checkpoint", kFormat},
                     {"shoal.run", hex_of(origin.run)},
                     {"shoal.peer", hex_of(key.id())},
                     {"shoal.digest", hex_of(digest_of_image(image))},
                     {"shoal.stage", std::to_string(header.stage.value)},
                     {"shoal.version", std::to_string(header.version.value)},
                     {"shoal.rule", std::string(name_of(header.rule))},
                     {"shoal.tag", std::to_string(header.tag)},
                     {"shoal.sequence", std::to_string(origin.sequence)},
                     {"shoal.saved", std::to_string(origin.saved_s)}};
  const Signature signature = key.sign(signed_text(metadata));
  metadata[kSignature] = hex_of(signature.data(), signature.size());
  std::vector<NamedTensor> tensors;
  const std::size_t bytes = header.floats * sizeof(float);
  for (std::size_t at = kStateHeaderBytes; const std::string& name : array_names(*OuterRules().of(header.rule))) {
    const Shape shape{static_cast<std::int64_t>(header.floats)};
    tensors.push_back({name, {DType::kF32, shape, image.view().subspan(at, bytes)}});
    at += bytes;
  }
  return {safetensors_header(metadata, tensors), image.slice(kStateHeaderBytes, image.size() - kStateHeaderBytes)};
}

Result<CheckpointHead> parse_checkpoint_head(ByteView front, std::uint64_t file_bytes) {
  if (file_bytes > kCheckpointBytesMax)
    return make_error(ErrorCode::kTooLarge, "checkpoint: it has " + std::to_string(file_bytes) +
                                                " bytes; the limit is " + std::to_string(kCheckpointBytesMax));
  SHOAL_ASSIGN(const SafetensorsHeader parsed, parse_safetensors_header(front, file_bytes));
  CheckpointHead head;
  SHOAL_ASSIGN(head.info, info_of(parsed.metadata));
  SHOAL_ASSIGN(head.arrays_at, find_arrays(parsed, head.info.state));
  return head;
}

bool says_checkpoint(ByteView front) {
  if (front.size() <= sizeof(std::uint64_t)) return false;
  const auto length = get_le<std::uint64_t>(front, 0);
  front = front.subspan(sizeof length);
  if (length > front.size()) return false;
  const std::string_view header(reinterpret_cast<const char*>(front.data()), length);
  return header.starts_with("{") && header.find("\"shoal.checkpoint\":\"") != header.npos &&
         header.find("\"shoal.signature\":\"") != header.npos;
}

Result<Checkpoint> read_checkpoint(const CheckpointHead& head, const ReadAt& read) {
  Buffer image = begin_state_image(head.info.state);
  SHOAL_TRY(read(head.arrays_at, image.view().subspan(kStateHeaderBytes)));
  const std::span<const float> values = image.as<float>().subspan(kStateHeaderBytes / sizeof(float));
  SHOAL_TRY(check_all_finite(values, "a checkpoint"));
  Checkpoint checkpoint{head.info, std::move(image).freeze()};
  if (digest_of_image(checkpoint.image) == head.info.digest) return checkpoint;
  return make_error(ErrorCode::kCorrupt, "checkpoint: its arrays are not those that were written");
}

Result<Checkpoint> parse_checkpoint(ByteView file) {
  SHOAL_ASSIGN(const CheckpointHead head, parse_checkpoint_head(file, file.size()));
  return read_checkpoint(head, [file](std::uint64_t at, MutableByteView into) {
    std::ranges::copy(file.subspan(at, into.size()), into.begin());
    return Status();
  });
}

}  // namespace shoal
