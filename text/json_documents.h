#pragma once
// Documents that are fields of JSON objects, as the programs write them that make such files: also with half of a pair
// of \u escapes, and with NaN, Infinity and -Infinity, which are no JSON. Pure functions; thread: any.
#include <cstdint>
#include <string>
#include <string_view>

namespace shoal {

struct JsonField {
  bool is_object = false;      // and nothing stands behind it
  std::string trouble = {};    // empty: the object has the field as a text
  std::uint64_t replaced = 0;  // halves of pairs that became U+FFFD
};
// The field of an object into `found`. Memory does not go by how it nests. REQUIRES: valid UTF-8.
JsonField read_json_field(std::string_view json, std::string_view field, std::string& found);

// Where the object ends that begins `text`, or npos: not within it. REQUIRES: it begins with '{'.
std::size_t json_object_end(std::string_view text);

}  // namespace shoal
