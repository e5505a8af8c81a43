#include "stages/pretrained/weight_files.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "common/file_pointer.h"
#include "common/os/posix_file.h"
#include "kernels/accumulate.h"
#include "kernels/half.h"
#include "stages/stage_file.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr char kSingleFileName[] = "model.safetensors";
constexpr std::size_t kPieceBytes = 4u << 20;

Error malformed_index(const std::string& what) {
  return make_error(ErrorCode::kMalformed, std::string(kIndexFileName) + ": " + what);
}

bool is_plain_name(const std::string& name) {
  return name.size() <= 255 && name.ends_with(".safetensors") && !name.starts_with('.') &&
         std::ranges::none_of(name,
                              [](char c) { return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20; });
}

Result<Bytes> read_header(const std::string& path, std::uint64_t& file_bytes) {
  std::uint8_t word[8] = {};
  SHOAL_ASSIGN(file_bytes, read_file_at(path, 0, word));
  const auto length = get_le<std::uint64_t>(ByteView(word), 0);
  // What is too long is refused by the parser, which then has all that it needs to see; and a pointer's first line.
  const std::uint64_t wanted = std::min(length > kSafetensorsHeaderMax ? kFilePointerBytes : 8 + length, file_bytes);
  Buffer front(wanted);
  SHOAL_ASSIGN(const std::uint64_t again, read_file_at(path, 0, front.view()));
  if (again != file_bytes) return make_error(ErrorCode::kCorrupt, path + ": it changed while it was read");
  return std::move(front).freeze();
}

Error no_weights(const std::string& folder) {
  std::error_code failure;
  const bool pickled = fs::exists(fs::path(folder) / "pytorch_model.bin", failure) ||
                       fs::exists(fs::path(folder) / "pytorch_model.bin.index.json", failure);
  return make_error(ErrorCode::kMissing,
                    folder + " holds neither " + kSingleFileName + " nor " + kIndexFileName +
                        (pickled ? ". HINT: pytorch_model.bin is not read; save_pretrained of Python's transformers "
                                   "writes safetensors"
                                 : ". HINT: give the folder that holds config.json and the weights"));
}

}  // namespace

Result<std::map<std::string, std::string>> parse_weight_index(std::string_view text) {
  if (text.size() > kWeightIndexBytesMax)
    return make_error(ErrorCode::kTooLarge, std::string(kIndexFileName) + ": larger than 64 MiB");
  const nlohmann::json file = nlohmann::json::parse(text, nullptr, false);
  if (!file.is_object()) return malformed_index("no JSON object");
  const auto weights = file.find("weight_map");
  if (weights == file.end() || !weights->is_object() || weights->empty())
    return malformed_index("\"weight_map\" is missing, empty or no object");
  if (weights->size() > kSafetensorsTensorsMax) return malformed_index("it names too many tensors");
  std::map<std::string, std::string> index;
  std::set<std::string> files;
  for (const auto& [tensor, name] : weights->items()) {
    if (tensor.size() > kSafetensorsNameMax) return malformed_index("a tensor's name is too long");
    if (!name.is_string() || !is_plain_name(name.get<std::string>()))
      return malformed_index("the file of tensor \"" + tensor + "\" is no name that ends with .safetensors");
    files.insert(index[tensor] = name.get<std::string>());
  }
  if (files.size() > kWeightFilesMax) return malformed_index("it names too many files");
  return index;
}

Result<WeightFiles> WeightFiles::open(const std::string& folder) {
  WeightFiles weights;
  const std::string single = (fs::path(folder) / kSingleFileName).string();
  std::error_code failure;
  if (fs::exists(single, failure)) {
    SHOAL_TRY(weights.add_file(single));
    return weights;
  }
  const std::string path = (fs::path(folder) / kIndexFileName).string();
  const auto text = read_file(path, kWeightIndexBytesMax);
  if (!text.ok() && text.code() == ErrorCode::kMissing) return no_weights(folder);
  if (!text.ok()) return text.error();
  if (is_file_pointer(*text)) return file_pointer_error(path);
  const auto index = parse_weight_index({reinterpret_cast<const char*>(text->data()), text->size()});
  if (!index.ok()) return make_error(index.code(), folder + "/" + index.error().message);
  std::set<std::string> names;
  for (const auto& [tensor, name] : *index) names.insert(name);
  for (const std::string& name : names) SHOAL_TRY(weights.add_file((fs::path(folder) / name).string()));
  SHOAL_TRY(weights.check_index(folder, *index));
  return weights;
}

