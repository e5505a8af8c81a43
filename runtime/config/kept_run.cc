#include "runtime/config/kept_run.h"

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

std::string report_section(const ReportSection& report) {
  if (report.sample_every == 0) return "";
  return "[report]\nsample_every = " + std::to_string(report.sample_every) +
         "\nsample_tokens = " + std::to_string(report.sample_tokens) +
         "\nsample_prompt = " + nlohmann::json(report.sample_prompt).dump() + "\n";
}

// Behind the head of a section, which every manifest has.
std::string with_lines(std::string text, const std::string& section, const std::string& lines) {
  const std::size_t at = text.find(section);
  SHOAL_CHECK(at != std::string::npos);
  return text.insert(at + section.size(), lines);
}

}  // namespace

std::string kept_run_text(const std::string& manifest, const RunConfig& config) {
  const std::string text = with_lines(manifest, "[data]\n", text_lines(config.data));
  const std::string whole = text + report_section(config.report);
  if (config.model.from.empty()) return whole;
  return with_lines(whole, "[model]\n", "from = " + quoted_absolute(config.model.from) + "\n");
}

void take_names(RunConfig& config, const RunConfig& kept) {
  if (config.data.digests.empty()) config.data.digests = kept.data.digests;
  if (config.model.weights.empty()) config.model.weights = kept.model.weights;
  if (config.data.tokenizer_digest.empty()) config.data.tokenizer_digest = kept.data.tokenizer_digest;
  if (config.sync.mode == SyncMode::kAuto) config.sync.mode = kept.sync.mode;
}

}  // namespace shoal
