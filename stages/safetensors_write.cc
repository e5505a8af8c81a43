#include <algorithm>
#include <set>

#include "common/byte_codec.h"
#include "common/check.h"
#include "stages/json_text.h"
#include "stages/safetensors.h"

namespace shoal {
namespace {

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "F64";
    case DType::kF32:
      return "F32";
    case DType::kI32:
      return "I32";
    case DType::kU32:
      return "U32";
    case DType::kU16:
      return "U16";
    case DType::kU8:
      return "U8";
  }
  return "";
}

std::string json_of(const StringMap& metadata, const std::vector<NamedTensor>& tensors) {
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
  std::size_t offset = 0;
  for (const NamedTensor& entry : tensors) {
    json += ',' + json_string(entry.name) + ":{\"dtype\":\"" + name_of(entry.tensor.dtype) + "\",\"shape\":[";
    for (std::size_t i = 0; i < entry.tensor.shape.size(); ++i) {
      if (i > 0) json += ',';
      json += std::to_string(entry.tensor.shape[i]);
    }
    const std::size_t end = offset + entry.tensor.bytes.size();
    json += "],\"data_offsets\":[" + std::to_string(offset) + ',' + std::to_string(end) + "]}";
    offset = end;
  }
  return json + '}';
}

}  // namespace

Bytes safetensors_header(const StringMap& metadata, std::vector<NamedTensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensor& a, const NamedTensor& b) {
    const std::size_t left = size_of(a.tensor.dtype), right = size_of(b.tensor.dtype);
    return left != right ? left > right : a.name < b.name;
  });
  std::set<std::string> names;
  for (const NamedTensor& entry : tensors) {
    SHOAL_CHECK_LE(entry.name.size(), kSafetensorsNameMax);
    SHOAL_CHECK(names.insert(entry.name).second);
    SHOAL_CHECK_EQ(entry.tensor.bytes.size(),
                   static_cast<std::size_t>(element_count(entry.tensor.shape)) * size_of(entry.tensor.dtype));
  }
  std::string json = json_of(metadata, tensors);
  json.resize((json.size() + 7) / 8 * 8, ' ');
  SHOAL_CHECK_LE(json.size(), kSafetensorsHeaderMax);
  std::vector<std::uint8_t> bytes(8 + json.size());
  put_le(bytes.data(), std::uint64_t{json.size()});
  std::memcpy(bytes.data() + 8, json.data(), json.size());
  return Bytes::from_vector(std::move(bytes));
}

std::vector<Bytes> safetensors_parts(const StringMap& metadata, std::vector<NamedTensor> tensors) {
  std::vector<Bytes> parts{safetensors_header(metadata, tensors)};
  for (const NamedTensor& entry : tensors) parts.push_back(Bytes::copy_of(entry.tensor.bytes));
  return parts;
}

}  // namespace shoal
