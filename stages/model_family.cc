#include "stages/model_family.h"

#include "common/check.h"

namespace shoal {
namespace {

struct Families {
  std::vector<const FamilyRow*> rows{&kGpt2Family, &kLlamaFamily};
  std::vector<std::string_view> names{kGpt2Family.name, kLlamaFamily.name};
};

Families& families() {
  static Families all;
  return all;
}

}  // namespace

ModelFamily register_family(const FamilyRow& row) {
  Families& all = families();
  SHOAL_CHECK(std::ranges::find(all.names, row.name) == all.names.end());
  all.rows.push_back(&row);
  all.names.push_back(row.name);
  return static_cast<ModelFamily>(all.rows.size() - 1);
}

std::span<const std::string_view> family_names() { return families().names; }

const FamilyRow& row_of(ModelFamily family) { return *families().rows.at(static_cast<std::size_t>(family)); }

}  // namespace shoal
