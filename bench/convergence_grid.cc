#include "bench/convergence_grid.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "compression/codec.h"

namespace shoal {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "shoal.convergence/1";
constexpr std::string_view kPhaseNames[] = {"train", "fine-tune"};

Result<std::string> wire_name(const std::string& name, const std::string& all) {
  if (codec_named(name)) return name;
  std::string names;
  for (const std::string_view known : kCodecNames) names += (names.empty() ? "" : ", ") + std::string(known);
  return make_error(ErrorCode::kInput, "--codec " + all + ": \"" + name + "\" is none of " + names);
}

std::vector<LossPoint> curve_of(const Json& json) {
  std::vector<LossPoint> curve;
  for (const auto& point : json) curve.push_back({point.at(0), point.at(1), point.at(2)});
  return curve;
}

// The points of a training's event lines: an estimate behind the train lines that it is of.
std::vector<LossPoint> points_of(std::string_view events) {
  std::vector<LossPoint> curve;
  double tokens = 0, losses = 0, steps = 0;  // the last two since the last point
  std::istringstream lines{std::string(events)};
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    const std::string kind = json.value("event", "");
    if (kind == "train") {
      losses += json.value("loss", 0.0);
      ++steps;
      tokens = json.value("targets", 0.0);
    } else if ((kind == "estimate" || kind == "validation") && steps > 0) {
      curve.push_back({tokens, json.value("loss", 0.0), losses / steps});
      losses = steps = 0;
    }
  }
  return curve;
}

}  // namespace

std::string_view name_of(ConvergencePhase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

Result<CodecPair> codec_pair(const std::string& text) {
  const std::size_t slash = text.find('/');
  SHOAL_ASSIGN(std::string forward, wire_name(text.substr(0, slash), text));
  SHOAL_ASSIGN(std::string backward, wire_name(slash == std::string::npos ? text : text.substr(slash + 1), text));
  if (is_delta(*codec_named(backward)))
    return make_error(ErrorCode::kInput, "--codec " + text + ": " + backward +
                                             " sends differences of activations. HINT: --codec " + forward + "/int8");
  return CodecPair{std::move(forward), std::move(backward)};
}

std::vector<ConvergenceArm> convergence_arms(const ConvergenceSetting& setting, const std::vector<CodecPair>& codecs,
                                             const std::vector<std::uint64_t>& seeds) {
  std::vector<ConvergenceArm> arms;
  for (const ConvergencePhase phase : {ConvergencePhase::kTrain, ConvergencePhase::kFineTune}) {
    if (phase == ConvergencePhase::kFineTune && setting.tune_text.empty()) continue;
    for (const std::uint64_t seed : seeds)
      for (const CodecPair& pair : codecs) arms.push_back({phase, pair, seed});
  }
  return arms;
}

Result<std::string> convergence_toml(const ConvergenceSetting& s, const ConvergenceArm& arm, const std::string& from) {
  const bool tuned = arm.phase == ConvergencePhase::kFineTune;
  const std::uint64_t tokens = tuned ? s.tune_tokens : s.tokens;
  RunText file = run_text_of("convergence", s, arm.seed);
  file.set("data", "validate_every", std::max<std::uint64_t>(1, tokens / s.inner_batch / s.points));
  file.set("pipeline", "replicas", 1);
  if (tuned) {
    file.set_text("data", "path", s.tune_text);
    file.set("end", "tokens", tokens);
    file.set("optimizer", "lr", Json(s.tune_lr).dump());
  }
  SHOAL_TRY(file.set_all(s.sets));
  if (tuned) {  // its shapes are the folder's
    for (const char* shape : {"layers", "dim", "heads"}) file.remove("model", shape);
    file.set_text("model", "from", from);
  }
  file.set_text("wire", "forward", arm.codecs.forward);
  file.set_text("wire", "backward", arm.codecs.backward);
  return file.text();
}

Result<std::string> convergence_key(const ConvergenceSetting& setting, const ConvergenceArm& arm) {
  std::string from;
  if (arm.phase == ConvergencePhase::kFineTune) {
    SHOAL_ASSIGN(from, convergence_key(setting, {ConvergencePhase::kTrain, kUncoded, arm.seed}));
  }
  SHOAL_ASSIGN(const std::string toml, convergence_toml(setting, arm, from));
  return grid_key(toml);
}

std::vector<std::array<double, 3>> numbers_of(const std::vector<LossPoint>& curve) {
  std::vector<std::array<double, 3>> out;
  for (const LossPoint& point : curve) out.push_back({point.tokens, point.validation, point.train});
  return out;
}

std::string convergence_row_text(const ConvergenceRow& row) {
  const Json out = {{"schema", kSchema},
                    {"key", row.key},
                    {"phase", name_of(row.arm.phase)},
                    {"text", row.text},
                    {"forward", row.arm.codecs.forward},
                    {"backward", row.arm.codecs.backward},
                    {"seed", row.arm.seed},
                    {"tokens", row.tokens},
                    {"validation", row.validation},
                    {"train_loss", row.train_loss},
                    {"forward_bytes", row.forward_bytes},
                    {"backward_bytes", row.backward_bytes},
                    {"key_frames", row.key_frames},
                    {"delta_frames", row.delta_frames},
                    {"curve", numbers_of(row.curve)},
                    {"seconds", row.seconds}};
  return out.dump() + "\n";
}

std::optional<ConvergenceRow> parse_convergence_row(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    if (json.at("schema") != kSchema) return std::nullopt;
    const auto phase = std::ranges::find(kPhaseNames, json.at("phase").get<std::string>());
    if (phase == std::end(kPhaseNames)) return std::nullopt;
    ConvergenceRow row;
    row.key = json.at("key");
    row.text = json.at("text");
    row.arm = {static_cast<ConvergencePhase>(phase - std::begin(kPhaseNames)),
               {json.at("forward"), json.at("backward")},
               json.at("seed")};
    row.tokens = json.at("tokens");
    row.validation = json.at("validation");
    row.train_loss = json.at("train_loss");
    row.forward_bytes = json.at("forward_bytes");
    row.backward_bytes = json.at("backward_bytes");
    row.key_frames = json.at("key_frames");
    row.delta_frames = json.at("delta_frames");
    row.curve = curve_of(json.at("curve"));
    row.seconds = json.at("seconds");
    return row;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

Result<ConvergenceRow> convergence_row(const std::string& solo_json, std::string_view events) {
  const Json json = Json::parse(solo_json, nullptr, false);
  try {
    ConvergenceRow row;
    row.tokens = json.at("tokens");
    row.validation = json.at("val_loss");
    row.train_loss = json.at("loss_end");
    const Json& wire = json.at("wire");
    const double tokens = static_cast<double>(std::max<std::uint64_t>(row.tokens, 1));
    row.forward_bytes = wire.at("forward_bytes").get<double>() / tokens;
    row.backward_bytes = wire.at("backward_bytes").get<double>() / tokens;
    row.key_frames = wire.at("key_frames");
    row.delta_frames = wire.at("delta_frames");
    row.curve = points_of(events);
    return row;
  } catch (const Json::exception& error) {
    return make_error(ErrorCode::kMalformed, std::string("what solo printed is no result: ") + error.what());
  }
}

}  // namespace shoal
