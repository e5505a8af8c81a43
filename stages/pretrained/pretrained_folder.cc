#include "stages/pretrained/pretrained_folder.h"

#include <algorithm>
#include <filesystem>

#include "common/file_pointer.h"
#include "common/os/posix_file.h"
#include "stages/boundary.h"
#include "stages/stage_file.h"

namespace shoal {
namespace {

constexpr std::string_view kHeadName = "lm_head.weight";
// What older releases of transformers saved of a model beside its parameters; it follows from the shapes.
constexpr std::string_view kBuffers[] = {".attn.bias", ".attn.masked_bias", "rotary_emb.inv_freq"};
// What torch's compiler, data parallel training and checkpointing of activations put into names: a module around each.
constexpr std::string_view kWrappers[] = {"_orig_mod.", "module.", "_fsdp_wrapped_module.",
                                          "_checkpoint_wrapped_module."};
// In front of the names of a whole model; the base class saves names without.
constexpr std::string_view kBodies[] = {"transformer.", "model."};

bool is_buffer(std::string_view name) {
  return std::ranges::any_of(kBuffers, [&](std::string_view end) { return name.ends_with(end); });
}

// A name without the modules around its own.
std::string unwrapped(std::string name) {
  for (const std::string_view wrapper : kWrappers) {
    for (std::size_t at = name.find(wrapper); at != name.npos; at = name.find(wrapper, at)) {
      if (at == 0 || name[at - 1] == '.')
        name.erase(at, wrapper.size());
      else
        at += wrapper.size();
    }
  }
  return name;
}

// Without what stands in front of the body's names, whether the folder or the family writes it.
std::string_view without_body(std::string_view name) {
  for (const std::string_view body : kBodies)
    if (name.starts_with(body)) return name.substr(body.size());
  return name;
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
  if (is_file_pointer(*text)) return file_pointer_error(config_path);
  auto config = parse_pretrained_config({reinterpret_cast<const char*>(text->data()), text->size()});
  if (!config.ok()) return make_error(config.code(), path + "/" + config.error().message);
  SHOAL_ASSIGN(WeightFiles files, WeightFiles::open(path));
  PretrainedFolder folder(path, std::move(*config), std::move(files));
  SHOAL_TRY(folder.find_tensors());
  return folder;
}

Status PretrainedFolder::find_tensors() {
  const std::vector<ParameterSpec> wanted = all_parameters(config_.model);
  std::map<std::string_view, std::string> ours;  // by what stands behind the body's prefix
  for (const ParameterSpec& parameter : wanted) ours[without_body(parameter.name)] = parameter.name;
  bool wrapped = false;
  for (std::size_t place = 0; place < files_.tensors().size(); ++place) {
    const WeightFiles::Stored& tensor = stored(place);
    std::string name = unwrapped(tensor.place.name);
    wrapped = wrapped || name != tensor.place.name;
    if (has_boundary(config_.model) && name.starts_with(kInsideBoundary)) name.erase(0, kInsideBoundary.size());
    if (is_buffer(name)) continue;
    const auto found = ours.find(without_body(name));
    if (!tensors_.emplace(found == ours.end() ? name : found->second, place).second)
      return make_error(ErrorCode::kMalformed, files_.path_of(tensor) + ": tensor \"" + tensor.place.name +
                                                   "\" is in the folder twice, with and without \"" +
                                                   std::string(kBodies[0]) + "\", \"" + std::string(kBodies[1]) +
                                                   "\" or a wrapper's name, or in two files");
  }
  if (wrapped)
    config_.notes.push_back(
        "the folder's tensors have names as torch's wrappers write them (_orig_mod., module.); they are read without");
  if (config_.tied) SHOAL_TRY(untie_head());
  std::size_t known = 0;
  for (const ParameterSpec& parameter : wanted) {
    const auto found = tensors_.find(parameter.name);
    if (found == tensors_.end())
      return make_error(ErrorCode::kMissing,
                        path_ + ": tensor \"" + parameter.name + "\" is missing" +
                            (parameter.name != kHeadName ? ""
                                                         : ". HINT: a base class saves no head (transformers begins "
                                                           "with one by chance): save it by AutoModelForCausalLM, or "
                                                           "say \"tie_word_embeddings\": true in config.json where the "
                                                           "embedding is the head"));
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

// A folder with a tied head holds one matrix. Where it holds a head as well, transformers reads that from release 5 on,
// with a warning where the two differ; where they are equal it is the same.
Status PretrainedFolder::untie_head() {
  const std::string embedding = row_of(config_.model.family).embedding(config_.model).front().name;
  const auto found = tensors_.find(embedding);
  if (found == tensors_.end())
    return make_error(ErrorCode::kMissing, path_ + ": tensor \"" + embedding + "\" is missing");
  const bool own_head = !tensors_.emplace(kHeadName, found->second).second;
  if (own_head)
    config_.notes.push_back(
        "config.json ties the head to the embedding, and the folder holds a head beside it: that one is read, as "
        "transformers 5 does where the two differ");
  if (own_head) return {};
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
