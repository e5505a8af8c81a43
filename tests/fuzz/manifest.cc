// Manifests: the run's text as a launching process sends it.
#include "runtime/plan/flight_plan.h"
#include "tests/fuzz/run_texts.h"
#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

bool take(ByteView bytes) {
  const auto config = parse_manifest(text_in(bytes));
  if (!config.ok()) return false;
  SHOAL_CHECK(*canonical_text(*config) == text_in(bytes));
  // What a peer derives before it computes anything.
  (void)config->model_spec();
  (void)flight_limits(*config).at(1000);
  (void)config->id_window();
  (void)config->schedule_targets();
  (void)config->inner_step(1, 1000, 1000, config->gradients_late());
  return true;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const std::string_view text : kRunTexts)
    all.push_back(Bytes::copy_of(*canonical_text(*parse_config(text, "run.toml"))));
  return all;
}

}  // namespace

const Target manifest{"manifest", take, seeds};

}  // namespace shoal::fuzz
