#include "stages/torch_family.h"

#include <ATen/core/Tensor.h>

#include "common/check.h"

namespace shoal {
namespace {

std::vector<const TorchFamily*>& families() {
  static std::vector<const TorchFamily*> all{&kGpt2Layers, &kLlamaLayers};
  return all;
}

}  // namespace

ModelFamily register_family(const FamilyRow& row, const TorchFamily& layers) {
  const ModelFamily family = register_family(row);
  SHOAL_CHECK_EQ(static_cast<std::size_t>(family), families().size());
  families().push_back(&layers);
  return family;
}

const TorchFamily& layers_of(ModelFamily family) { return *families().at(static_cast<std::size_t>(family)); }

}  // namespace shoal
