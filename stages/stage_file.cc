#include "stages/stage_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "common/check.h"
#include "kernels/accumulate.h"
#include "stages/safetensors.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

Error system_error(const std::string& path, int error) {
  return make_error(ErrorCode::kIo, path + ": " + std::strerror(error));
}

StringMap metadata_of(const StageSpec& spec) {
  return {{"shoal.format", "1"},
          {"shoal.layers", std::to_string(spec.model.layers)},
          {"shoal.dim", std::to_string(spec.model.dim)},
          {"shoal.heads", std::to_string(spec.model.heads)},
          {"shoal.positions", std::to_string(spec.model.positions)},
          {"shoal.vocabulary", std::to_string(spec.model.vocabulary)},
          {"shoal.seed", std::to_string(spec.model.seed)},
          {"shoal.stage", std::to_string(spec.stage.value)},
          {"shoal.stages", std::to_string(spec.stages)},
          {"shoal.first_layer", std::to_string(spec.first_layer)},
          {"shoal.end_layer", std::to_string(spec.end_layer)}};
}

template <class T>
Status read_number(const StringMap& metadata, const char* key, T& out) {
  const auto found = metadata.find(key);
  if (found == metadata.end())
    return make_error(ErrorCode::kMalformed, std::string("stage file: metadata lacks ") + key);
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc() && end == text.data() + text.size()) return Status::success();
  return make_error(ErrorCode::kMalformed, std::string("stage file: metadata ") + key + " is not a number in range");
}

Result<StageSpec> spec_of(const StringMap& metadata) {
  StageSpec spec;
  int format = 0;
  SHOAL_TRY(read_number(metadata, "shoal.format", format));
  if (format != 1)
    return make_error(ErrorCode::kUnsupported, "stage file: format " + std::to_string(format) + ", this build reads 1");
  SHOAL_TRY(read_number(metadata, "shoal.layers", spec.model.layers));
  SHOAL_TRY(read_number(metadata, "shoal.dim", spec.model.dim));
  SHOAL_TRY(read_number(metadata, "shoal.heads", spec.model.heads));
  SHOAL_TRY(read_number(metadata, "shoal.positions", spec.model.positions));
  SHOAL_TRY(read_number(metadata, "shoal.vocabulary", spec.model.vocabulary));
  SHOAL_TRY(read_number(metadata, "shoal.seed", spec.model.seed));
  SHOAL_TRY(read_number(metadata, "shoal.stage", spec.stage.value));
  SHOAL_TRY(read_number(metadata, "shoal.stages", spec.stages));
  SHOAL_TRY(read_number(metadata, "shoal.first_layer", spec.first_layer));
  SHOAL_TRY(read_number(metadata, "shoal.end_layer", spec.end_layer));
  const Result<std::vector<StageSpec>> model = split_model(spec.model, 1);
  if (!model.ok()) return make_error(ErrorCode::kMalformed, "stage file: " + model.error().message);
  if (spec.stage.value >= spec.stages || spec.first_layer >= spec.end_layer || spec.end_layer > spec.model.layers) {
    return make_error(ErrorCode::kMalformed, "stage file: stage and layers do not fit the model");
  }
  return spec;
}

Status write_all(int file, const Bytes& bytes, const std::string& path) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = ::write(file, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return system_error(path, written < 0 ? errno : ENOSPC);
    done += static_cast<std::size_t>(written);
  }
  return Status::success();
}

Status sync_directory(const std::string& directory) {
  const int folder = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return system_error(directory, errno);
  const int error = ::fsync(folder) == 0 ? 0 : errno;
  ::close(folder);
  if (error != 0) return system_error(directory, error);
  return Status::success();
}

Status replace_file(const std::string& directory, const std::string& name, const std::vector<Bytes>& parts) {
  const std::string path = (fs::path(directory) / name).string(), temporary = path + ".tmp";
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return system_error(temporary, errno);
  Status status;
  for (const Bytes& part : parts) {
    if (status.ok()) status = write_all(file, part, temporary);
  }
  if (status.ok() && ::fsync(file) != 0) status = system_error(temporary, errno);
  if (::close(file) != 0 && status.ok()) status = system_error(temporary, errno);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) status = system_error(path, errno);
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return sync_directory(directory);
}

Result<Bytes> read_file(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) return make_error(fs::exists(path) ? ErrorCode::kIo : ErrorCode::kMissing, path + ": " + error.message());
  Buffer buffer(size);
  std::ifstream in(path, std::ios::binary);
  in.read(reinterpret_cast<char*>(buffer.data()), static_cast<std::streamsize>(size));
  if (!in || static_cast<std::uintmax_t>(in.gcount()) != size)
    return make_error(ErrorCode::kIo, path + ": could not be read to its end");
  return std::move(buffer).freeze();
}

}  // namespace

std::string stage_file_name(StageId stage, std::uint16_t stages) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05u-of-%05u.safetensors", stage.value + 1u, +stages);
  return name;
}

