#include "events/delay_profile.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "common/check.h"
#include "common/os/posix_file.h"
#include "common/rule_id.h"

namespace shoal {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kSchema = "shoal.delay/1";
constexpr std::string_view kRemedy =
    ". HINT: `shoal audit --delay-profile FILE` writes such a file; docs/FILES.md names the keys";

constexpr std::array<std::string_view, 6> kTopKeys = {"schema", "rule", "replicas", "inner_batch", "tokens", "stages"};
constexpr std::array<std::string_view, 2> kStageKeys = {"stage", "counts"};

// Parsed strictly: of a key that stands twice in an object the parser would keep one. `twice` gets its name.
Json parse_once(std::string_view text, std::string& twice) {
  std::vector<std::set<std::string>> open;  // the keys of each object that is not closed yet
  const auto watch = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  return Json::parse(text, watch, false);
}

// Reads one file; every error names it.
class Reader {
 public:
  explicit Reader(const std::string& origin) : origin_(origin) {}

  Result<DelayProfile> read(std::string_view text) const {
    if (text.size() > kDelayProfileBytesMax)
      return make_error(ErrorCode::kTooLarge, origin_ + ": a delay profile has at most " +
                                                  std::to_string(kDelayProfileBytesMax) + " bytes, this has " +
                                                  std::to_string(text.size()) + std::string(kRemedy));
    std::string twice;
    const Json file = parse_once(text, twice);
    if (!file.is_object()) return wrong("", "is no JSON object");
    if (!twice.empty()) return wrong(twice, "stands twice");
    SHOAL_TRY(check_keys(file, kTopKeys, ""));
    if (!file["schema"].is_string() || file["schema"].get_ref<const std::string&>() != kSchema)
      return wrong("schema", "must be \"" + std::string(kSchema) + "\", this program reads no other");
    DelayProfile profile;
    SHOAL_TRY(read_rule(file["rule"], profile.rule));
    SHOAL_ASSIGN(profile.replicas, number(file["replicas"], "replicas"));
    SHOAL_ASSIGN(profile.inner_batch, number(file["inner_batch"], "inner_batch"));
    SHOAL_ASSIGN(profile.tokens, number(file["tokens"], "tokens"));
    const Json& stages = file["stages"];
    if (!stages.is_array() || stages.empty() || stages.size() > kDelayStagesMax)
      return wrong("stages", "must be a list of 1 to " + std::to_string(kDelayStagesMax) + " stages");
    for (std::size_t i = 0; i < stages.size(); ++i) {
      SHOAL_ASSIGN(const DelayHistogram delays, stage(stages[i], i));
      profile.stages.push_back(delays);
    }
    return profile;
  }

 private:
  Error wrong(const std::string& key, const std::string& what) const {
    return make_error(ErrorCode::kInput,
                      origin_ + ": " + (key.empty() ? "" : "\"" + key + "\" ") + what + std::string(kRemedy));
  }

  template <std::size_t kCount>
  Status check_keys(const Json& object, const std::array<std::string_view, kCount>& keys,
                    const std::string& inside) const {
    for (const std::string_view key : keys)
      if (!object.contains(key)) return wrong(inside + std::string(key), "is missing");
    for (const auto& [key, value] : object.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) return wrong(inside + key, "is no key of this file");
    return {};
  }

  Status read_rule(const Json& value, std::string& rule) const {
    if (!value.is_string()) return wrong("rule", "must be a text");
    rule = value.get<std::string>();
    if (rule.empty() || rule_named(rule)) return {};
    return wrong("rule", "must be the name of a rule, or \"\" where nobody knows");
  }

  Result<std::uint64_t> number(const Json& value, const std::string& key) const {
    if (value.is_number_unsigned() && value.get<std::uint64_t>() <= kDelayNumberMax) return value.get<std::uint64_t>();
    return wrong(key, "must be a whole number from 0 to " + std::to_string(kDelayNumberMax));
  }

  Result<DelayHistogram> stage(const Json& row, std::size_t index) const {
    const std::string name = "stages[" + std::to_string(index) + "]";
    if (!row.is_object()) return wrong(name, "must be an object");
    SHOAL_TRY(check_keys(row, kStageKeys, name + "."));
    SHOAL_ASSIGN(const std::uint64_t stage, number(row["stage"], name + ".stage"));
    if (stage != index)
      return wrong(name + ".stage", "must be " + std::to_string(index) + ": the stages stand in order, from 0");
    const Json& counts = row["counts"];
    if (!counts.is_array() || counts.empty() || counts.size() > DelayHistogram::kBins)
      return wrong(name + ".counts", "must be a list of 1 to " + std::to_string(DelayHistogram::kBins) +
                                         " counts of targets, by delay from 0");
    std::vector<std::uint64_t> values;
    std::uint64_t total = 0;
    for (const Json& count : counts) {
      SHOAL_ASSIGN(values.emplace_back(), number(count, name + ".counts"));
      total += values.back();
    }
    if (total == 0) return wrong(name + ".counts", "must hold a count above 0");
    if (total > kDelayNumberMax)
      return wrong(name + ".counts", "add up to more than " + std::to_string(kDelayNumberMax));
    return DelayHistogram::of(values);
  }

  const std::string& origin_;
};

}  // namespace

Result<DelayProfile> parse_delay_profile(std::string_view text, const std::string& origin) {
  return Reader(origin).read(text);
}

Result<DelayProfile> load_delay_profile(const std::string& path) {
  SHOAL_ASSIGN(const Bytes bytes, read_file(path, kDelayProfileBytesMax));
  return parse_delay_profile({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

std::string delay_profile_text(const DelayProfile& profile) {
  OrderedJson out = {{"schema", kSchema},
                     {"rule", profile.rule},
                     {"replicas", profile.replicas},
                     {"inner_batch", profile.inner_batch},
                     {"tokens", profile.tokens}};
  out["stages"] = OrderedJson::array();
  for (const DelayHistogram& delays : profile.stages) {
    const auto used = delays.counts();  // up to the last that is not zero
    out["stages"].push_back(
        {{"stage", out["stages"].size()}, {"counts", std::vector<std::uint64_t>(used.begin(), used.end())}});
  }
  return out.dump() + "\n";
}

Status save_delay_profile(const std::string& path, const DelayProfile& profile) {
  const std::string text = delay_profile_text(profile);
  const Status saved = replace_file(path, {Bytes::copy_of(std::string_view(text))});
  return saved.ok() ? saved : cannot_make(saved.error());
}

std::uint64_t largest_delay(const DelayHistogram& delays) {
  const std::size_t used = delays.counts().size();
  return used == 0 ? 0 : used - 1;
}

std::uint64_t delay_at(const DelayHistogram& delays, std::uint64_t share) {
  const std::uint64_t total = delays.total();
  SHOAL_CHECK(total > 0);
  __extension__ using Wide = unsigned __int128;
  const auto rank = static_cast<std::uint64_t>((static_cast<Wide>(share) * total) >> 64);  // in [0, total)
  std::uint64_t below = 0;
  const auto counts = delays.counts();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    below += counts[i];
    if (rank < below) return i;
  }
  return largest_delay(delays);
}

}  // namespace shoal
