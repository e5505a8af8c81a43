#include "stages/boundary_fit.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <tuple>

#include "common/check.h"
#include "stages/boundary.h"
#include "stages/torch_guard.h"
#include "stages/torch_tensors.h"

namespace shoal {
namespace {

const at::TensorOptions kFloats = at::TensorOptions().dtype(at::kFloat);
const at::TensorOptions kDoubles = at::TensorOptions().dtype(at::kDouble);

double sum_of(const at::Tensor& values) { return values.sum().item<double>(); }

// What was sent, a microbatch at a time: x (B * T, d), ids (B * T), place by place.
struct Sent {
  std::span<HostTensor> activations;
  std::span<const HostTensor> tokens;

  std::size_t count() const { return activations.size(); }
  std::int64_t sequence(std::size_t i) const { return activations[i].shape[1]; }
  // In the memory of the host tensor, which is not written.
  at::Tensor x(std::size_t i) const {
    const HostTensor& tensor = activations[i];
    return at::from_blob(const_cast<std::uint8_t*>(tensor.bytes.data()), tensor.shape, kFloats).flatten(0, 1);
  }
  at::Tensor ids(std::size_t i) const { return ids_of(tokens[i]).narrow(1, 0, sequence(i)).flatten(); }
};

// What each place adds to the mean, (places, d); zeros where nothing was seen, and without places.
at::Tensor place_means(const Sent& sent, std::int64_t places, std::int64_t d) {
  at::Tensor sums = at::zeros({places, d}, kFloats), counts = at::zeros({places, 1}, kFloats);
  if (places == 0) return sums;
  for (std::size_t i = 0; i < sent.count(); ++i) {
    const at::Tensor x = sent.x(i).view({-1, sent.sequence(i), d});
    sums.narrow(0, 0, sent.sequence(i)).add_(x.sum(0));
    counts.narrow(0, 0, sent.sequence(i)).add_(static_cast<double>(x.size(0)));
  }
  const at::Tensor seen = counts.gt(0);
  const at::Tensor mean = sums.sum(0, true).div(counts.sum());
  return sums.div(counts.clamp_min(1)).sub(mean).mul(seen);
}

struct Statistics {
  at::Tensor counts;   // (V, 1), of x without its place's mean
  at::Tensor sums;     // (V, d)
  at::Tensor squares;  // (d, d), double: sum of x x^T
};

at::Tensor without_place(const Sent& sent, std::size_t i, const at::Tensor& places) {
  const at::Tensor x = sent.x(i);
  if (places.size(0) == 0) return x;
  return x.view({-1, sent.sequence(i), x.size(1)}).sub(places.narrow(0, 0, sent.sequence(i))).flatten(0, 1);
}

Statistics statistics_of(const Sent& sent, const at::Tensor& places, std::int64_t vocabulary, std::int64_t d) {
  Statistics found{at::zeros({vocabulary, 1}, kDoubles), at::zeros({vocabulary, d}, kFloats),
                   at::zeros({d, d}, kDoubles)};
  for (std::size_t i = 0; i < sent.count(); ++i) {
    const at::Tensor x = without_place(sent, i, places), ids = sent.ids(i);
    found.counts.index_add_(0, ids, at::zeros({x.size(0), 1}, kDoubles).add_(1));
    found.sums.index_add_(0, ids, x);
    found.squares.add_(x.t().mm(x));
  }
  return found;
}

// (V, d): the mean of each token, drawn towards that of all by how little tokens tell.
at::Tensor token_means(const Statistics& found) {
  const at::Tensor sums = found.sums.to(at::kDouble), counts = found.counts;
  const double n = sum_of(counts), seen = sum_of(counts.gt(0));
  const at::Tensor mean = sums.sum(0, true).div(n), means = sums.div(counts.clamp_min(1));
  const double within_all = sum_of(found.squares.diagonal()) - sum_of(means.square().mul(counts));
  const double between_all = sum_of(means.sub(mean).square().mul(counts));
  const double within = n > seen ? std::max(0.0, within_all) / (n - seen) : 0;
  const double spread = n - sum_of(counts.square()) / n;
  const double between = spread > 0 ? (between_all - (seen - 1) * within) / spread : 0;
  if (between <= 0) return mean.expand_as(means).to(at::kFloat).contiguous();
  return sums.add(mean, within / between).div(counts.add(within / between)).to(at::kFloat);
}

// The directions in which a symmetric matrix is largest, (d, count), the largest first.
at::Tensor principal(const at::Tensor& matrix, std::int64_t count) {
  const at::Tensor vectors = std::get<1>(at::linalg_eigh(matrix));
  return vectors.narrow(1, matrix.size(0) - count, count).flip(1).to(at::kFloat).contiguous();
}

// (d, d): the sum of r r^T, r what is left of x without its token's mean.
at::Tensor left_of(const Statistics& found, const at::Tensor& means) {
  const at::Tensor seen = found.counts.flatten().nonzero().flatten();
  const at::Tensor sums = found.sums.index_select(0, seen).to(at::kDouble);
  const at::Tensor m = means.index_select(0, seen).to(at::kDouble);
  const at::Tensor cross = sums.t().mm(m);
  return found.squares.sub(cross).sub(cross.t()).add(m.t().mm(m.mul(found.counts.index_select(0, seen))));
}

at::Tensor outside_of(const at::Tensor& rows, const at::Tensor& u) { return rows.sub(rows.mm(u).mm(u.t())); }

struct Halves {
  at::Tensor u, table, table_up, places;  // undefined: the cut has none
};

Halves halves_of(const ModelSpec& model, const Statistics& found, const at::Tensor& means, const at::Tensor& places) {
  const std::int64_t d = model.dim, r = model.boundary_table;
  Halves halves{.u = principal(left_of(found, means), model.boundary), .table = {}, .table_up = {}, .places = {}};
  const at::Tensor given_back = outside_of(means, halves.u);
  if (places.size(0) > 0) halves.places = outside_of(places, halves.u);
  if (r == d) halves.table = given_back;
  if (r > 0 && r < d) {
    const at::Tensor rows = given_back.to(at::kDouble);
    halves.table_up = principal(rows.t().mm(rows.mul(found.counts)), r);
    halves.table = given_back.mm(halves.table_up);
  }
  return halves;
}

at::Tensor across(const Halves& halves, const at::Tensor& x, const at::Tensor& ids, std::int64_t sequence) {
  at::Tensor y = x.mm(halves.u).mm(halves.u.t());
  if (halves.table.defined()) {
    const at::Tensor rows = at::embedding(halves.table, ids);
    y.add_(halves.table_up.defined() ? rows.mm(halves.table_up.t()) : rows);
  }
  if (halves.places.defined()) y.view({-1, sequence, x.size(1)}).add_(halves.places.narrow(0, 0, sequence));
  return y;
}

std::vector<float> values_of(const at::Tensor& tensor) {
  const at::Tensor own = tensor.contiguous();
  const std::span<const float> floats = floats_of(own);
  return {floats.begin(), floats.end()};
}

FittedCut fit(const ModelSpec& model, std::uint32_t layer, const Sent& sent) {
  const std::int64_t d = model.dim;
  const std::int64_t places = row_of(model.family).learns_places ? model.context_length() : 0;
  const at::Tensor by_place = place_means(sent, places, d);
  const Statistics found = statistics_of(sent, by_place, model.vocabulary, d);
  const at::Tensor means = model.boundary_table > 0 ? token_means(found) : at::zeros_like(found.sums);
  const Halves halves = halves_of(model, found, means, by_place);
  const at::Tensor mean = found.sums.to(at::kDouble).sum(0).div(found.counts.sum()).to(at::kFloat);
  double lost = 0, all = 0;
  for (std::size_t i = 0; i < sent.count(); ++i) {
    const at::Tensor x = sent.x(i), y = across(halves, x, sent.ids(i), sent.sequence(i));
    lost += sum_of(x.sub(y).square());
    all += sum_of(x.sub(mean).square());
    sent.activations[i] = host_tensor_of(y.view(sent.activations[i].shape));
  }
  FittedCut cut{.parameters = {}, .kept = all > 0 ? 1 - lost / all : 1};
  const std::vector<at::Tensor> behind{halves.u, halves.table, halves.table_up, halves.places};
  cut.parameters[down_of(model, layer - 1).front().name] = values_of(halves.u.t());
  auto value = behind.begin();
  for (const ParameterSpec& parameter : up_of(model, layer)) {
    while (!value->defined()) ++value;
    cut.parameters[parameter.name] = values_of(*value++);
    SHOAL_CHECK_EQ(cut.parameters[parameter.name].size(), static_cast<std::size_t>(element_count(parameter.shape)));
  }
  return cut;
}

}  // namespace

Result<FittedCut> fit_cut(const ModelSpec& model, std::uint32_t layer, std::span<HostTensor> sent,
                          std::span<const HostTensor> tokens) {
  SHOAL_CHECK(model.cut_at(layer) && !sent.empty() && sent.size() == tokens.size());
  return guard_torch([&]() -> Result<FittedCut> { return fit(model, layer, {sent, tokens}); });
}

}  // namespace shoal
