#include "stages/pretrained/pretrained_folder.h"

#include <algorithm>
#include <filesystem>

#include "common/os/posix_file.h"
#include "stages/stage_file.h"

namespace shoal {
namespace {

constexpr std::string_view kHeadName = "lm_head.weight";
// What older releases of transformers saved of a model beside its parameters; it follows from the shapes.
constexpr std::string_view kBuffers[] = {".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq"};

bool is_buffer(std::string_view name) {
  return std::ranges::any_of(kBuffers, [&](std::string_view end) { return name.ends_with(end); });
}

std::vector<ParameterSpec> all_parameters(const ModelSpec& model) {
  return parameters_of(split_model(model, 1)->front());
}

}  // namespace

Result<PretrainedFolder> PretrainedFolder::open(const std::string& path) {
  const std::string config_path = (std::filesystem::path(path) / kArchitectureFileName).string();
  const auto text = read_file(config_path, kModelConfigBytesMax);
  if (!text.ok() && text.code() == ErrorCode::kMissing)
    return make_error(ErrorCode::kMissing,
                      path + " holds no config.json. HINT: give the folder of a model as save_pretrained writes it");
  if (!text.ok()) return text.error();
  auto config = parse_pretrained_config({reinterpret_cast<const char*>(text->data()), text->size()});
  if (!config.ok()) return make_error(config.code(), path + "/" + config.error().message);
  SHOAL_ASSIGN(WeightFiles files, WeightFiles::open(path));
  PretrainedFolder folder(path, std::move(*config), std::move(files));
  SHOAL_TRY(folder.find_tensors());
  return folder;
}

Status PretrainedFolder::find_tensors() {
  const std::string_view prefix = row_of(config_.model.family).body_prefix;
  for (std::size_t place = 0; place < files_.tensors().size(); ++place) {
    const WeightFiles::Stored& tensor = stored(place);
    std::string_view name = tensor.place.name;
    if (!prefix.empty() && name.starts_with(prefix)) name.remove_prefix(prefix.size());
    if (is_buffer(name)) continue;
    if (!tensors_.emplace(name, place).second)
      return make_error(ErrorCode::kMalformed, files_.path_of(tensor) + ": tensor \"" + tensor.place.name +
                                                   "\" is in the folder twice, with and without \"" +
                                                   std::string(prefix) + "\" or in two files");
  }
  if (config_.tied) SHOAL_TRY(untie_head());
  std::size_t known = 0;
  const std::vector<ParameterSpec> wanted = all_parameters(config_.model);
  for (const ParameterSpec& parameter : wanted) {
    const auto found = tensors_.find(parameter.name);
    if (found == tensors_.end())
      return make_error(ErrorCode::kMissing, path_ + ": tensor \"" + parameter.name + "\" is missing");
    const WeightFiles::Stored& tensor = stored(found->second);
    SHOAL_TRY(files_.check_type(tensor));
    if (tensor.place.shape != parameter.shape)
      return make_error(ErrorCode::kMalformed, files_.path_of(tensor) + ": tensor \"" + tensor.place.name + "\" is " +
                                                   text_of(tensor.place.shape) + ", and config.json says " +
                                                   text_of(parameter.shape));
    ++known;
  }
  if (known == tensors_.size()) return {};
  for (const ParameterSpec& parameter : wanted) tensors_.erase(parameter.name);
  const WeightFiles::Stored& unknown = stored(tensors_.begin()->second);
  return make_error(ErrorCode::kMalformed, files_.path_of(unknown) + ": tensor \"" + unknown.place.name +
                                               "\" is unknown: a model of this config.json has none of that name");
}

// A folder with a tied head holds one matrix. Where it holds a head as well, transformers does not read that.
Status PretrainedFolder::untie_head() {
  const std::string embedding = row_of(config_.model.family).embedding(config_.model).front().name;
  const auto found = tensors_.find(embedding);
  if (found == tensors_.end())
    return make_error(ErrorCode::kMissing, path_ + ": tensor \"" + embedding + "\" is missing");
  tensors_[std::string(kHeadName)] = found->second;
  const std::uint64_t floats = std::uint64_t{config_.model.vocabulary} * config_.model.dim;
  config_.notes.push_back(
      "the folder's head is tied to its embedding; shoal trains a head of its own, which begins as a "
      "copy: " +
      std::to_string(floats) + " parameters more, " + std::to_string((floats * sizeof(float) + (1u << 20) - 1) >> 20) +
      " MiB of weights");
  return {};
}

Status PretrainedFolder::read(const StageSpec& spec, std::uint64_t first, std::span<float> out) const {
  ModelSpec wanted = spec.model;
  wanted.positions = config_.model.positions;
  wanted.seed = config_.model.seed;
  if (wanted != config_.model)
    return make_error(ErrorCode::kInput, path_ + " holds a model of other shapes than the run's");
  const std::uint64_t end = first + out.size();
  SHOAL_CHECK_LE(end, parameter_count(spec));
  for (const ParameterSpec& parameter : parameters_of(spec)) {
    const std::uint64_t begins = parameter.offset;
    const std::uint64_t ends = begins + static_cast<std::uint64_t>(element_count(parameter.shape));
    const std::uint64_t from = std::max(begins, first), to = std::min(ends, end);
    if (from >= to) continue;
    SHOAL_TRY(files_.read(stored(tensors_.at(parameter.name)), from - begins, out.subspan(from - first, to - from)));
  }
  return {};
}

Status PretrainedFolder::read_stage(const StageSpec& spec, std::span<float> into) const {
  SHOAL_CHECK_EQ(into.size(), parameter_count(spec));
  return read(spec, 0, into);
}

}  // namespace shoal
