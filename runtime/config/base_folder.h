#pragma once
// Where a machine keeps the base that its adapters stand beside, so that it is fetched once: HOME/base/DIGEST.base, the
// image as it was fetched (state/first_state.h).
// Thread: any; blocking file I/O.   Bounds: one base, the last that was kept.
#include <memory>
#include <string>

#include "common/bytes.h"
#include "common/crypto/hash.h"
#include "stages/weight_source.h"

namespace shoal {

class BaseFolder {
 public:
  // Empty: nothing is kept.
  explicit BaseFolder(std::string path) : path_(std::move(path)) {}

  // What is kept under this digest, and nobody has checked; null: nothing.
  std::shared_ptr<const WeightSource> find(const Digest& digest) const;
  // Makes the folder, and removes other bases from it. ERRORS: kMissing (no folder was named), kIo.
  Status keep(const Digest& digest, const Bytes& image) const;

 private:
  std::string file_of(const Digest& digest) const;
  std::string path_;
};

}  // namespace shoal
