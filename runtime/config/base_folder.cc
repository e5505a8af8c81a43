#include "runtime/config/base_folder.h"

#include <filesystem>
#include <string_view>
#include <vector>

#include "common/crypto/text_codes.h"
#include "common/os/posix_file.h"
#include "state/state_image.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".base";
constexpr std::size_t kHexDigits = 64;

class KeptImage final : public WeightSource {
 public:
  explicit KeptImage(std::string path) : path_(std::move(path)) {}
  std::uint64_t floats(const StageSpec&) const override {
    std::error_code failure;
    const std::uintmax_t bytes = fs::file_size(path_, failure);
    return failure || bytes < kStateHeaderBytes ? 0 : (bytes - kStateHeaderBytes) / sizeof(float);
  }
  Status read(const StageSpec&, std::uint64_t first, std::span<float> out) const override {
    const std::uint64_t at = kStateHeaderBytes + first * sizeof(float);
    SHOAL_ASSIGN(const std::uint64_t size,
                 read_file_at(path_, at, {reinterpret_cast<std::uint8_t*>(out.data()), out.size_bytes()}));
    if (size >= at + out.size_bytes()) return {};
    return make_error(ErrorCode::kCorrupt, path_ + " is shorter than it was");
  }

 private:
  const std::string path_;
};

bool is_base(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.size() == kHexDigits + kEnding.size() && name.ends_with(kEnding) &&
         parse_hex32(name.substr(0, kHexDigits)).ok();
}

// The disk does not fill with the bases of stages that the machine served before.
void remove_others(const fs::path& kept) {
  std::error_code failure;
  std::vector<fs::path> others;
  for (const fs::directory_entry& entry : fs::directory_iterator(kept.parent_path(), failure))
    if (entry.path() != kept && is_base(entry.path())) others.push_back(entry.path());
  for (const fs::path& other : others) fs::remove(other, failure);
}

}  // namespace

std::string BaseFolder::file_of(const Digest& digest) const {
  return path_ + "/" + hex_of(digest) + std::string(kEnding);
}

std::shared_ptr<const WeightSource> BaseFolder::find(const Digest& digest) const {
  std::error_code failure;
  if (path_.empty() || !fs::exists(file_of(digest), failure)) return nullptr;
  return std::make_shared<KeptImage>(file_of(digest));
}

Status BaseFolder::keep(const Digest& digest, const Bytes& image) const {
  if (path_.empty()) return make_error(ErrorCode::kMissing, "this process has no home of its own");
  std::error_code failure;
  fs::create_directories(path_, failure);  // what fails here shows in the next line
  SHOAL_TRY(replace_file(file_of(digest), {image}));
  remove_others(file_of(digest));
  return {};
}

}  // namespace shoal
