#include "stages/torch_boundary.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>

#include "common/check.h"
#include "stages/boundary.h"

namespace shoal {
namespace {

using Weights = std::span<const Weight>;

// x (B, T, in) -> (B * T, out), added up in the type of x whatever the product is computed in.
at::Tensor product(const at::Tensor& x, const Weight& matrix) {
  return linear(x.view({x.size(0) * x.size(1), x.size(2)}), MatrixForm::kOutputFirst, matrix).to(x.scalar_type());
}

// E[token], (B, T, r). Its gradient, as large as the table, is a late one: no hop waits for it.
at::Tensor rows_of(const Weight& table, const at::Tensor& ids) {
  const at::Tensor rows = at::embedding(*table, ids);
  if (table.late != nullptr && table.place)
    table.late->add(rows, *table.place, [ids, count = (*table).size(0)](const at::Tensor& g) {
      return at::embedding_dense_backward(g, ids, count, -1, false);
    });
  return rows;
}

// z (B, T, k) -> y (B, T, d). w: U, E, P where r < d, Q where the family learns its places.
at::Tensor up(const ModelSpec& model, const at::Tensor& z, const at::Tensor& ids, const TokenPlaces& places,
              Weights w) {
  const std::int64_t d = model.dim, r = model.boundary_table;
  at::Tensor y = product(z, w[0]).view({z.size(0), z.size(1), d});
  if (r > 0) {
    const at::Tensor rows = rows_of(w[1], ids);
    y = y.add(r < d ? product(rows, w[2]).view_as(y) : rows);
  }
  return row_of(model.family).learns_places ? y.add((*w.back()).narrow(0, places.first, z.size(1))) : y;
}

}  // namespace

at::Tensor run_part(const ModelSpec& model, std::uint32_t part, const at::Tensor& x, const at::Tensor& ids,
                    const TokenPlaces& places, std::span<const Weight> weights, LayerCache* cache) {
  const TorchModule module = layers_of(model.family).module(model, part);
  if (part == 0 || !has_boundary(model)) return module(model, x, places, weights, cache);
  const std::uint32_t layer = part - 1;
  const std::size_t in_front = up_of(model, layer).size(), behind = down_of(model, layer).size();
  SHOAL_CHECK(weights.size() > in_front + behind);
  const at::Tensor read = in_front > 0 ? up(model, x, ids, places, weights.first(in_front)) : x;
  const Weights own = weights.subspan(in_front, weights.size() - in_front - behind);
  const at::Tensor made = module(model, read, places, own, cache);
  if (behind == 0) return made;
  return product(made, weights.back()).view({made.size(0), made.size(1), std::int64_t{model.boundary}});
}

}  // namespace shoal
