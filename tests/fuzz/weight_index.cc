// model.safetensors.index.json of a model from elsewhere.
#include "stages/pretrained/weight_files.h"
#include "stages/stage_file.h"
#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

bool take(ByteView bytes) {
  const auto index = parse_weight_index(text_in(bytes));
  if (!index.ok()) return false;
  SHOAL_CHECK(!index->empty());
  for (const auto& [tensor, file] : *index) {
    SHOAL_CHECK_LE(tensor.size(), kSafetensorsNameMax);
    SHOAL_CHECK(file.find('/') == file.npos && file.front() != '.' && file.ends_with(".safetensors"));
  }
  return true;
}

std::vector<Bytes> seeds() {
  const ModelSpec model{.layers = 2, .dim = 4, .heads = 1, .positions = 2, .vocabulary = 3};
  return {index_file(*split_model(model, 2)),
          Bytes::copy_of(std::string_view(R"({"weight_map":{"a":"model.safetensors"}})"))};
}

}  // namespace

const Target weight_index{"weight_index", take, seeds};

}  // namespace shoal::fuzz
