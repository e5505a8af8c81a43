#include "text/json_documents.h"

#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

#include "text/utf8.h"

namespace shoal {
namespace {

// Keeps one field of the object alone.
class FieldFinder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  FieldFinder(std::string_view field, std::string& found) : field_(field), found_(found) {}
  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t) override { return other(); }
  bool number_unsigned(number_unsigned_t) override { return other(); }
  bool number_float(number_float_t, const string_t&) override { return other(); }
  bool binary(binary_t&) override { return other(); }
  bool string(string_t& text) override {
    if (depth_ == 0) return refuse("is no object");
    if (depth_ == 1 && wanted_) {
      found_.swap(text);
      has_field_ = true;
    }
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_ == 1 && wanted_) return other();
    is_object_ = true;
    ++depth_;
    return true;
  }
  bool key(string_t& name) override {
    wanted_ = depth_ == 1 && name == field_;
    return true;
  }
  bool end_object() override {
    --depth_;
    wanted_ = false;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ <= 1 && (depth_ == 0 || wanted_)) return other();
    ++depth_;
    return true;
  }
  bool end_array() override { return end_object(); }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception&) override {
    is_json_ = false;
    return refuse("is no JSON from column " + std::to_string(at) + " on");
  }
  bool is_json() const { return is_json_; }
  bool is_object() const { return is_object_; }
  // Empty: the object has the field as a text.
  std::string trouble() const {
    return why_.empty() && !has_field_ ? "has no field \"" + std::string(field_) + "\"" : why_;
  }

 private:
  bool refuse(std::string why) {
    why_ = std::move(why);
    return false;
  }
  bool other() {
    if (depth_ == 0) return refuse("is no object");
    return depth_ > 1 || !wanted_ || refuse("has no text as field \"" + std::string(field_) + "\"");
  }
  std::string_view field_;
  std::string& found_;
  std::size_t depth_ = 0;
  bool wanted_ = false, has_field_ = false, is_object_ = false, is_json_ = true;
  std::string why_;
};

// The unit that a \u escape at the begin of `text` stands for.
std::optional<char32_t> escaped_unit(std::string_view text) {
  if (!text.starts_with("\\u") || text.size() < 6) return std::nullopt;
  char32_t unit = 0;
  for (const char digit : text.substr(2, 4)) {
    if (std::isxdigit(static_cast<unsigned char>(digit)) == 0) return std::nullopt;
    const int value = digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10;
    unit = unit << 4 | static_cast<char32_t>(value);
  }
  return unit;
}

// As many bytes as before, so that columns stay: an escape that is half of a pair is one of U+FFFD, and a number that
// JSON does not have is 0.
std::string with_json_alone(std::string_view json, std::uint64_t& replaced) {
  constexpr std::array<std::string_view, 3> kNumbers = {"NaN", "Infinity", "-Infinity"};
  std::string out(json);
  bool within = false;  // a string
  for (std::size_t at = 0; at < json.size();) {
    const std::string_view rest = json.substr(at);
    std::size_t taken = 1;
    if (rest[0] == '"') {
      within = !within;
    } else if (within && rest[0] == '\\') {
      const auto unit = escaped_unit(rest);
      const auto next = rest.size() < 6 ? std::nullopt : escaped_unit(rest.substr(6));
      const bool pair = unit && next && is_first_half(*unit) && is_second_half(*next);
      taken = pair ? 12 : unit ? 6 : 2;
      if (unit && !pair && (is_first_half(*unit) || is_second_half(*unit))) {
        out.replace(at + 2, 4, "fffd");
        ++replaced;
      }
    } else if (!within) {
      for (const std::string_view number : kNumbers) {
        if (!rest.starts_with(number)) continue;
        out.replace(at, number.size(), "0" + std::string(number.size() - 1, ' '));
        taken = number.size();
      }
    }
    at += taken;
  }
  return out;
}

}  // namespace

JsonField read_json_field(std::string_view json, std::string_view field, std::string& found) {
  FieldFinder finder(field, found);
  if (nlohmann::json::sax_parse(json.begin(), json.end(), &finder) || finder.is_json())
    return {.is_object = finder.is_object(), .trouble = finder.trouble()};
  std::uint64_t replaced = 0;
  const std::string changed = with_json_alone(json, replaced);
  FieldFinder again(field, found);
  nlohmann::json::sax_parse(changed, &again);
  return {.is_object = again.is_json() && again.is_object(), .trouble = again.trouble(), .replaced = replaced};
}

std::size_t json_object_end(std::string_view text) {
  std::size_t depth = 0;
  bool within = false;  // a string
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (within && c == '\\') {
      ++at;
    } else if (c == '"') {
      within = !within;
    } else if (!within && (c == '{' || c == '[')) {
      ++depth;
    } else if (!within && (c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace shoal
