#pragma once
// The tensors of a folder of safetensors files: model.safetensors, or the files that model.safetensors.index.json
// names. Opening reads what stands in front of the tensors; values are read in pieces of kPieceBytes, so that a tensor
// takes no more memory than that beyond where it goes. Thread: any; blocking file I/O.
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "stages/safetensors.h"

namespace shoal {

inline constexpr std::size_t kWeightIndexBytesMax = 64u << 20;
inline constexpr std::size_t kWeightFilesMax = 4096;

// Tensor -> file. File names have no folder in them. ERRORS: kMalformed, kTooLarge.
Result<std::map<std::string, std::string>> parse_weight_index(std::string_view json);

class WeightFiles {
 public:
  struct Stored {
    std::size_t file = 0;  // its place among the files
    SafetensorsHeader::Place place;
  };
  // ERRORS: kMissing (a file), kMalformed (the file and what is wrong, also: a tensor that the index lacks or names in
  // vain), kTooLarge, kUnsupported, kIo.
  static Result<WeightFiles> open(const std::string& folder);

  const std::vector<Stored>& tensors() const { return tensors_; }
  const std::string& path_of(const Stored& tensor) const { return files_[tensor.file].path; }
  // Whether it is of floats: F32, BF16 or F16. ERRORS: kUnsupported, with file and tensor.
  Status check_type(const Stored& tensor) const;
  // Its values from the one at `first` on, as floats. REQUIRES: check_type() passes, and the tensor has as many.
  // ERRORS: kNonFinite, kCorrupt (the file has changed since it was opened), kIo; all with file and tensor.
  Status read(const Stored& tensor, std::uint64_t first, std::span<float> values) const;

 private:
  struct File {
    std::string path;
    std::uint64_t bytes = 0;
    std::filesystem::file_time_type written = {};
  };
  Status add_file(const std::string& path);
  Status check_index(const std::string& folder, const std::map<std::string, std::string>& index) const;
  Status read_bytes(const Stored& tensor, std::uint64_t at, MutableByteView into) const;
  Error about(const Stored& tensor, ErrorCode code, const std::string& what) const;

  std::vector<File> files_;
  std::vector<Stored> tensors_;  // by file, then in its order
};

}  // namespace shoal
