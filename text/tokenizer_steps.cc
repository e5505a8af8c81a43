#include "text/tokenizer_steps.h"

#include <map>
#include <nlohmann/json.hpp>

#include "text/utf8.h"

namespace shoal {
namespace {

using Json = nlohmann::json;

// GPT-2's pattern (Radford et al. 2019): endings, letters, digits, other signs, each with the space before it.
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

Error unsupported(const std::string& key, const Json& value) {
  return make_error(ErrorCode::kUnsupported,
                    "\"" + key + "\" is " + value.dump(-1, ' ', true).substr(0, 200) + ", which shoal does not have");
}
Error malformed(const std::string& key, const std::string& what) {
  return make_error(ErrorCode::kMalformed, "\"" + key + "\" " + what);
}

const Json& member(const Json& object, const char* key) {
  static const Json none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

Result<std::string> text_member(const std::string& section, const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (!value.is_string()) return malformed(section, std::string("has no text \"") + key + "\"");
  return value.get<std::string>();
}

Result<bool> flag_member(const std::string& section, const Json& object, const char* key, bool otherwise) {
  const Json& value = member(object, key);
  if (value.is_null()) return otherwise;
  if (!value.is_boolean()) return malformed(section, std::string("has \"") + key + "\" that is neither true nor false");
  return value.get<bool>();
}

Result<Json> parse_value(const std::string& section, const std::string& json) {
  Json value = Json::parse(json, nullptr, false);
  if (value.is_discarded() || (!value.is_null() && !value.is_object())) return malformed(section, "is no object");
  return value;
}

// The steps of a section with its sequences laid out flat. `list` is the key of a sequence's steps.
Status flatten(const std::string& section, const Json& value, const char* list, int depth, std::vector<Json>& steps) {
  if (value.is_null()) return Status::success();
  if (!value.is_object()) return malformed(section, "has a step that is no object");
  SHOAL_ASSIGN(const std::string type, text_member(section, value, "type"));
  if (type != "Sequence") {
    steps.push_back(value);
    if (steps.size() > kStepsMax) return make_error(ErrorCode::kTooLarge, "\"" + section + "\" has too many steps");
    return Status::success();
  }
  if (depth == kNestingMax) return make_error(ErrorCode::kTooLarge, "\"" + section + "\" is nested too deep");
  const Json& inner = member(value, list);
  if (!inner.is_array()) return malformed(section, std::string("has a Sequence without \"") + list + "\"");
  for (const Json& step : inner) SHOAL_TRY(flatten(section, step, list, depth + 1, steps));
  return Status::success();
}

Result<std::vector<Json>> steps_of(const std::string& section, const std::string& json, const char* list) {
  SHOAL_ASSIGN(const Json value, parse_value(section, json));
  std::vector<Json> steps;
  SHOAL_TRY(flatten(section, value, list, 0, steps));
  return steps;
}

Error in_section(const std::string& section, const Error& error) {
  return make_error(error.code, "\"" + section + "\": " + error.message);
}

// {"String": ...} alone; what else there is has no equal here.
Result<ReplaceText> read_replace(const std::string& section, const Json& step) {
  const Json& pattern = member(step, "pattern");
  if (!pattern.is_object() || !member(pattern, "String").is_string()) return unsupported(section, step);
  SHOAL_ASSIGN(const std::string to, text_member(section, step, "content"));
  const auto from = pattern.at("String").get<std::string>();
  if (from.empty()) return malformed(section, "replaces an empty text");
  return ReplaceText{from, to};
}

Result<NormalStep> read_normal_step(const Json& step) {
  static const std::map<std::string, NormalForm> forms = {
      {"NFC", NormalForm::kNfc}, {"NFD", NormalForm::kNfd}, {"NFKC", NormalForm::kNfkc}, {"NFKD", NormalForm::kNfkd}};
  const std::string section = "normalizer";
  const auto type = step.at("type").get<std::string>();
  if (const auto form = forms.find(type); form != forms.end()) return NormalStep(form->second);
  if (type == "Prepend") {
    SHOAL_ASSIGN(const std::string text, text_member(section, step, "prepend"));
    return NormalStep(PrependText{text});
  }
  if (type == "Replace") {
    SHOAL_ASSIGN(const ReplaceText replace, read_replace(section, step));
    return NormalStep(replace);
  }
  return unsupported(section, step);
}

Result<SplitStep> read_split(const std::string& section, const Json& step) {
  static const std::map<std::string, SplitBehaviour> behaviours = {
      {"Removed", SplitBehaviour::kRemoved},
      {"Isolated", SplitBehaviour::kIsolated},
      {"MergedWithPrevious", SplitBehaviour::kMergedWithPrevious},
      {"MergedWithNext", SplitBehaviour::kMergedWithNext},
      {"Contiguous", SplitBehaviour::kContiguous}};
  SHOAL_ASSIGN(const std::string named, text_member(section, step, "behavior"));
  const auto behaviour = behaviours.find(named);
  if (behaviour == behaviours.end()) return unsupported(section, step);
  SHOAL_ASSIGN(const bool inverted, flag_member(section, step, "invert", false));
  const Json& pattern = member(step, "pattern");
  const bool literal = pattern.is_object() && member(pattern, "String").is_string();
  if (!literal && !(pattern.is_object() && member(pattern, "Regex").is_string())) return unsupported(section, step);
  auto compiled = literal ? SplitPattern::of_literal(pattern.at("String").get<std::string>())
                          : SplitPattern::of_pattern(pattern.at("Regex").get<std::string>());
  if (!compiled.ok()) return in_section(section, compiled.error());
  return SplitStep{std::move(*compiled), behaviour->second, inverted};
}

SplitStep digits(bool individual) {
  return {SplitPattern::of_pattern("\\p{N}").value(),
          individual ? SplitBehaviour::kIsolated : SplitBehaviour::kContiguous, false};
}

Status add_metaspace(const std::string& section, const Json& step, std::vector<PreStep>& steps) {
  using Prefix = MarkSpacesStep::Prefix;
  static const std::map<std::string, Prefix> prefixes = {
      {"always", Prefix::kAlways}, {"first", Prefix::kFirst}, {"never", Prefix::kNever}};
  SHOAL_ASSIGN(const std::string mark, text_member(section, step, "replacement"));
  if (mark.empty() || character_bytes(mark[0]) != mark.size())
    return malformed(section, "replaces by more than a character");
  const std::string scheme = step.value("prepend_scheme", Json("always")).is_string()
                                 ? step.value("prepend_scheme", Json("always")).get<std::string>()
                                 : "";
  const auto prefix = prefixes.find(scheme);
  if (prefix == prefixes.end()) return unsupported(section, step);
  SHOAL_ASSIGN(const bool prefixed, flag_member(section, step, "add_prefix_space", true));
  if (!prefixed && prefix->second != Prefix::kNever)
    return malformed(section, "has add_prefix_space against prepend_scheme");
  SHOAL_ASSIGN(const bool split, flag_member(section, step, "split", true));
  steps.emplace_back(MarkSpacesStep{mark, prefix->second});
  if (!split) return Status::success();
  auto pattern = SplitPattern::of_literal(mark);
  if (!pattern.ok()) return in_section(section, pattern.error());
  steps.emplace_back(SplitStep{std::move(*pattern), SplitBehaviour::kMergedWithNext, false});
  return Status::success();
}

Status add_byte_level(const std::string& section, const Json& step, PreTokenizerPlan& plan) {
  SHOAL_ASSIGN(const bool prefix, flag_member(section, step, "add_prefix_space", true));
  SHOAL_ASSIGN(const bool cuts, flag_member(section, step, "use_regex", true));
  if (prefix) plan.steps.emplace_back(PrefixSpaceStep{});
  if (cuts) {
    plan.steps.emplace_back(
        SplitStep{SplitPattern::of_pattern(kByteLevelPattern).value(), SplitBehaviour::kIsolated, false});
  }
  plan.byte_level = true;
  return Status::success();
}

Status add_pre_step(const Json& step, PreTokenizerPlan& plan) {
  const std::string section = "pre_tokenizer";
  if (plan.byte_level)
    return make_error(ErrorCode::kUnsupported,
                      "\"pre_tokenizer\" goes on behind ByteLevel with " + step.dump(-1, ' ', true).substr(0, 200));
  const auto type = step.at("type").get<std::string>();
  if (type == "ByteLevel") return add_byte_level(section, step, plan);
  if (type == "Metaspace") return add_metaspace(section, step, plan.steps);
  if (type == "Split") {
    SHOAL_ASSIGN(SplitStep split, read_split(section, step));
    plan.steps.emplace_back(std::move(split));
    return Status::success();
  }
  if (type == "Digits") {
    SHOAL_ASSIGN(const bool individual, flag_member(section, step, "individual_digits", false));
    plan.steps.emplace_back(digits(individual));
    return Status::success();
  }
  return unsupported(section, step);
}

Result<StripDecode> read_strip(const std::string& section, const Json& step) {
  SHOAL_ASSIGN(const std::string content, text_member(section, step, "content"));
  const Json& start = member(step, "start");
  const Json& stop = member(step, "stop");
  if (content.empty() || !start.is_number_unsigned() || !stop.is_number_unsigned())
    return malformed(section, "strips nothing");
  return StripDecode{content, start.get<std::size_t>(), stop.get<std::size_t>()};
}

Result<DecodeStep> read_decode_step(const Json& step) {
  const std::string section = "decoder";
  const auto type = step.at("type").get<std::string>();
  if (type == "ByteLevel") return DecodeStep(ByteLevelDecode{});
  if (type == "ByteFallback") return DecodeStep(ByteFallbackDecode{});
  if (type == "Fuse") return DecodeStep(FuseDecode{});
  if (type == "Replace") {
    SHOAL_ASSIGN(ReplaceText replace, read_replace(section, step));
    return DecodeStep(std::move(replace));
  }
  if (type == "Strip") {
    SHOAL_ASSIGN(StripDecode strip, read_strip(section, step));
    return DecodeStep(std::move(strip));
  }
  if (type == "Metaspace") {
    SHOAL_ASSIGN(const std::string mark, text_member(section, step, "replacement"));
    if (mark.empty()) return malformed(section, "replaces an empty text");
    return DecodeStep(MarkDecode{mark, member(step, "prepend_scheme") != "never"});
  }
  return unsupported(section, step);
}

}  // namespace

Result<Normaliser> read_normalizer(const std::string& json) {
  SHOAL_ASSIGN(const std::vector<Json> found, steps_of("normalizer", json, "normalizers"));
  std::vector<NormalStep> steps;
  for (const Json& step : found) {
    SHOAL_ASSIGN(NormalStep read, read_normal_step(step));
    steps.push_back(std::move(read));
  }
  auto made = Normaliser::make(std::move(steps));
  if (!made.ok()) return in_section("normalizer", made.error());
  return made;
}

Result<PreTokenizerPlan> read_pre_tokenizer(const std::string& json) {
  SHOAL_ASSIGN(const std::vector<Json> found, steps_of("pre_tokenizer", json, "pretokenizers"));
  PreTokenizerPlan plan;
  for (const Json& step : found) SHOAL_TRY(add_pre_step(step, plan));
  return plan;
}

Result<std::vector<DecodeStep>> read_decoder(const std::string& json) {
  SHOAL_ASSIGN(const std::vector<Json> found, steps_of("decoder", json, "decoders"));
  if (found.empty())
    return make_error(ErrorCode::kUnsupported, "\"decoder\" is null, so nothing says how tokens become text");
  std::vector<DecodeStep> steps;
  std::size_t growth = 1;
  for (const Json& step : found) {
    SHOAL_ASSIGN(DecodeStep read, read_decode_step(step));
    if (const auto* replace = std::get_if<ReplaceText>(&read))
      growth *= std::min(replace->growth(), kNormalGrowthMax + 1);
    if (growth > kNormalGrowthMax) {
      return make_error(ErrorCode::kUnsupported,
                        "\"decoder\" makes a text more than " + std::to_string(kNormalGrowthMax) + " times as long");
    }
    steps.push_back(std::move(read));
  }
  return steps;
}

}  // namespace shoal
