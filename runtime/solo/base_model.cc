#include "runtime/solo/base_model.h"

#include "runtime/solo/saved_model.h"
#include "stages/adapters.h"
#include "state/first_state.h"

namespace shoal {

Result<std::optional<BaseModel>> BaseModel::beside(const std::string& saved, const ModelSpec& model,
                                                   const std::string& folder) {
  if (!has_adapters(model)) {
    if (folder.empty()) return std::optional<BaseModel>();
    return make_error(ErrorCode::kInput, saved + " holds a whole model, and no adapters. HINT: leave --base out");
  }
  if (folder.empty())
    return make_error(ErrorCode::kInput,
                      saved +
                          " holds adapters, and not the model that they stand beside. HINT: --base FOLDER, the "
                          "folder of [model] from");
  SHOAL_ASSIGN(PretrainedFolder opened, PretrainedFolder::open(folder));
  SHOAL_ASSIGN(const RunConfig run, load_saved_config(saved));
  return std::optional(BaseModel(std::move(opened), folder, run.model.weights));
}

Status BaseModel::read_stage(const StageSpec& spec, std::span<float> into) const {
  const StageSpec base = base_of(spec);
  SHOAL_TRY(folder_.read_stage(base, into));
  const std::size_t stage = spec.stage.value;
  if (stage >= digests_.size() || digest_of_first(base, into) == digests_[stage]) return {};
  return make_error(ErrorCode::kInput, path_ +
                                           " holds other weights than the model that the adapters were trained beside. "
                                           "HINT: give the folder that [model] from named");
}

}  // namespace shoal
