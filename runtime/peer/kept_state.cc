#include "runtime/peer/kept_state.h"

#include <algorithm>

#include "state/state_image.h"

namespace shoal {

KeptState::Images KeptState::take(const Source& source) {
  Images images;
  const auto keep = [&](const OuterRule& rule, Version version) {
    Bytes bytes = make_state_image(*source.executor, rule, version);
    const Digest digest = digest_of_image(bytes);
    images.push_back(
        {.stage = source.executor->spec().stage, .version = version, .digest = digest, .bytes = std::move(bytes)});
  };
  if (source.version > Version(0)) keep(*source.rule, source.version);
  if (source.candidate) {
    adopt_candidate(*source.executor, *source.candidate->rule);
    keep(*source.candidate->rule, source.candidate->version);
  }
  return images;
}

void KeptState::replace(Images images) {
  if (!images.empty()) images_ = std::move(images);
}

std::optional<HeldState> KeptState::held(StageId stage) const {
  if (empty() || images_.front().stage != stage) return std::nullopt;
  return HeldState{images_.front().version, images_.front().digest};  // surely committed; a candidate may not be
}

std::optional<StageId> KeptState::stage() const {
  return empty() ? std::nullopt : std::optional(images_.front().stage);
}

const KeptState::Image* KeptState::newest_of(const StageMembers& stage) const {
  const auto found = std::find_if(images_.begin(), images_.end(), [&](const Image& image) {
    return image.stage == stage.stage && image.version <= stage.version && image.digest == stage.digest;
  });
  return found == images_.end() ? nullptr : &*found;
}

std::optional<std::pair<StageId, Version>> KeptState::newest() const {
  if (empty()) return std::nullopt;
  return std::pair{images_.back().stage, images_.back().version};
}

}  // namespace shoal
