#include "runtime/peer/checkpointing.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "state/checkpoint.h"
#include "state/state_image.h"
#include "transport/limits.h"

namespace shoal {

Checkpointing::Checkpointing(Options options, Storage* storage, EventLoop& loop, WorkQueue& aside, Say say)
    : options_(std::move(options)), storage_(storage), loop_(loop), aside_(aside), say_(std::move(say)) {
  if (storage_ != nullptr && !options_.folders.empty())
    store_ = std::make_unique<CheckpointStore>(*storage_, options_.folders, options_.run, options_.key.id());
}

KeptState::Images Checkpointing::load() {
  if (!store_) return {};
  CheckpointStore::Loaded loaded = store_->load();
  for (const std::string& problem : loaded.problems) say_("a checkpoint cannot be used: " + problem);
  if (!loaded.newest) return {};
  Checkpoint& newest = *loaded.newest;
  const Duration age = loop_.wall() - WallTime(std::chrono::seconds(newest.info.saved_s));
  written_ = {.stage = newest.info.state.stage,
              .version = newest.info.state.version,
              .made = loop_.now() - std::max<Duration>(age, Duration(0))};
  KeptState::Images images;
  images.push_back({.stage = newest.info.state.stage,
                    .version = newest.info.state.version,
                    .digest = newest.info.digest,
                    .bytes = std::move(newest.image)});
  return images;
}

std::vector<HeldState> Checkpointing::held(StageId stage, const KeptState& kept) const {
  std::vector<HeldState> all = store_ ? store_->usable(stage) : std::vector<HeldState>{};
  if (const auto one = kept.held(stage); one && std::ranges::find(all, *one) == all.end()) all.push_back(*one);
  std::ranges::stable_sort(all, std::greater(), &HeldState::version);
  if (all.size() > limits::kHeldStatesMax) all.resize(limits::kHeldStatesMax);
  return all;
}

std::optional<Bytes> Checkpointing::read(StageId stage, const Digest& digest) {
  if (!store_) return std::nullopt;
  Result<Checkpoint> read = store_->read(stage, digest);
  if (read.ok()) return std::move(read->image);
  if (read.code() != ErrorCode::kMissing) say_("a checkpoint cannot be used: " + read.error().message);
  return std::nullopt;
}

void Checkpointing::set_policy(Duration every, std::size_t keep) {
  every_ = every;
  if (store_) store_->keep(keep);
}

bool Checkpointing::due(Version version) const {
  if (!store_ || phase_ != Phase::kIdle || version == Version(0) || (written_ && written_->version == version))
    return false;
  return hurried_ || (every_ > Duration(0) && loop_.now() >= next_);
}

void Checkpointing::making() {
  phase_ = Phase::kMaking;
  next_ = loop_.now() + every_;
}

void Checkpointing::made(Bytes image) {
  if (phase_ != Phase::kMaking) return;  // of a session that is over, and another one is on its way
  phase_ = Phase::kWriting;
  auto cut = std::make_shared<Cut>();
  cut->made = loop_.now();
  const auto saved = std::chrono::duration_cast<std::chrono::seconds>(loop_.wall().time_since_epoch()).count();
  aside_.run(
      WorkKind::kAside,
      [cut, image = std::move(image), key = options_.key,
       origin = CheckpointOrigin{.run = options_.run,
                                 .sequence = store_->next_sequence(),
                                 .saved_s = static_cast<std::uint64_t>(std::max<decltype(saved)>(saved, 0))}] {
        cut->state = *parse_state_header(image);
        cut->parts = checkpoint_parts(origin, image, key);
      },
      lifetime_.guard([this, cut] { write(std::move(*cut)); }));
}

void Checkpointing::write(Cut cut) {
  store_->save(cut.parts, lifetime_.guard([this, state = cut.state, made = cut.made](const Status& saved) {
    on_written(state, made, saved);
  }));
}

void Checkpointing::on_written(const StateHeader& state, TimePoint made, const Status& saved) {
  phase_ = Phase::kIdle;
  std::string copies;
  for (const std::string& problem : store_->take_problems()) copies += (copies.empty() ? "" : "; ") + problem;
  const std::string hint = ". HINT: make room there, or give another folder with --checkpoints DIR";
  if (copies != copies_said_ && !copies.empty()) say_("a copy of a checkpoint was not written: " + copies + hint);
  copies_said_ = copies;
  if (saved.ok()) {
    if (!std::exchange(failure_said_, "").empty())
      say_("checkpoints are written again: version " + std::to_string(state.version.value));
    written_ = {.stage = state.stage, .version = state.version, .made = made};
    return;
  }
  if (std::exchange(failure_said_, saved.error().message) == saved.error().message) return;
  say_("no checkpoint of version " + std::to_string(state.version.value) + ": " + saved.error().message +
       ". The run goes on, what this machine had written before stays, and each later one is tried" + hint);
}

std::optional<DiskState> Checkpointing::newest(StageId stage) const {
  if (!written_ || written_->stage != stage) return std::nullopt;
  const auto age = std::chrono::floor<std::chrono::seconds>(loop_.now() - written_->made).count();
  return DiskState{.version = written_->version,
                   .age_s = static_cast<std::uint32_t>(std::clamp<std::int64_t>(age, 0, UINT32_MAX))};
}

}  // namespace shoal
