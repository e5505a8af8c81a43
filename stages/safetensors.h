#pragma once
// The safetensors file format: u64 little-endian N, N bytes of JSON, then the tensors' bytes. Own code, because the
// header is tiny and the build without the network has no JSON library. Pure: bytes in, bytes out; files are
// stage_file.h's business. Thread-safe: no state.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"
#include "common/tensor_view.h"

namespace shoal {

inline constexpr std::size_t kSafetensorsHeaderMax = 100'000'000;  // the format's own limit
inline constexpr std::size_t kSafetensorsTensorsMax = 100'000;
inline constexpr std::size_t kSafetensorsNameMax = 512;

using StringMap = std::map<std::string, std::string>;

struct NamedTensor {
  std::string name;
  TensorView tensor;  // F32 ("F32") or F64 ("F64"), U8, U16, U32, I32
};

// What the format calls a tensor's values. A file may hold more of them than we compute with (DType).
enum class StoredType : std::uint8_t { kF64, kF32, kI32, kU32, kU16, kU8, kBf16, kF16, kI64, kU64, kI16, kI8, kBool };
inline constexpr std::string_view kStoredTypeNames[] = {"F64", "F32", "I32", "U32", "U16", "U8",  "BF16",
                                                        "F16", "I64", "U64", "I16", "I8",  "BOOL"};
std::size_t size_of(StoredType type);
StoredType stored_type_of(DType dtype);
inline std::string_view name_of(StoredType type) { return kStoredTypeNames[static_cast<std::size_t>(type)]; }

// What stands in front of the tensors.
struct SafetensorsHeader {
  struct Place {
    std::string name;
    StoredType type;
    Shape shape;
    std::uint64_t begin = 0, end = 0;  // bytes of the file
  };
  StringMap metadata;
  std::vector<Place> tensors;  // in file order
};

// Length word and JSON, padded with spaces so that the tensors start at a multiple of 8. `"format": "pt"` is added to
// the metadata, which some readers insist on. Tensors lie in the order of the reference writer: alignment descending,
// then name; `tensors` is brought into that order. REQUIRES: names unique and at most kSafetensorsNameMax bytes.
Bytes safetensors_header(const StringMap& metadata, std::vector<NamedTensor>& tensors);
// The same of tensors whose bytes are elsewhere; `begin` and `end` are filled in.
Bytes safetensors_header(const StringMap& metadata, std::vector<SafetensorsHeader::Place>& tensors);

// Header and tensors in the pieces of a file; copies the tensors.
std::vector<Bytes> safetensors_parts(const StringMap& metadata, std::vector<NamedTensor> tensors);

struct Safetensors {
  StringMap metadata;
  std::vector<NamedTensor> tensors;  // views into `file`, in file order
  Bytes file;
};

// Strict: every byte behind the header belongs to exactly one tensor, names are unique, sizes fit shapes, nothing
// unknown. ERRORS: kMalformed (what and where), kUnsupported (a dtype that shoal does not use), kTooLarge.
Result<Safetensors> parse_safetensors(Bytes file);
// What stands in front of the tensors of a file of so many bytes, from its first ones; also where they are of a type
// that shoal does not compute with. ERRORS: also kTooLarge (the header does not end in them).
Result<SafetensorsHeader> parse_safetensors_header(ByteView front, std::uint64_t file_bytes);

}  // namespace shoal
