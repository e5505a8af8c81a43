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

CheckpointStore::Loaded CheckpointStore::load() {
  struct Found {
    std::size_t slot;
    std::string path;
    CheckpointHead head;
  };
  Loaded loaded;
  std::vector<Found> found;
  for (std::size_t slot = 0; slot < kSlotsMax; ++slot) {
    for (const std::string& folder : folders_) {
      const std::string path = path_of(folder, slot);
      Result<CheckpointHead> head = read_head(path);
      if (head.ok())
        found.push_back({slot, path, *std::move(head)});
      else if (head.code() != ErrorCode::kMissing)
        loaded.problems.push_back(path + ": " + head.error().message);
    }
  }
  std::ranges::stable_sort(found, std::greater(), [](const Found& one) { return one.head.info.sequence; });
  while (!found.empty() && !loaded.newest) {
    const Found& one = found.front();
    Result<Checkpoint> read = read_checkpoint(one.head, [&](std::uint64_t at, MutableByteView into) -> Status {
      SHOAL_TRY(storage_.read_at(one.path, at, into));
      return {};
    });
    if (read.ok()) {
      sequence_ = read->info.sequence;
      loaded.newest = *std::move(read);
    } else {
      loaded.problems.push_back(one.path + ": " + read.error().message);
      found.erase(found.begin());
    }
  }
  for (const Found& one : found) taken_[one.slot] = std::max(taken_[one.slot], one.head.info.sequence);
  return loaded;
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
                     lifetime_.guard([this, outcome, slot, sequence, done](const Status& status) {
                       if (status.ok()) outcome->saved = true;
                       if (!status.ok()) outcome->errors.push_back(status.error());
                       if (--outcome->open > 0) return;
                       if (!outcome->saved) return done(outcome->errors.front());
                       taken_[slot] = sequence_ = sequence;
                       for (const Error& error : outcome->errors) problems_.push_back(error.message);
                       done(Status::success());
                     }));
}

}  // namespace shoal
