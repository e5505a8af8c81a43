#pragma once
// Values as JSON writes them, for the small files that are made without a JSON library. Pure. Thread: any.
#include <string>
#include <string_view>

namespace shoal {

std::string json_string(std::string_view text);
// The shortest digits that mean this number.
std::string json_number(double value);

}  // namespace shoal
