#include "runtime/solo/saved_states.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "common/crypto/hash.h"
#include "common/os/posix_file.h"
#include "runtime/solo/saved_model.h"
#include "stages/stage_file.h"
#include "stages/stage_spec.h"
#include "state/state_image.h"

namespace shoal {

namespace {

constexpr char kNoteFile[] = "/saved";  // the digest of the model's digests, a gap, and where it was written
constexpr std::string_view kNoteGap = "  ";
constexpr std::size_t kNoteBytesMax = 8192;

// Its file of digests names all others.
Result<Digest> digest_of_model(const std::string& folder) {
  SHOAL_ASSIGN(const Bytes sums, read_file(folder + "/" + kSavedSumsName, kSavedSumsBytesMax));
  return blake2b_256(sums);
}

}  // namespace

Error nothing_to_save() {
  return make_error(ErrorCode::kUnsupported,
                    "only a model can be saved: use [executor] kind = \"torch\" or leave --save out");
}

Status probe_save_folder(const std::string& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return cannot_make(error_of_errno("create the folder", folder, failure.value()));
  const std::string probe = folder + "/.probe." + std::to_string(::getpid());
  const Status written = replace_file(probe, {Bytes::copy_of(std::string_view("shoal"))});
  ::unlink(probe.c_str());
  return written.ok() ? written : cannot_make(written.error());
}

Status save_states(const std::string& folder, const RunConfig& config, const std::map<std::uint16_t, Bytes>& images,
                   const std::function<void(std::uint64_t done, std::uint64_t of)>& stage_saved) {
  SHOAL_ASSIGN(const std::vector<StageSpec> specs,
               split_model(config.model_spec(), config.pipeline.stages, config.pipeline.layers_per_stage));
  NewFiles made;
  expect_saved_model(made, folder, specs);
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return error_of_errno("create the folder", folder, failure.value());
  for (const StageSpec& spec : specs) {
    const auto found = images.find(spec.stage.value);
    const std::string name = "stage " + std::to_string(spec.stage.value);
    if (found == images.end())
      return make_error(ErrorCode::kMissing, "nothing was saved: nobody has the state of " + name);
    SHOAL_ASSIGN(const StateHeader header, parse_state_header(found->second));
    if (header.stage != spec.stage || header.floats != parameter_count(spec))
      return make_error(ErrorCode::kMalformed,
                        "nothing was saved: the state fetched for " + name + " is not of this model");
    std::vector<float> anchor(header.floats);  // the image's first array
    std::memcpy(anchor.data(), found->second.data() + kStateHeaderBytes, anchor.size() * sizeof(float));
    SHOAL_TRY(save_stage(folder, spec, anchor));
    stage_saved(spec.stage.value + std::uint64_t{1}, specs.size());
  }
  SHOAL_TRY(finish_saved_model(folder, config, specs));
  made.keep();
  return {};
}

Status note_saved(const std::string& run_folder, const std::string& folder) {
  SHOAL_ASSIGN(const Digest digest, digest_of_model(folder));
  const std::string note = hex_of(digest) + std::string(kNoteGap) + std::filesystem::absolute(folder).string() + "\n";
  return replace_file(run_folder + kNoteFile, {Bytes::copy_of(std::string_view(note))});
}

std::string not_saved_before(const std::string& run_folder, const std::string& folder) {
  const auto note = read_file(run_folder + kNoteFile, kNoteBytesMax);  // missing: a new run, or one without --save
  if (!note.ok()) return "no model of it was saved (" + note.error().message + ")";
  const std::string text(reinterpret_cast<const char*>(note->data()), note->size());
  const std::size_t gap = text.find(kNoteGap), end = text.find('\n');
  if (gap == std::string::npos || end == std::string::npos || end < gap) return run_folder + kNoteFile + " is damaged";
  const std::string place = text.substr(gap + kNoteGap.size(), end - gap - kNoteGap.size());
  const auto found = digest_of_model(folder);
  if (!found.ok() || hex_of(*found) != text.substr(0, gap))
    return "it was saved to " + place + ", and what is in " + folder + " is not that model";
  if (const Status whole = check_saved_model(folder); !whole.ok()) return whole.error().message;
  return "";
}

}  // namespace shoal
