#pragma once
// JSON that a program prints, in the order in which it is made. Only json_text.cc sees nlohmann's, which writes numbers
// as short as they read back; what is no UTF-8 is replaced. Value; thread-safe as such.
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal {

class Json {
 public:
  struct Member;

  Json() = default;  // null
  Json(std::nullptr_t) {}
  template <std::same_as<bool> T>
  Json(T value) : text_(value ? "true" : "false") {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Json(T value) : text_(std::to_string(value)) {}
  Json(double value);
  Json(std::string_view value);
  Json(const std::string& value) : Json(std::string_view(value)) {}
  Json(const char* value) : Json(std::string_view(value)) {}
  template <class T>
  Json(const std::optional<T>& value) : Json(value ? Json(*value) : Json()) {}
  template <class T>
  Json(const std::vector<T>& values) : Json(array()) {
    for (const T& value : values) add(value);
  }
  Json(std::initializer_list<Member> members);  // an object
  static Json array(std::initializer_list<Json> values = {});
  // What somebody else wrote; none: it is no JSON.
  static std::optional<Json> read(std::string_view text);

  // In an array; in an object, in place of an earlier one of this name or behind all others.
  void add(const Json& value);
  void set(std::string_view name, const Json& value);
  // With `indent` blanks a level, or in one line.
  std::string text(int indent = 2) const;
  std::string line() const { return text(-1); }

 private:
  void insert(const std::string& text);

  std::string text_ = "null";  // a name may stand there twice: the last one holds
};

struct Json::Member {
  std::string_view name;
  Json value;
};

}  // namespace shoal
