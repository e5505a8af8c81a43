#include "common/program/json_text.h"

#include <nlohmann/json.hpp>

namespace shoal {
namespace {

std::string written(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

Json::Json(double value) : text_(written(value, -1)) {}
Json::Json(std::string_view value) : text_(written(value, -1)) {}

Json::Json(std::initializer_list<Member> members) : text_("{}") {
  for (const Member& member : members) set(member.name, member.value);
}

Json Json::array(std::initializer_list<Json> values) {
  Json made;
  made.text_ = "[]";
  for (const Json& value : values) made.add(value);
  return made;
}

std::optional<Json> Json::read(std::string_view text) {
  const auto parsed = nlohmann::ordered_json::parse(text, nullptr, false);
  if (parsed.is_discarded()) return std::nullopt;
  Json made;
  made.text_ = written(parsed, -1);
  return made;
}

void Json::add(const Json& value) { insert(value.text_); }
void Json::set(std::string_view name, const Json& value) { insert(Json(name).text_ + ":" + value.text_); }

// In front of the end of the array or object.
void Json::insert(const std::string& text) { text_.insert(text_.size() - 1, (text_.size() > 2 ? "," : "") + text); }

std::string Json::text(int indent) const { return written(nlohmann::ordered_json::parse(text_), indent); }

}  // namespace shoal
