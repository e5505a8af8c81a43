#include <algorithm>
#include <set>

#include "common/byte_codec.h"
#include "common/check.h"
#include "stages/json_text.h"
#include "stages/safetensors.h"

namespace shoal {
namespace {

using Place = SafetensorsHeader::Place;

// The order of the reference writer.
bool goes_before(std::size_t a_bytes, const std::string& a, std::size_t b_bytes, const std::string& b) {
  return a_bytes != b_bytes ? a_bytes > b_bytes : a < b;
}

std::string json_of(const StringMap& metadata, const std::vector<Place>& tensors) {
  StringMap all = metadata;
  all["format"] = "pt";
  std::string json = "{\"__metadata__\":{";
  bool first = true;
  for (const auto& [key, value] : all) {
    if (!first) json += ',';
    first = false;
    json += json_string(key) + ':' + json_string(value);
  }
  json += '}';
  for (const Place& entry : tensors) {
    json += ',' + json_string(entry.name) + ":{\"dtype\":\"" + std::string(name_of(entry.type)) + "\",\"shape\":[";
    for (std::size_t i = 0; i < entry.shape.size(); ++i) {
      if (i > 0) json += ',';
      json += std::to_string(entry.shape[i]);
    }
    json += "],\"data_offsets\":[" + std::to_string(entry.begin) + ',' + std::to_string(entry.end) + "]}";
  }
  return json + '}';
}

}  // namespace

std::size_t size_of(StoredType type) {
  static constexpr std::size_t kSizes[] = {8, 4, 4, 4, 2, 1, 2, 2, 8, 8, 2, 1, 1};
  static_assert(std::size(kSizes) == std::size(kStoredTypeNames));
  return kSizes[static_cast<std::size_t>(type)];
}

StoredType stored_type_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return StoredType::kF64;
    case DType::kF32:
      return StoredType::kF32;
    case DType::kI32:
      return StoredType::kI32;
    case DType::kU32:
      return StoredType::kU32;
    case DType::kU16:
      return StoredType::kU16;
    case DType::kU8:
      break;
  }
  return StoredType::kU8;
}

Bytes safetensors_header(const StringMap& metadata, std::vector<Place>& tensors) {
  std::ranges::sort(tensors, [](const Place& a, const Place& b) {
    return goes_before(size_of(a.type), a.name, size_of(b.type), b.name);
  });
  std::uint64_t offset = 0;  // from the end of the header first
  for (std::set<std::string> names; Place & entry : tensors) {
    SHOAL_CHECK_LE(entry.name.size(), kSafetensorsNameMax);
    SHOAL_CHECK(names.insert(entry.name).second);
    entry.begin = offset;
    entry.end = offset += static_cast<std::uint64_t>(element_count(entry.shape)) * size_of(entry.type);
  }
  std::string json = json_of(metadata, tensors);
  json.resize((json.size() + 7) / 8 * 8, ' ');
  SHOAL_CHECK_LE(json.size(), kSafetensorsHeaderMax);
  std::vector<std::uint8_t> bytes(8 + json.size());
  put_le(bytes.data(), std::uint64_t{json.size()});
  std::memcpy(bytes.data() + 8, json.data(), json.size());
  for (Place& entry : tensors) {
    entry.begin += bytes.size();
    entry.end += bytes.size();
  }
  return Bytes::from_vector(std::move(bytes));
}

Bytes safetensors_header(const StringMap& metadata, std::vector<NamedTensor>& tensors) {
  std::ranges::sort(tensors, [](const NamedTensor& a, const NamedTensor& b) {
    return goes_before(size_of(a.tensor.dtype), a.name, size_of(b.tensor.dtype), b.name);
  });
  std::vector<Place> places;
  for (const auto& [name, tensor] : tensors) {
    SHOAL_CHECK_EQ(tensor.bytes.size(), static_cast<std::size_t>(element_count(tensor.shape)) * size_of(tensor.dtype));
    places.push_back({name, stored_type_of(tensor.dtype), tensor.shape});
  }
  return safetensors_header(metadata, places);
}

std::vector<Bytes> safetensors_parts(const StringMap& metadata, std::vector<NamedTensor> tensors) {
  std::vector<Bytes> parts{safetensors_header(metadata, tensors)};
  for (const NamedTensor& entry : tensors) parts.push_back(Bytes::copy_of(entry.tensor.bytes));
  return parts;
}

}  // namespace shoal
