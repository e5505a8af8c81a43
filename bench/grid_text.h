#pragma once
// What every grid of trainings writes: run files, and the keys that name what a cell trains. Pure; thread-safe.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/result.h"

namespace shoal {

// Sections of a run file, in which a later value of a key takes the place of an earlier one.
class RunText {
 public:
  // `value` as TOML.
  void set(const std::string& section, const std::string& key, std::string value);
  void set(const std::string& section, const std::string& key, std::uint64_t value);
  void set_text(const std::string& section, const std::string& key, const std::string& value);  // puts it in quotes
  void remove(const std::string& section, const std::string& key);
  // Each "SECTION.KEY=VALUE", as --set has it. ERRORS: kInput (one is not of that form).
  Status set_all(const std::vector<std::string>& sets);
  std::string text() const;

 private:
  std::map<std::string, std::map<std::string, std::string>> sections_;
};

// What each cell of a grid trains, as far as the grid is not about it.
struct GridSetting {
  std::string text{};  // path of the token file, absolute
  std::uint64_t tokens = 0;
  std::uint32_t layers = 4, dim = 64, heads = 4, positions = 64, sequences = 8;
  std::uint16_t stages = 4;
  std::uint64_t inner_batch = 0;    // targets of one step
  std::vector<std::string> sets{};  // "section.key=value", the value as TOML; they win over the fields above
};
// The run file of a cell, without `sets` and without what the grid is about. `name`: of the run.
RunText run_text_of(const std::string& name, const GridSetting& setting, std::uint64_t seed);

// 16 hex digits that name this text.
std::string grid_key(const std::string& text);

}  // namespace shoal
