#include "bench/convergence_means.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

namespace shoal {
namespace {

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// That of a sample, n - 1 in the denominator. REQUIRES: two values or more.
double deviation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

using Rows = std::vector<const ConvergenceRow*>;

template <class Value>
std::vector<double> all_of(const Rows& rows, Value value) {
  std::vector<double> values;
  for (const ConvergenceRow* row : rows) values.push_back(value(*row));
  return values;
}

std::vector<LossPoint> mean_curve(const Rows& rows) {
  std::size_t length = rows.front()->curve.size();
  for (const ConvergenceRow* row : rows) length = std::min(length, row->curve.size());
  std::vector<LossPoint> curve;
  for (std::size_t i = 0; i < length; ++i)
    curve.push_back({mean_of(all_of(rows, [&](const auto& row) { return row.curve[i].tokens; })),
                     mean_of(all_of(rows, [&](const auto& row) { return row.curve[i].validation; })),
                     mean_of(all_of(rows, [&](const auto& row) { return row.curve[i].train; }))});
  return curve;
}

ConvergenceMean mean_row(const Rows& rows) {
  const ConvergenceRow& first = *rows.front();
  ConvergenceMean mean;
  mean.phase = first.arm.phase;
  mean.text = first.text;
  mean.codecs = first.arm.codecs;
  mean.tokens = first.tokens;
  mean.seeds = rows.size();
  const std::vector<double> losses = all_of(rows, [](const auto& row) { return row.validation; });
  mean.validation = mean_of(losses);
  mean.lowest = *std::ranges::min_element(losses);
  mean.highest = *std::ranges::max_element(losses);
  mean.train_loss = mean_of(all_of(rows, [](const auto& row) { return row.train_loss; }));
  mean.forward_bytes = mean_of(all_of(rows, [](const auto& row) { return row.forward_bytes; }));
  mean.backward_bytes = mean_of(all_of(rows, [](const auto& row) { return row.backward_bytes; }));
  std::uint64_t deltas = 0, frames = 0;
  for (const ConvergenceRow* row : rows) deltas += row->delta_frames, frames += row->delta_frames + row->key_frames;
  mean.delta_share = frames == 0 ? 0 : static_cast<double>(deltas) / static_cast<double>(frames);
  mean.curve = mean_curve(rows);
  return mean;
}

const ConvergenceRow* of_seed(const Rows& rows, std::uint64_t seed) {
  const auto found = std::ranges::find_if(rows, [&](const ConvergenceRow* row) { return row->arm.seed == seed; });
  return found == rows.end() ? nullptr : *found;
}

std::optional<ConvergenceMean::Beside> beside(const Rows& rows, const Rows& uncoded) {
  if (rows.size() != uncoded.size()) return std::nullopt;
  std::vector<double> apart;
  for (const ConvergenceRow* row : rows) {
    const ConvergenceRow* same = of_seed(uncoded, row->arm.seed);
    if (same == nullptr) return std::nullopt;
    apart.push_back(row->validation - same->validation);
  }
  const std::vector<double> losses = all_of(uncoded, [](const auto& row) { return row.validation; });
  ConvergenceMean::Beside out;
  out.apart = mean_of(apart);
  out.apart_least = *std::ranges::min_element(apart);
  out.apart_most = *std::ranges::max_element(apart);
  out.ratio = (mean_of(losses) + out.apart) / mean_of(losses);
  if (const double deviation = losses.size() < 2 ? 0 : deviation_of(losses); deviation > 0) {
    out.sigmas = out.apart / deviation;
    out.within_noise = std::abs(*out.sigmas) <= kNoiseSigmas;
  }
  return out;
}

std::string signed_text(double value, int digits) {
  std::ostringstream out;
  out << std::showpos << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

}  // namespace

std::vector<ConvergenceMean> convergence_means(const std::vector<ConvergenceRow>& rows) {
  std::vector<Rows> groups;
  const auto group_of = [&](ConvergencePhase phase, const CodecPair& codecs) {
    return std::ranges::find_if(groups, [&](const Rows& group) {
      return group.front()->arm.phase == phase && group.front()->arm.codecs == codecs;
    });
  };
  for (const ConvergenceRow& row : rows) {
    const auto group = group_of(row.arm.phase, row.arm.codecs);
    group == groups.end() ? groups.push_back({&row}) : group->push_back(&row);
  }
  std::vector<ConvergenceMean> means;
  for (const Rows& group : groups) {
    means.push_back(mean_row(group));
    const auto uncoded = group_of(means.back().phase, kUncoded);
    if (uncoded != groups.end()) means.back().beside = beside(group, *uncoded);
  }
  return means;
}

std::string convergence_table(const std::vector<ConvergenceMean>& means) {
  std::ostringstream out;
  const auto cell = [&](const std::string& text, int width) { out << std::right << std::setw(width) << text; };
  const auto number = [](double value, int digits) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(digits) << value;
    return text.str();
  };
  for (std::size_t i = 0; i < means.size(); ++i) {
    const ConvergenceMean& mean = means[i];
    if (i == 0 || means[i - 1].phase != mean.phase) {
      out << (i == 0 ? "" : "\n") << name_of(mean.phase) << ": " << mean.text << ", " << mean.tokens << " tokens, "
          << mean.seeds << (mean.seeds == 1 ? " seed" : " seeds") << '\n'
          << std::left << std::setw(15) << "forward" << std::setw(15) << "backward";
      for (const auto& [head, width] :
           {std::pair("bytes", 7), std::pair("deltas", 8), std::pair("validation", 12), std::pair("of the seeds", 16),
            std::pair("ratio", 8), std::pair("apart", 9), std::pair("sigmas", 8), std::pair("noise", 7)})
        cell(head, width);
      out << '\n';
    }
    out << std::left << std::setw(15) << mean.codecs.forward << std::setw(15) << mean.codecs.backward;
    cell(number(mean.forward_bytes + mean.backward_bytes, 0), 7);
    cell(mean.delta_share > 0 ? number(100 * mean.delta_share, 0) + " %" : "-", 8);
    cell(number(mean.validation, 4), 12);
    cell(number(mean.lowest, 4) + ".." + number(mean.highest, 4), 16);
    const auto& beside = mean.beside;
    cell(beside ? number(beside->ratio, 4) : "-", 8);
    cell(beside ? signed_text(beside->apart, 4) : "-", 9);
    cell(beside && beside->sigmas ? signed_text(*beside->sigmas, 1) : "-", 8);
    cell(beside && beside->within_noise ? (*beside->within_noise ? "yes" : "no") : "-", 7);
    out << '\n';
  }
  out << "bytes: between stages, a text token, both ways; deltas: activations sent as differences; apart: from raw of\n"
         "the same seed, mean; sigmas: of raw's seeds; noise: at most "
      << kNoiseSigmas << " of these apart\n";
  return out.str();
}

std::string convergence_json(const std::vector<ConvergenceMean>& means) {
  std::string out;
  for (const ConvergenceMean& mean : means) {
    nlohmann::ordered_json row = {{"phase", name_of(mean.phase)},
                                  {"text", mean.text},
                                  {"forward", mean.codecs.forward},
                                  {"backward", mean.codecs.backward},
                                  {"tokens", mean.tokens},
                                  {"seeds", mean.seeds},
                                  {"validation", mean.validation},
                                  {"lowest", mean.lowest},
                                  {"highest", mean.highest},
                                  {"train_loss", mean.train_loss},
                                  {"forward_bytes", mean.forward_bytes},
                                  {"backward_bytes", mean.backward_bytes},
                                  {"delta_share", mean.delta_share},
                                  {"ratio", nullptr},
                                  {"apart", nullptr},
                                  {"apart_least", nullptr},
                                  {"apart_most", nullptr},
                                  {"sigmas", nullptr},
                                  {"within_noise", nullptr},
                                  {"curve", numbers_of(mean.curve)}};
    if (const auto& beside = mean.beside) {
      row["ratio"] = beside->ratio;
      row["apart"] = beside->apart;
      row["apart_least"] = beside->apart_least;
      row["apart_most"] = beside->apart_most;
      if (beside->sigmas) row["sigmas"] = *beside->sigmas;
      if (beside->within_noise) row["within_noise"] = *beside->within_noise;
    }
    out += row.dump() + "\n";
  }
  return out;
}

}  // namespace shoal
