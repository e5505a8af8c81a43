#include "runtime/peer/checkpointing.h"

#include "state/checkpoint.h"
#include "state/state_image.h"

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
  written_ = newest.info.state.version;
  KeptState::Images images;
  images.push_back({.stage = newest.info.state.stage,
                    .version = newest.info.state.version,
                    .digest = newest.info.digest,
                    .bytes = std::move(newest.image)});
  return images;
}

void Checkpointing::set_policy(Duration every, std::size_t keep) {
  every_ = every;
  if (store_) store_->keep(keep);
}

bool Checkpointing::due(Version version) const {
  return store_ && phase_ == Phase::kIdle && every_ > Duration(0) && version > Version(0) && written_ != version &&
         loop_.now() >= next_;
}

void Checkpointing::making() {
  phase_ = Phase::kMaking;
  next_ = loop_.now() + every_;
}

void Checkpointing::made(Bytes image) {
  if (phase_ != Phase::kMaking) return;  // of a session that is over, and another one is on its way
  phase_ = Phase::kWriting;
  auto cut = std::make_shared<Cut>();
  const auto saved = std::chrono::duration_cast<std::chrono::seconds>(loop_.wall().time_since_epoch()).count();
  aside_.run(
      WorkKind::kAside,
      [cut, image = std::move(image), key = options_.key,
       origin = CheckpointOrigin{.run = options_.run,
                                 .sequence = store_->next_sequence(),
                                 .saved_s = static_cast<std::uint64_t>(std::max<decltype(saved)>(saved, 0))}] {
        cut->version = parse_state_header(image)->version;
        cut->parts = checkpoint_parts(origin, image, key);
      },
      lifetime_.guard([this, cut] { write(std::move(*cut)); }));
}

void Checkpointing::write(Cut cut) {
  store_->save(cut.parts, lifetime_.guard([this, version = cut.version](const Status& saved) {
    phase_ = Phase::kIdle;
    for (const std::string& problem : store_->take_problems())
      say_("a copy of a checkpoint was not written: " + problem);
    if (saved.ok()) {
      written_ = version;
    } else {
      say_("no checkpoint of version " + std::to_string(version.value) + ": " + saved.error().message +
           ". The run goes on; what this machine had written before stays");
    }
  }));
}

}  // namespace shoal
