#include "bench/grid_text.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "common/crypto/hash.h"

namespace shoal {

void RunText::set(const std::string& section, const std::string& key, std::string value) {
  sections_[section][key] = std::move(value);
}

void RunText::set(const std::string& section, const std::string& key, std::uint64_t value) {
  set(section, key, std::to_string(value));
}

void RunText::set_text(const std::string& section, const std::string& key, const std::string& value) {
  set(section, key, nlohmann::json(value).dump());
}

void RunText::remove(const std::string& section, const std::string& key) { sections_[section].erase(key); }

Status RunText::set_all(const std::vector<std::string>& sets) {
  for (const std::string& one : sets) {
    const std::size_t equals = one.find('='), dot = one.substr(0, equals).find('.');
    if (equals == std::string::npos || dot == std::string::npos || dot == 0 || dot + 1 == equals)
      return make_error(ErrorCode::kInput, "--set " + one + ": is not SECTION.KEY=VALUE");
    set(one.substr(0, dot), one.substr(dot + 1, equals - dot - 1), one.substr(equals + 1));
  }
  return {};
}

std::string RunText::text() const {
  std::string out;
  for (const auto& [section, keys] : sections_) {
    out += "[" + section + "]\n";
    for (const auto& [key, value] : keys) out += key + " = " + value + "\n";
  }
  return out;
}

RunText run_text_of(const std::string& name, const GridSetting& setting, std::uint64_t seed) {
  RunText file;
  file.set_text("run", "name", name);
  file.set("run", "seed", seed);
  file.set("model", "layers", setting.layers);
  file.set("model", "dim", setting.dim);
  file.set("model", "heads", setting.heads);
  file.set("model", "positions", setting.positions);
  file.set_text("data", "path", setting.text);
  file.set("data", "sequences", setting.sequences);
  file.set("pipeline", "stages", setting.stages);
  file.set("sync", "inner_batch", setting.inner_batch);
  file.set("end", "tokens", setting.tokens);
  return file;
}

std::string grid_key(const std::string& text) {
  std::ostringstream out;
  out << blake2b_256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  return out.str().substr(0, 16);
}

}  // namespace shoal
