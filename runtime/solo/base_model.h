#pragma once
// The model that saved adapters stand beside: the folder of Python's transformers that their run began from. Owns its
// files. Immutable; thread-safe; blocking file I/O.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/crypto/hash.h"
#include "stages/pretrained/pretrained_folder.h"

namespace shoal {

class BaseModel {
 public:
  // The base of what `saved` holds, a model of these shapes; none where that is a whole one. ERRORS: kInput (adapters
  // without `folder`, or a whole model with one), PretrainedFolder's, load_saved_config's.
  static Result<std::optional<BaseModel>> beside(const std::string& saved, const ModelSpec& model,
                                                 const std::string& folder);

  // The base's parameters of a stage that has adapters. REQUIRES: into.size() == parameter_count(base_of(spec)).
  // ERRORS: kInput (a model of other shapes, or other weights than those that the run began from, where it knew their
  // digests), PretrainedFolder's.
  Status read_stage(const StageSpec& spec, std::span<float> into) const;

 private:
  BaseModel(PretrainedFolder folder, std::string path, std::vector<Digest> digests)
      : folder_(std::move(folder)), path_(std::move(path)), digests_(std::move(digests)) {}

  PretrainedFolder folder_;
  std::string path_;
  std::vector<Digest> digests_;  // of the stages' bases; empty: not known
};

}  // namespace shoal
