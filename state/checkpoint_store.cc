#include "state/checkpoint_store.h"

#include <algorithm>
#include <functional>
#include <memory>

namespace shoal {
namespace {

constexpr std::string_view kBegin = "checkpoint-", kEnd = ".safetensors";
constexpr std::size_t kKeyDigits = 16;

std::string key_part(const std::string& hex) { return hex.substr(0, kKeyDigits); }

}  // namespace

std::string checkpoint_name(const RunId& run, const PeerId& peer, std::size_t slot) {
  return std::string(kBegin) + key_part(hex_of(run)) + "-" + key_part(hex_of(peer)) + "-" + std::to_string(slot) +
         std::string(kEnd);
}

bool is_checkpoint_name(std::string_view name, const std::optional<PeerId>& peer) {
  constexpr std::size_t kKeys = 2 * (kKeyDigits + 1);
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return false;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(std::min(name.size(), kEnd.size()));
  if (name.size() <= kKeys || name[kKeyDigits] != '-' || name[kKeys - 1] != '-') return false;
  const std::string_view run = name.substr(0, kKeyDigits), of = name.substr(kKeyDigits + 1, kKeyDigits),
                         slot = name.substr(kKeys);
  constexpr std::string_view kHex = "0123456789abcdef", kDecimal = kHex.substr(0, 10);
  const bool formed = run.find_first_not_of(kHex) == run.npos && of.find_first_not_of(kHex) == of.npos &&
                      slot.find_first_not_of(kDecimal) == slot.npos;
  return formed && (!peer || of == key_part(hex_of(*peer)));
}

CheckpointStore::CheckpointStore(Storage& storage, std::vector<std::string> folders, const RunId& run,
                                 const PeerId& peer)
    : storage_(storage), folders_(std::move(folders)), run_(run), peer_(peer) {
  SHOAL_CHECK(!folders_.empty());
}

std::string CheckpointStore::path_of(const std::string& folder, std::size_t slot) const {
  return folder + "/" + checkpoint_name(run_, peer_, slot);
}

Result<CheckpointHead> CheckpointStore::read_head(const std::string& path) const {
  std::vector<std::uint8_t> front(kCheckpointHeadBytesMax);
  SHOAL_ASSIGN(const std::uint64_t file_bytes, storage_.read_at(path, 0, front));
  front.resize(std::min<std::uint64_t>(front.size(), file_bytes));
  SHOAL_ASSIGN(CheckpointHead head, parse_checkpoint_head(front, file_bytes));
  if (head.info.run != run_ || head.info.peer != peer_)
    return make_error(ErrorCode::kForeign, "checkpoint: of another run or another peer");
  return head;
}

Result<Checkpoint> CheckpointStore::read_whole(const Found& one) const {
  return read_checkpoint(one.head, [&](std::uint64_t at, MutableByteView into) -> Status {
    SHOAL_TRY(storage_.read_at(one.path, at, into));
    return {};
  });
}

CheckpointStore::Loaded CheckpointStore::load() {
  Loaded loaded;
  for (std::size_t slot = 0; slot < kSlotsMax; ++slot) {
    for (const std::string& folder : folders_) {
      const std::string path = path_of(folder, slot);
      Result<CheckpointHead> head = read_head(path);
      if (head.ok())
        found_.push_back({slot, path, *std::move(head)});
      else if (head.code() != ErrorCode::kMissing)
        loaded.problems.push_back(path + ": " + head.error().message);
    }
  }
  std::ranges::stable_sort(found_, std::greater(), [](const Found& one) { return one.head.info.sequence; });
  while (!found_.empty() && !loaded.newest) {
    Result<Checkpoint> read = read_whole(found_.front());
    if (read.ok()) {
      sequence_ = read->info.sequence;
      loaded.newest = *std::move(read);
    } else {
      loaded.problems.push_back(found_.front().path + ": " + read.error().message);
      found_.erase(found_.begin());
    }
  }
  for (const Found& one : found_) taken_[one.slot] = std::max(taken_[one.slot], one.head.info.sequence);
  return loaded;
}

std::vector<HeldState> CheckpointStore::usable(StageId stage) const {
  std::vector<HeldState> all;
  for (const Found& one : found_) {
    const HeldState state{one.head.info.state.version, one.head.info.digest};
    if (one.head.info.state.stage == stage && std::ranges::find(all, state) == all.end()) all.push_back(state);
  }
  return all;
}

Result<Checkpoint> CheckpointStore::read(StageId stage, const Digest& digest) {
  const auto is_wanted = [&](const Found& one) {
    return one.head.info.state.stage == stage && one.head.info.digest == digest;
  };
  Error failure = make_error(ErrorCode::kMissing, "no checkpoint has this content");
  for (auto one = std::ranges::find_if(found_, is_wanted); one != found_.end();
       one = std::find_if(found_.erase(one), found_.end(), is_wanted)) {
    Result<Checkpoint> read = read_whole(*one);
    if (read.ok()) return read;
    failure = make_error(read.code(), one->path + ": " + read.error().message);
  }
  return failure;
}

// The one that it took the place of is gone.
void CheckpointStore::note_saved(std::size_t slot, const std::string& path, const std::vector<Bytes>& parts) {
  std::erase_if(found_, [&](const Found& one) { return one.path == path; });
  std::uint64_t bytes = 0;
  for (const Bytes& part : parts) bytes += part.size();
  if (auto head = parse_checkpoint_head(parts.front(), bytes); head.ok())
    found_.insert(found_.begin(), {slot, path, *std::move(head)});
}

void CheckpointStore::keep(std::size_t slots) { slots_ = std::clamp(slots, kSlotsMin, kSlotsMax); }

void CheckpointStore::save(const std::vector<Bytes>& parts, std::function<void(Status)> done) {
  const auto end = taken_.begin() + static_cast<std::ptrdiff_t>(slots_);
  const auto slot = static_cast<std::size_t>(std::min_element(taken_.begin(), end) - taken_.begin());
  const std::uint64_t sequence = next_sequence();
  struct Outcome {
    std::size_t open;
    bool saved = false;
    std::vector<Error> errors{};
  };
  auto outcome = std::make_shared<Outcome>(Outcome{.open = folders_.size()});
  for (const std::string& folder : folders_)
    storage_.replace(path_of(folder, slot), parts,
                     lifetime_.guard([this, outcome, slot, sequence, done, path = path_of(folder, slot),
                                      parts](const Status& status) {
                       if (status.ok()) outcome->saved = true;
                       if (status.ok()) note_saved(slot, path, parts);
                       if (!status.ok()) outcome->errors.push_back(status.error());
                       if (--outcome->open > 0) return;
                       if (!outcome->saved) return done(outcome->errors.front());
                       taken_[slot] = sequence_ = sequence;
                       for (const Error& error : outcome->errors) problems_.push_back(error.message);
                       done(Status::success());
                     }));
}

}  // namespace shoal
