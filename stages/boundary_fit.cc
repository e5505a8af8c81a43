#include "stages/boundary_fit.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/check.h"
#include "stages/boundary.h"
#include "stages/torch_guard.h"
#include "stages/torch_tensors.h"

namespace shoal {
namespace {

constexpr int kTurns = 2;

const at::TensorOptions kFloats = at::TensorOptions().dtype(at::kFloat);
const at::TensorOptions kDoubles = at::TensorOptions().dtype(at::kDouble);

double sum_of(const at::Tensor& values) { return values.sum().item<double>(); }

// (T, d), in the memory of the host tensor, which is not written.
at::Tensor x_of(const SentText& sent, std::size_t i) {
  const HostTensor& tensor = sent.activations[i];
  return at::from_blob(const_cast<std::uint8_t*>(tensor.bytes.data()), tensor.shape, kFloats).flatten(0, 1);
}

at::Tensor inputs_of(const SentText& sent, std::size_t i) {
  return ids_of(sent.tokens[i]).narrow(1, 0, sent.activations[i].shape[1]).flatten();
}

// How often each group was seen (G, 1), and the sum of what was seen of it (G, d).
struct Groups {
  at::Tensor counts, sums;
  Groups(std::int64_t groups, std::int64_t d)
      : counts(at::zeros({groups, 1}, kDoubles)), sums(at::zeros({groups, d}, kDoubles)) {}
  at::Tensor mean() const { return sums.sum(0, true).div(counts.sum()); }
};

// (G, d). `square`: the sum of |x|^2.
at::Tensor credible_means(const Groups& groups, double square) {
  const at::Tensor mean = groups.mean(), means = groups.sums.div(groups.counts.clamp_min(1));
  const double n = sum_of(groups.counts), seen = sum_of(groups.counts.gt(0));
  const double within_all = square - sum_of(means.square().sum(1, true).mul_(groups.counts));
  const double between_all = sum_of(means.sub(mean).square_().sum(1, true).mul_(groups.counts));
  const double within = n > seen ? std::max(0.0, within_all) / (n - seen) : 0;
  const double spread = n - sum_of(groups.counts.square()) / n;
  const double between = spread > 0 ? (between_all - (seen - 1) * within) / spread : 0;
  if (between <= 0) return mean.expand_as(means).contiguous();
  return groups.sums.add(mean, within / between).div_(groups.counts.add(within / between));
}

// What each place adds to the mean, (places, d); 0 where nothing was seen, and in families without places.
at::Tensor place_means(const SentText& sent, std::int64_t places, std::int64_t d) {
  Groups groups(places, d);
  if (places == 0) return groups.sums;
  double square = 0;
  for (std::size_t i = 0; i < sent.activations.size(); ++i) {
    const at::Tensor x = x_of(sent, i).to(at::kDouble);
    groups.sums.narrow(0, 0, x.size(0)).add_(x);
    groups.counts.narrow(0, 0, x.size(0)).add_(1);
    square += sum_of(x.square());
  }
  return credible_means(groups, square).sub_(groups.mean());
}

// Tokens that were seen have rows, in the order of their ids.
struct Tokens {
  at::Tensor seen;     // their ids
  at::Tensor means;    // (seen, d), without the places'
  at::Tensor mean;     // (1, d), of what was not seen
  at::Tensor squares;  // (d, d): S
  at::Tensor given;    // (d, d): B
  at::Tensor counts;   // (seen, 1)
};

Tokens tokens_of(const SentText& sent, const at::Tensor& places, std::int64_t vocabulary, std::int64_t d) {
  at::Tensor counts = at::zeros({vocabulary}, kDoubles);
  for (std::size_t i = 0; i < sent.tokens.size(); ++i) {
    const at::Tensor ids = inputs_of(sent, i);
    counts.index_add_(0, ids, at::ones({ids.size(0)}, kDoubles));
  }
  Tokens tokens{.seen = counts.nonzero().flatten(),
                .means = {},
                .mean = {},
                .squares = at::zeros({d, d}, kDoubles),
                .given = {},
                .counts = {}};
  const at::Tensor row_of_id = counts.gt(0).cumsum(0).sub_(1);
  Groups groups(tokens.seen.size(0), d);
  groups.counts = counts.index_select(0, tokens.seen).view({-1, 1});
  for (std::size_t i = 0; i < sent.tokens.size(); ++i) {
    at::Tensor x = x_of(sent, i).to(at::kDouble);
    if (places.size(0) > 0) x = x.sub(places.narrow(0, 0, x.size(0)));
    groups.sums.index_add_(0, row_of_id.index_select(0, inputs_of(sent, i)), x);
    tokens.squares.addmm_(x.t(), x);
  }
  tokens.means = credible_means(groups, sum_of(tokens.squares.diagonal()));
  tokens.mean = groups.mean();
  tokens.counts = groups.counts;
  const at::Tensor cross = groups.sums.t().mm(tokens.means);
  tokens.given = cross.add(cross.t()).sub_(tokens.means.t().mm(tokens.means.mul(tokens.counts)));
  return tokens;
}

// The directions in which a symmetric matrix is largest, (d, count), the largest first.
at::Tensor principal(const at::Tensor& matrix, std::int64_t count) {
  return std::get<1>(at::linalg_eigh(matrix)).narrow(1, matrix.size(0) - count, count).flip(1).contiguous();
}
// The same among those that are orthogonal to the columns of `taken`.
at::Tensor principal_beside(const at::Tensor& matrix, const at::Tensor& taken, std::int64_t count) {
  const at::Tensor left = matrix.sub(taken.mm(taken.t().mm(matrix)));
  return principal(left.sub(left.mm(taken).mm(taken.t())), count);
}
double along(const at::Tensor& matrix, const at::Tensor& columns) { return sum_of(columns.mul(matrix.mm(columns))); }

struct Directions {
  at::Tensor u, p;  // (d, k), (d, r); p undefined: none, or all
};

// From the u that is best alone, the one that is best beside all means, and the one beside the p that is best alone.
Directions best_directions(const Tokens& tokens, std::int64_t k, std::int64_t r, std::int64_t d) {
  if (r == 0) return {principal(tokens.squares, k), {}};
  const at::Tensor beside_all = principal(tokens.squares.sub(tokens.given), k);
  if (r == d) return {beside_all, {}};
  Directions best;
  double most = -1;
  for (const at::Tensor& first :
       {principal(tokens.squares, k), beside_all, principal_beside(tokens.squares, principal(tokens.given, r), k)}) {
    Directions found{.u = first, .p = {}};
    for (int turn = 0; turn < kTurns; ++turn) {
      if (turn > 0) found.u = principal_beside(tokens.squares, found.p, k);
      found.p = principal_beside(tokens.given, found.u, r);
    }
    const double kept = along(tokens.squares, found.u) + along(tokens.given, found.p);
    if (kept > most) best = found;
    most = std::max(most, kept);
  }
  return best;
}

std::vector<float> values_of(const at::Tensor& tensor) {
  const at::Tensor floats = tensor.to(at::kFloat).contiguous();
  const std::span<const float> values = floats_of(floats);
  return {values.begin(), values.end()};
}

// (V, r): of what was not seen the row of the mean.
at::Tensor table_of(const Tokens& tokens, const Directions& directions, std::int64_t vocabulary) {
  const auto row = [&](const at::Tensor& means) {
    const at::Tensor outside = means.sub(means.mm(directions.u).mm(directions.u.t()));
    return (directions.p.defined() ? outside.mm(directions.p) : outside).to(at::kFloat);
  };
  at::Tensor table = row(tokens.mean).repeat({vocabulary, 1});
  return table.index_copy_(0, tokens.seen, row(tokens.means));
}

CutParameters fit(const ModelSpec& model, std::uint32_t layer, const SentText& sent) {
  const std::int64_t d = model.dim, r = model.boundary_table;
  const at::Tensor places = place_means(sent, row_of(model.family).learns_places ? model.context_length() : 0, d);
  const Tokens tokens = tokens_of(sent, places, model.vocabulary, d);
  const Directions directions = best_directions(tokens, model.boundary, r, d);
  std::vector<std::vector<float>> up{values_of(directions.u)};
  if (r > 0) up.push_back(values_of(table_of(tokens, directions, model.vocabulary)));
  if (directions.p.defined()) up.push_back(values_of(directions.p));
  if (places.size(0) > 0) up.push_back(values_of(places.sub(places.mm(directions.u).mm(directions.u.t()))));
  const std::vector<ParameterSpec> specs = up_of(model, layer);
  SHOAL_CHECK_EQ(up.size(), specs.size());
  CutParameters cut{{down_of(model, layer - 1).front().name, values_of(directions.u.t())}};
  for (std::size_t i = 0; i < specs.size(); ++i) {
    SHOAL_CHECK_EQ(up[i].size(), static_cast<std::size_t>(element_count(specs[i].shape)));
    cut[specs[i].name] = std::move(up[i]);
  }
  return cut;
}

double carry(const ModelSpec& model, std::uint32_t layer, const CutParameters& cut, SentText& sent) {
  const auto matrix = [&cut](const ParameterSpec& parameter) {
    return at::from_blob(const_cast<float*>(cut.at(parameter.name).data()), parameter.shape, kFloats);
  };
  std::vector<at::Tensor> up;
  for (const ParameterSpec& parameter : up_of(model, layer)) up.push_back(matrix(parameter));
  const at::Tensor down = matrix(down_of(model, layer - 1).front());
  const bool has_product = model.boundary_table > 0 && model.boundary_table < model.dim;
  Groups all(1, model.dim);
  double lost = 0, square = 0;
  for (std::size_t i = 0; i < sent.activations.size(); ++i) {
    const at::Tensor x = x_of(sent, i);
    at::Tensor y = x.mm(down.t()).mm(up[0].t());
    if (model.boundary_table > 0) {
      const at::Tensor rows = at::embedding(up[1], inputs_of(sent, i));
      y.add_(has_product ? rows.mm(up[2].t()) : rows);
    }
    if (row_of(model.family).learns_places) y.add_(up.back().narrow(0, 0, x.size(0)));
    const at::Tensor exact = x.to(at::kDouble);
    lost += sum_of(exact.sub(y).square_());
    square += sum_of(exact.square());
    all.sums.add_(exact.sum(0, true));
    all.counts.add_(static_cast<double>(x.size(0)));
    sent.activations[i] = host_tensor_of(y.view(sent.activations[i].shape));
  }
  const double variance = square - sum_of(all.mean().square()) * sum_of(all.counts);
  return variance > 0 ? 1 - lost / variance : 1;
}

}  // namespace

Result<CutParameters> fit_cut(const ModelSpec& model, std::uint32_t layer, const SentText& sent) {
  SHOAL_CHECK(model.cut_at(layer) && !sent.tokens.empty() && sent.tokens.size() == sent.activations.size());
  return guard_torch([&]() -> Result<CutParameters> { return fit(model, layer, sent); });
}

Result<double> cross_cut(const ModelSpec& model, std::uint32_t layer, const CutParameters& cut, SentText& sent) {
  return guard_torch([&]() -> Result<double> { return carry(model, layer, cut, sent); });
}

std::uint64_t fit_bytes(const ModelSpec& model, std::uint64_t tokens) {
  const std::uint64_t d = model.dim, seen = std::min<std::uint64_t>(model.vocabulary, tokens);
  const std::uint64_t places = row_of(model.family).learns_places ? model.context_length() : 0;
  // Sums, means and two of what credible_means() makes of them; S, B, an eigensystem and two products; a cut's halves,
  // as tensors and as values.
  return 8 * d * (4 * (seen + places) + 7 * d) +
         8 * (std::uint64_t{model.vocabulary} * model.boundary_table + 2 * d * d);
}

}  // namespace shoal