std::vector<Bytes> stage_file_parts(const StageSpec& spec, std::span<const float> parameters) {
  SHOAL_CHECK_EQ(parameters.size(), parameter_count(spec));
  std::vector<NamedTensor> tensors;
  for (const ParameterSpec& parameter : parameters_of(spec)) {
    const auto values = parameters.subspan(parameter.offset, static_cast<std::size_t>(element_count(parameter.shape)));
    tensors.push_back({parameter.name, {DType::kF32, parameter.shape, bytes_of(values)}});
  }
  return safetensors_parts(metadata_of(spec), std::move(tensors));
}

Bytes index_file(const std::vector<StageSpec>& specs) {
  StringMap files;
  std::size_t bytes = 0;
  for (const StageSpec& spec : specs) {
    bytes += parameter_count(spec) * sizeof(float);
    for (const ParameterSpec& parameter : parameters_of(spec))
      files[parameter.name] = stage_file_name(spec.stage, spec.stages);
  }
  std::string json = "{\"metadata\":{\"total_size\":" + std::to_string(bytes) + "},\"weight_map\":{";
  bool first = true;
  for (const auto& [tensor, file] : files) {
    json += std::string(first ? "" : ",") + "\n\"" + tensor + "\":\"" + file + "\"";
    first = false;
  }
  return Bytes::copy_of(std::string_view(json + "\n}}\n"));
}

Result<LoadedStage> parse_stage_file(Bytes file) {
  SHOAL_ASSIGN(const Safetensors parsed, parse_safetensors(std::move(file)));
  LoadedStage loaded;
  SHOAL_ASSIGN(loaded.spec, spec_of(parsed.metadata));
  std::map<std::string, const TensorView*> by_name;
  std::size_t held = 0;
  for (const NamedTensor& entry : parsed.tensors) {
    by_name[entry.name] = &entry.tensor;
    held += entry.tensor.bytes.size();
  }
  // Before memory is reserved: metadata alone must not make us allocate more than the file holds.
  const std::vector<ParameterSpec> expected = parameters_of(loaded.spec);
  if (expected.size() != by_name.size() || parameter_count(loaded.spec) * sizeof(float) != held) {
    return make_error(ErrorCode::kMalformed,
                      "stage file: its tensors are not those of the stage that its metadata describe");
  }
  loaded.parameters.resize(parameter_count(loaded.spec));
  for (const ParameterSpec& parameter : expected) {
    const auto found = by_name.find(parameter.name);
    if (found == by_name.end() || found->second->dtype != DType::kF32 || found->second->shape != parameter.shape) {
      return make_error(ErrorCode::kMalformed, "stage file: tensor \"" + parameter.name + "\" is missing or not " +
                                                   text_of(parameter.shape) + " of F32");
    }
    std::memcpy(loaded.parameters.data() + parameter.offset, found->second->bytes.data(), found->second->bytes.size());
  }
  if (!all_finite(loaded.parameters)) return make_error(ErrorCode::kNonFinite, "stage file: a parameter is not finite");
  return loaded;
}

Status save_stage(const std::string& directory, const StageSpec& spec, std::span<const float> parameters) {
  return replace_file(directory, stage_file_name(spec.stage, spec.stages), stage_file_parts(spec, parameters));
}

Status save_index(const std::string& directory, const std::vector<StageSpec>& specs) {
  return replace_file(directory, kIndexFileName, {index_file(specs)});
}

Result<std::vector<LoadedStage>> load_model(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("model-") && name.ends_with(".safetensors")) names.push_back(name);
  }
  if (error) return make_error(ErrorCode::kMissing, directory + ": " + error.message());
  if (names.empty())
    return make_error(ErrorCode::kMissing,
                      directory + " holds no model-*.safetensors. HINT: give the folder of --save");
  std::sort(names.begin(), names.end());
  std::vector<LoadedStage> stages;
  for (const std::string& name : names) {
    const std::string path = (fs::path(directory) / name).string();
    SHOAL_ASSIGN(Bytes bytes, read_file(path));
    Result<LoadedStage> loaded = parse_stage_file(std::move(bytes));
    if (!loaded.ok()) return make_error(loaded.code(), path + ": " + loaded.error().message);
    const StageSpec& spec = loaded->spec;
    const bool follows = stages.empty() ? spec.stage.value == 0 && spec.first_layer == 0
                                        : spec.stage.value == stages.back().spec.stage.value + 1 &&
                                              spec.first_layer == stages.back().spec.end_layer;
    if (!follows || spec.stages != names.size() || (!stages.empty() && spec.model != stages.back().spec.model)) {
      return make_error(ErrorCode::kMalformed,
                        path + ": does not follow the stage before it, or a stage's file is missing");
    }
    stages.push_back(std::move(*loaded));
  }
  if (stages.back().spec.end_layer != stages.back().spec.model.layers) {
    return make_error(ErrorCode::kMalformed, directory + ": the last layers are missing");
  }
  return stages;
}

}  // namespace shoal
