#pragma once
// A model in a folder as Python's transformers saves it: config.json and safetensors files. Its parameters are read a
// stage at a time, straight into the stage's arena: only that stage's bytes are read, and beside them a few MiB are
// needed. A head that is tied to the embedding becomes one of its own, which begins as a copy.
// Thread: any; blocking file I/O in open(), read() and read_stage().
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "stages/pretrained/model_config.h"
#include "stages/pretrained/weight_files.h"
#include "stages/stage_spec.h"
#include "stages/weight_source.h"

namespace shoal {

class PretrainedFolder final : public WeightSource {
 public:
  // All is judged but the values: shapes, and that every parameter has its tensor and every tensor its parameter.
  // ERRORS: kMissing (a file, a key, a tensor), kMalformed (also: a tensor of another shape, an unknown one),
  // kUnsupported (what the folder asks for and we do not have), kInput, kTooLarge, kIo; with file, and key or tensor.
  static Result<PretrainedFolder> open(const std::string& path);

  // positions = context, the longest sequence; seed 0.
  const ModelSpec& model() const { return config_.model; }
  // What is done otherwise than the folder says, a sentence each.
  const std::vector<std::string>& notes() const { return config_.notes; }

  // `positions` and `seed` of the stage's model are free. ERRORS: kInput (the stage of another model), and
  // WeightFiles::read's.
  Status read(const StageSpec& spec, std::uint64_t first, std::span<float> out) const override;
  // All parameters of a stage in arena order. REQUIRES: into.size() == parameter_count(spec). ERRORS: read()'s.
  Status read_stage(const StageSpec& spec, std::span<float> into) const;

 private:
  PretrainedFolder(std::string path, PretrainedConfig config, WeightFiles files)
      : path_(std::move(path)), config_(std::move(config)), files_(std::move(files)) {}
  const WeightFiles::Stored& stored(std::size_t place) const { return files_.tensors()[place]; }
  Status find_tensors();
  Status untie_head();

  std::string path_;
  PretrainedConfig config_;
  WeightFiles files_;
  std::map<std::string, std::size_t> tensors_;  // by our names: places among those of files_
};

}  // namespace shoal
