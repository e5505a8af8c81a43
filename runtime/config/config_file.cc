// RUN.toml as a file, and the files that it names.
#include <filesystem>

#include "common/os/posix_file.h"
#include "runtime/config/config_table.h"
#include "stages/pretrained/pretrained_folder.h"

namespace shoal {
namespace {

Error too_large(const std::string& origin) {
  return make_error(ErrorCode::kTooLarge, origin + ": larger than 64 KiB, this is no RUN.toml");
}

Result<Bytes> read_run_file(const std::string& path) {
  auto bytes = read_file(path, kConfigBytesMax);
  if (!bytes.ok() && bytes.code() == ErrorCode::kMissing)
    return make_error(ErrorCode::kMissing,
                      path + ": no such file. HINT: give the path of a RUN.toml; examples/ has some");
  if (!bytes.ok() && bytes.code() == ErrorCode::kInput)
    return make_error(ErrorCode::kInput, bytes.error().message +
                                             ". HINT: give the path of a RUN.toml; a run's folder goes on with "
                                             "--resume");
  if (!bytes.ok() && bytes.code() == ErrorCode::kTooLarge) return too_large(path);
  return bytes;
}

}  // namespace

Result<RunConfig> parse_config(std::string_view text, const std::string& origin) {
  if (text.size() > kConfigBytesMax) return too_large(origin);
  return parse_options(text, origin, OptionsOf::kRunFile, {});
}

Result<RunConfig> load_config(const std::string& path) {
  SHOAL_ASSIGN(const Bytes bytes, read_run_file(path));
  const auto beside = [&](const std::string& named) {
    const std::filesystem::path given = named;
    if (named.empty() || !given.is_relative()) return named;
    return (std::filesystem::path(path).parent_path() / given).string();
  };
  const auto model_of = [&](const std::string& from) -> Result<ModelSpec> {
    SHOAL_ASSIGN(const PretrainedFolder folder, PretrainedFolder::open(beside(from)));
    return folder.model();
  };
  SHOAL_ASSIGN(RunConfig config, parse_options({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path,
                                               OptionsOf::kRunFile, model_of));
  for (std::string& named : config.data.paths) named = beside(named);
  for (std::string* named : {&config.data.validation, &config.data.tokenizer, &config.model.from})
    *named = beside(*named);
  return config;
}

}  // namespace shoal