Status WeightFiles::add_file(const std::string& path) {
  std::error_code failure;  // the next line says what is wrong with the file
  File file{.path = path, .bytes = 0, .written = fs::last_write_time(path, failure)};
  SHOAL_ASSIGN(const Bytes front, read_header(path, file.bytes));
  if (is_file_pointer(front)) return file_pointer_error(path);
  auto header = parse_safetensors_header(front, file.bytes);
  if (!header.ok()) return make_error(header.code(), path + ": " + header.error().message);
  for (SafetensorsHeader::Place& place : header->tensors) tensors_.push_back({files_.size(), std::move(place)});
  files_.push_back(std::move(file));
  return {};
}

Status WeightFiles::check_index(const std::string& folder, const std::map<std::string, std::string>& index) const {
  std::set<std::string> found;
  for (const Stored& tensor : tensors_) {
    const std::string file = fs::path(path_of(tensor)).filename().string();
    const auto said = index.find(tensor.place.name);
    if (said == index.end() || said->second != file)
      return about(tensor, ErrorCode::kMalformed, "is not where " + std::string(kIndexFileName) + " says");
    found.insert(tensor.place.name);
  }
  for (const auto& [tensor, file] : index)
    if (!found.contains(tensor))
      return make_error(ErrorCode::kMalformed, folder + "/" + file + ": tensor \"" + tensor + "\" is missing, which " +
                                                   kIndexFileName + " says is there");
  return {};
}

Error WeightFiles::about(const Stored& tensor, ErrorCode code, const std::string& what) const {
  return make_error(code, path_of(tensor) + ": tensor \"" + tensor.place.name + "\" " + what);
}

Status WeightFiles::read_bytes(const Stored& tensor, std::uint64_t at, MutableByteView into) const {
  SHOAL_ASSIGN(const std::uint64_t bytes, read_file_at(path_of(tensor), at, into));
  const File& file = files_[tensor.file];
  std::error_code failure;
  if (bytes == file.bytes && fs::last_write_time(file.path, failure) == file.written) return {};
  return about(
      tensor, ErrorCode::kCorrupt,
      "cannot be read: the file has changed since it was opened. HINT: put the old one back and begin again; a "
      "launched run goes on with --resume");
}

Status WeightFiles::check_type(const Stored& tensor) const {
  const StoredType type = tensor.place.type;
  if (type == StoredType::kF32 || type == StoredType::kBf16 || type == StoredType::kF16) return {};
  return about(tensor, ErrorCode::kUnsupported,
               "has dtype " + std::string(name_of(type)) + "; weights are F32, BF16 or F16");
}

Status WeightFiles::read(const Stored& tensor, std::uint64_t first, std::span<float> values) const {
  const StoredType type = tensor.place.type;
  SHOAL_CHECK_LE((first + values.size()) * size_of(type), tensor.place.end - tensor.place.begin);
  SHOAL_CHECK(check_type(tensor).ok());
  const HalfFormat format = type == StoredType::kBf16 ? HalfFormat::kBf16 : HalfFormat::kFp16;
  const std::size_t a_piece = kPieceBytes / size_of(type);
  std::vector<std::uint8_t> halves(type == StoredType::kF32 ? 0 : std::min(a_piece, values.size()) * size_of(type));
  for (std::size_t done = 0; done < values.size(); done += a_piece) {
    const std::span<float> piece = values.subspan(done, std::min(a_piece, values.size() - done));
    const std::uint64_t at = tensor.place.begin + (first + done) * size_of(type);
    bool finite = true;
    if (type == StoredType::kF32) {
      SHOAL_TRY(read_bytes(tensor, at, {reinterpret_cast<std::uint8_t*>(piece.data()), piece.size_bytes()}));
      finite = all_finite(piece);
    } else {
      const auto stored = std::span(halves).first(piece.size() * 2);
      SHOAL_TRY(read_bytes(tensor, at, stored));
      finite = widen_half(format, stored, piece);
    }
    if (!finite) return about(tensor, ErrorCode::kNonFinite, "has a value that is not finite");
  }
  return {};
}

}  // namespace shoal
