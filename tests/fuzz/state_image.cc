// A stage's state as a donor gave it, loaded into an arena. A peer that loads one has checked its digest, so only what
// members agreed on comes so far; the loader does not rely on it.
#include "state/state_image.h"

#include <cmath>

#include "stages/integer_executor.h"
#include "state/state_transfer.h"
#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

StageSpec spec() {
  const ModelSpec model{.layers = 1, .dim = 4, .heads = 1, .positions = 4, .vocabulary = 16, .seed = 1};
  return split_model(model, 1).value()[0];
}

const OuterRules& rules() {
  static const OuterRules all;
  return all;
}

bool load(ByteView image, StateLoad how) {
  IntegerExecutor executor(spec());
  begin_from_seed(executor);
  const auto loaded = load_state_image(executor, image, how, [](RuleId id) { return rules().of(id).get(); });
  if (!loaded.ok()) return false;
  for (const float value : executor.arena().span(ArenaRole::kAnchor)) SHOAL_CHECK(std::isfinite(value));
  if (how == StateLoad::kFresh)
    SHOAL_CHECK(same_bytes(
        make_state_image(executor, *rules().of(loaded->rule), loaded->version).view().subspan(kStateHeaderBytes),
        image.subspan(kStateHeaderBytes)));
  return true;
}

bool take(ByteView bytes) {
  const auto hashed = hash_state_image(Bytes::copy_of(bytes));
  SHOAL_CHECK(hashed.ok() == parse_state_header(bytes).ok());
  if (!hashed.ok()) return false;
  SHOAL_CHECK(hashed->digest == digest_of_image(bytes) && hashed->root == tree_digest(bytes));
  const bool fresh = load(bytes, StateLoad::kFresh);
  (void)load(bytes, StateLoad::kShiftFromAnchor);
  return fresh;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const RuleId id : {RuleId::kAllreduce, RuleId::kDiloco}) {
    IntegerExecutor executor(spec());
    begin_from_seed(executor);
    all.push_back(make_state_image(executor, *rules().of(id), Version(3)));
  }
  return all;
}

}  // namespace

const Target state_image{"state_image", take, seeds};

}  // namespace shoal::fuzz
