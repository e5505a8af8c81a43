#include "cli/kept_run.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/check.h"

namespace shoal {
namespace {

// A TOML string as well.
std::string quoted_absolute(const std::string& path) {
  return nlohmann::json(std::filesystem::absolute(path).string()).dump();
}

// Where the text is on this machine, as lines of [data].
std::string text_lines(const SamplesSection& data) {
  std::string paths;
  for (const std::string& path : data.paths) paths += (paths.empty() ? "" : ", ") + quoted_absolute(path);
  std::string lines = "path = " + (data.paths.size() == 1 ? paths : "[" + paths + "]") + "\n";
  if (!data.validation.empty()) lines += "validation = " + quoted_absolute(data.validation) + "\n";
  if (!data.tokenizer.empty()) lines += "tokenizer = " + quoted_absolute(data.tokenizer) + "\n";
  return lines;
}

}  // namespace

std::string kept_run_text(const std::string& manifest, const RunConfig& config) {
  const std::string section = "[data]\n";
  const std::size_t at = manifest.find(section);
  SHOAL_CHECK(at != std::string::npos);
  return manifest.substr(0, at + section.size()) + text_lines(config.data) + manifest.substr(at + section.size());
}

void take_names(RunConfig& config, const RunConfig& kept) {
  if (config.data.digests.empty()) config.data.digests = kept.data.digests;
  if (config.data.tokenizer_digest.empty()) config.data.tokenizer_digest = kept.data.tokenizer_digest;
}

}  // namespace shoal
