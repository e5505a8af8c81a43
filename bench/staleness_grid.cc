#include "bench/staleness_grid.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace shoal {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "shoal.staleness/1";
constexpr std::uint64_t kShares = 1'000'000;  // a mean is kept to a millionth of a step

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

DelayHistogram around(double mean) {
  const double below = std::floor(mean);
  const auto above = static_cast<std::uint64_t>(std::llround((mean - below) * kShares));
  DelayHistogram delays;
  if (above < kShares) delays.add(static_cast<std::uint64_t>(below), kShares - above);
  if (above > 0) delays.add(static_cast<std::uint64_t>(below) + 1, above);
  return delays;
}

using ArmName = std::pair<std::string, std::string>;  // delay, look-ahead

StalenessBest best_rate(const ArmName& name, const std::map<double, std::vector<double>>& losses_by_rate) {
  StalenessBest best;
  best.delay = name.first;
  best.look_ahead = name.second;
  for (const auto& [lr, losses] : losses_by_rate) {
    double sum = 0;
    for (const double loss : losses) sum += loss;
    const double mean = sum / static_cast<double>(losses.size());
    if (best.seeds > 0 && mean >= best.validation) continue;
    const auto [low, high] = std::minmax_element(losses.begin(), losses.end());
    best.lr = lr;
    best.validation = mean;
    best.lowest = *low;
    best.highest = *high;
    best.seeds = losses.size();
  }
  best.at_edge = losses_by_rate.size() > 1 &&
                 (best.lr == losses_by_rate.begin()->first || best.lr == losses_by_rate.rbegin()->first);
  return best;
}

const StalenessBest* find_arm(const std::vector<StalenessBest>& arms, const std::string& delay) {
  for (const StalenessBest& arm : arms)
    if (arm.delay == delay && arm.look_ahead == "0") return &arm;
  return nullptr;
}

}  // namespace

Result<DelayProfile> delays_of_means(const std::string& text, std::uint16_t stages) {
  std::vector<double> means;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, '/');) {
    const auto mean = number_of(part);
    if (!mean || !(*mean >= 0 && *mean <= DelayHistogram::kBins - 2.0))
      return make_error(ErrorCode::kInput, "--delay " + text + ": \"" + part + "\" is no mean delay from 0 to " +
                                               std::to_string(DelayHistogram::kBins - 2) + " inner steps");
    means.push_back(*mean);
  }
  if (means.size() == 1) means.assign(stages, means.front());
  if (means.size() != stages)
    return make_error(ErrorCode::kInput, "--delay " + text + ": names " + std::to_string(means.size()) +
                                             " stages, the model has " + std::to_string(stages) +
                                             ". HINT: give one mean for all stages, or one a stage");
  DelayProfile profile;
  for (const double mean : means) profile.stages.push_back(around(mean));
  return profile;
}

Result<std::string> staleness_toml(const StalenessSetting& s, const StalenessArm& arm) {
  RunText file = run_text_of("staleness", s, arm.seed);
  file.set("schedule", "warmup_tokens", s.tokens / 8);
  SHOAL_TRY(file.set_all(s.sets));
  file.set("optimizer", "lr", Json(arm.lr).dump());
  file.set("optimizer", "look_ahead", arm.look_ahead);
  return file.text();
}

std::string staleness_key(const std::string& toml, const DelayProfile& profile) {
  return grid_key(toml + delay_profile_text(profile));
}

std::string row_text(const StalenessRow& row) {
  const Json out = {
      {"schema", kSchema}, {"key", row.key},   {"delay", row.delay},           {"look_ahead", row.look_ahead},
      {"lr", row.lr},      {"seed", row.seed}, {"validation", row.validation}, {"seconds", row.seconds}};
  return out.dump() + "\n";
}

std::optional<StalenessRow> parse_row(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto text = [&](const char* key, std::string& out) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_string()) return false;
    out = found->get<std::string>();
    return true;
  };
  const auto number = [&](const char* key, double& out) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number()) return false;
    out = found->get<double>();
    return true;
  };
  StalenessRow row;
  std::string schema;
  double seed = 0;
  const bool whole = text("schema", schema) && schema == kSchema && text("key", row.key) && text("delay", row.delay) &&
                     text("look_ahead", row.look_ahead) && number("lr", row.lr) && number("seed", seed) && seed >= 0 &&
                     number("validation", row.validation) && number("seconds", row.seconds);
  if (!whole) return std::nullopt;
  row.seed = static_cast<std::uint64_t>(seed);
  return row;
}

const StalenessRow* find_row(const std::vector<StalenessRow>& rows, const std::string& key) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const StalenessRow& row) { return row.key == key; });
  return found == rows.end() ? nullptr : &*found;
}

std::vector<StalenessBest> best_of_arms(const std::vector<StalenessRow>& rows) {
  std::vector<ArmName> order;
  std::map<ArmName, std::map<double, std::vector<double>>> losses;
  for (const StalenessRow& row : rows) {
    const ArmName name{row.delay, row.look_ahead};
    if (!losses.contains(name)) order.push_back(name);
    losses[name][row.lr].push_back(row.validation);
  }
  std::vector<StalenessBest> arms;
  for (const ArmName& name : order) arms.push_back(best_rate(name, losses[name]));
  const StalenessBest* fresh = find_arm(arms, "0");
  for (StalenessBest& arm : arms) {
    const StalenessBest* plain = find_arm(arms, arm.delay);
    if (fresh == nullptr || plain == nullptr || plain->validation <= fresh->validation) continue;
    arm.recovered = (plain->validation - arm.validation) / (plain->validation - fresh->validation);
  }
  return arms;
}

std::string staleness_table(const std::vector<StalenessBest>& arms) {
  std::ostringstream out;
  out << std::fixed << std::left << std::setw(20) << "delay (steps)" << std::right << std::setw(11) << "look-ahead"
      << std::setw(12) << "best rate" << std::setw(12) << "validation" << std::setw(18) << "of the seeds"
      << std::setw(11) << "recovered" << '\n';
  bool edges = false;
  for (const StalenessBest& arm : arms) {
    std::ostringstream range;
    range << std::fixed << std::setprecision(4) << arm.lowest << ".." << arm.highest;
    std::ostringstream rate;
    rate << arm.lr << (arm.at_edge ? "*" : "");
    std::ostringstream share;
    if (arm.recovered) share << std::fixed << std::setprecision(0) << *arm.recovered * 100 << " %";
    out << std::left << std::setw(20) << arm.delay << std::right << std::setw(11) << arm.look_ahead << std::setw(12)
        << rate.str() << std::setw(12) << std::setprecision(4) << arm.validation << std::setw(18) << range.str()
        << std::setw(11) << (arm.recovered ? share.str() : "-") << '\n';
    edges |= arm.at_edge;
  }
  if (edges) out << "* the smallest or the largest rate that was tried: a better one may lie beyond it\n";
  return out.str();
}

std::string staleness_json(const std::vector<StalenessBest>& arms) {
  std::string out;
  for (const StalenessBest& arm : arms) {
    Json row = {{"delay", arm.delay},           {"look_ahead", arm.look_ahead}, {"lr", arm.lr},
                {"validation", arm.validation}, {"lowest", arm.lowest},         {"highest", arm.highest},
                {"seeds", arm.seeds},           {"at_edge", arm.at_edge},       {"recovered", nullptr}};
    if (arm.recovered) row["recovered"] = *arm.recovered;
    out += row.dump() + "\n";
  }
  return out;
}

}  // namespace shoal
