#include "cli/checkpoint_files.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <set>

#include "common/formatted.h"
#include "common/log.h"
#include "common/os/posix_file.h"
#include "common/program/outcome.h"
#include "common/status_line.h"
#include "events/headway.h"
#include "state/checkpoint_store.h"

namespace shoal {
namespace {

using std::filesystem::file_type;

// ERRORS: kMissing.
Result<file_type> kind_of(const std::string& path) {
  std::error_code failure;
  const file_type kind = std::filesystem::status(path, failure).type();
  if (kind != file_type::not_found) return kind;
  return make_error(ErrorCode::kMissing,
                    path + ": no such file or folder. HINT: give checkpoints, or the folders in which peers keep them");
}

void keep_first_of_each(std::vector<std::string>& found) {
  std::set<std::string> seen;
  std::erase_if(found, [&seen](const std::string& path) { return !seen.insert(path).second; });
}

Error none_in(const std::vector<std::string>& paths) {
  return make_error(ErrorCode::kMissing,
                    "no checkpoint in " + list_text(paths) +
                        ". HINT: a peer calls them checkpoint-<run>-<peer>-<slot>.safetensors; folders "
                        "in a folder are not looked into");
}

bool is_left(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path().empty() ? "." : path.parent_path();
  const Result<std::vector<std::string>> left = left_checkpoints(folder.string());
  return left.ok() && std::ranges::any_of(*left, [&path](const std::string& one) {
           return std::filesystem::path(one).filename() == path.filename();
         });
}

// ERRORS: kInput.
Status add_named(const std::string& path, Wanted wanted, FoundCheckpoints& found) {
  if (is_left(path)) {
    found.left.push_back(path);
  } else if (wanted == Wanted::kToRead || says_checkpoint(path)) {
    found.checkpoints.push_back(path);
  } else {
    return make_error(ErrorCode::kInput, path +
                                             " does not say that it is a checkpoint, or is a link: nothing was "
                                             "removed. HINT: name checkpoints alone, or a folder of them");
  }
  return {};
}

// ERRORS: kIo.
Status add_folder(const std::string& folder, Wanted wanted, FoundCheckpoints& found) {
  const auto first = static_cast<std::ptrdiff_t>(found.checkpoints.size());
  std::error_code failure;
  std::filesystem::directory_iterator entry(folder, failure);
  for (; !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    const std::string path = entry->path().string();
    const bool called = wanted == Wanted::kToRead && is_checkpoint_name(entry->path().filename().string());
    if (called || says_checkpoint(path)) found.checkpoints.push_back(path);
  }
  if (failure) return error_of_errno("read the folder", folder, failure.value());
  std::sort(found.checkpoints.begin() + first, found.checkpoints.end());
  SHOAL_ASSIGN(const std::vector<std::string> left, left_checkpoints(folder));
  found.left.insert(found.left.end(), left.begin(), left.end());
  return {};
}

}  // namespace

bool says_checkpoint(const std::string& path) {
  std::error_code failure;
  if (std::filesystem::symlink_status(path, failure).type() != file_type::regular) return false;
  std::vector<std::uint8_t> front(kCheckpointHeadBytesMax);
  const auto file_bytes = read_file_at(path, 0, front);
  if (!file_bytes.ok()) return false;
  front.resize(std::min<std::uint64_t>(front.size(), *file_bytes));
  return says_checkpoint(ByteView(front));
}

Result<FoundCheckpoints> find_checkpoints(const std::vector<std::string>& paths, Wanted wanted) {
  FoundCheckpoints found;
  for (const std::string& path : paths) {
    SHOAL_ASSIGN(const file_type kind, kind_of(path));
    SHOAL_TRY(kind == file_type::directory ? add_folder(path, wanted, found) : add_named(path, wanted, found));
  }
  keep_first_of_each(found.checkpoints);
  keep_first_of_each(found.left);
  if (found.checkpoints.empty() && found.left.empty()) return none_in(paths);
  return found;
}

Result<std::vector<std::string>> left_checkpoints(const std::string& folder, const std::optional<PeerId>& peer) {
  SHOAL_ASSIGN(std::vector<std::string> left, left_temporaries(folder));
  std::erase_if(left, [&peer](const std::string& path) {
    return !is_checkpoint_name(replaced_name(std::filesystem::path(path).filename().string()), peer);
  });
  std::ranges::sort(left);
  return left;
}

void read_each(const std::vector<std::string>& found, const std::function<void(CheckpointFile)>& take) {
  HeadwayMeter meter;
  for (std::size_t i = 0; i < found.size(); ++i) {
    Result<Bytes> bytes = read_file(found[i], kCheckpointBytesMax);
    const std::uint64_t size = bytes.ok() ? bytes->size() : 0;
    take({found[i], size, bytes.ok() ? parse_checkpoint(*bytes) : Result<Checkpoint>(bytes.error())});
    show_headway(meter, {.what = "reading checkpoints", .done = i + 1, .total = found.size()});
  }
  end_status();
}

CheckpointFile left_file(const std::string& path) {
  std::error_code failure;
  const std::uintmax_t bytes = std::filesystem::file_size(path, failure);
  return {path, failure ? 0 : bytes,
          make_error(ErrorCode::kGone,
                     "left by a process that died while it wrote a checkpoint. HINT: `shoal "
                     "checkpoint prune` removes it")};
}

std::string judgement(const CheckpointFile& file) {
  const std::string why = file.read.ok() ? "ok" : file.read.error().message;
  return printable(why.starts_with(file.path) ? why : file.path + ": " + why);
}

std::string utc_of(std::uint64_t seconds) {
  constexpr std::uint64_t kYear10000 = 253'402'300'800;
  const auto when = static_cast<std::time_t>(seconds);
  std::tm parts{};
  char text[32];
  if (seconds >= kYear10000 || ::gmtime_r(&when, &parts) == nullptr) return "?";
  return std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0 ? "?" : text;
}

Json json_of(const CheckpointFile& file) {
  Json out = {{"schema", "shoal.checkpoint/1"}, {"path", file.path}, {"ok", file.read.ok()}};
  if (!file.read.ok()) {
    out.set("problem", file.read.error().message);
    return out;
  }
  const CheckpointInfo& info = file.read->info;
  out.set("run", hex_of(info.run));
  out.set("stage", info.state.stage.value);
  out.set("version", info.state.version.value);
  out.set("rule", name_of(info.state.rule));
  out.set("parameters", info.state.floats);
  out.set("bytes", file.bytes);
  out.set("saved", utc_of(info.saved_s));
  out.set("sequence", info.sequence);
  out.set("peer", hex_of(info.peer));
  out.set("digest", hex_of(info.digest));
  return out;
}

}  // namespace shoal
