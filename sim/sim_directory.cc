#include "sim/sim_directory.h"

#include <algorithm>

namespace shoal {
namespace {

constexpr std::uint16_t kSimPort = 4222;

}  // namespace

void SimDht::set_outage(bool outage) {
  if (outage_ == outage) return;
  outage_ = outage;
  for (SimDhtAccess* access : accesses_) outage ? access->go_down() : access->come_up_after(delay_);
}

void SimDht::inject(const std::string& key, std::uint64_t id, const std::string& text) {
  store(nullptr, key, id, 1, text, loop_.now() + kRecordTtl);
}

std::vector<std::string> SimDht::values(const std::string& key) const {
  std::vector<std::string> out;
  const auto found = table_.find(key);
  if (found == table_.end()) return out;
  for (const auto& [id, value] : found->second)
    if (loop_.now() < value.until) out.push_back(value.text);
  return out;
}

void SimDht::store(const SimDhtAccess* owner, const std::string& key, std::uint64_t id, std::uint16_t serial,
                   const std::string& text, TimePoint until) {
  auto& values = table_[key];
  std::erase_if(values, [&](const auto& entry) { return loop_.now() >= entry.second.until; });
  const auto found = values.find(id);
  if (found != values.end() && found->second.serial >= serial) return;
  if (found == values.end() && values.size() >= kSimValuesPerKeyMax) return;
  values[id] = Value{serial, text, until, owner};
}

void SimDht::forget_owner(const SimDhtAccess* owner) {
  for (auto& [key, values] : table_) {
    for (auto& [id, value] : values) {
      if (value.owner != owner) continue;
      value.owner = nullptr;
      value.until = std::min(value.until, loop_.now() + kRecordTtl);
    }
  }
}

SimDhtAccess::SimDhtAccess(SimDht& dht, EventLoop& loop) : dht_(dht), loop_(loop) {
  dht_.accesses_.push_back(this);
  if (!dht_.outage_) come_up_after(dht_.delay_);
}

SimDhtAccess::~SimDhtAccess() {
  dht_.forget_owner(this);
  std::erase(dht_.accesses_, this);
}

void SimDhtAccess::come_up_after(Duration delay) {
  loop_.after(delay, lifetime_.guard([this, life = life_] {
    if (life != life_ || up_) return;
    up_ = true;
    if (listener_ == nullptr) return;
    listener_->on_dht_up(kSimPort);
    if (listener_ != nullptr)
      listener_->on_dht_status(
          {.good_nodes = 8, .dubious_nodes = 0, .stored_values = 0, .stored_bytes = 0, .nodes = {}});
  }));
}

void SimDhtAccess::go_down() {
  ++life_;
  dht_.forget_owner(this);
  if (!std::exchange(up_, false)) return;
  loop_.post(lifetime_.guard([this, life = life_] {
    if (life != life_ || listener_ == nullptr) return;
    listener_->on_dht_down(make_error(ErrorCode::kUnreachable, "the simulated DHT is out"));
  }));
}

void SimDhtAccess::put(const std::string& key, std::uint64_t id, std::uint16_t serial, const std::string& text) {
  if (!up_) return;
  dht_.loop_.after(dht_.delay_, lifetime_.guard([this, key, id, serial, text, life = life_] {
    if (life == life_ && !dht_.stale_) dht_.store(this, key, id, serial, text, TimePoint::max());
  }));
}

void SimDhtAccess::withdraw(const std::string& key, std::uint64_t id) {
  if (!up_) return;
  dht_.loop_.after(dht_.delay_, [&dht = dht_, key, id] {
    auto& values = dht.table_[key];
    const auto found = values.find(id);
    if (found == values.end()) return;
    found->second.owner = nullptr;
    found->second.until = std::min(found->second.until, dht.loop_.now() + kRecordTtl);
  });
}

void SimDhtAccess::get(std::uint64_t tag, const std::string& key) {
  if (!up_) return;
  const bool lost = dht_.rng_.chance(dht_.answer_loss_);
  loop_.after(2 * dht_.delay_, lifetime_.guard([this, tag, key, lost, life = life_] {
    if (life != life_) return;
    std::vector<std::string> values = lost ? std::vector<std::string>() : dht_.values(key);
    dht_.rng_.shuffle(values);
    for (const std::string& text : values)
      if (listener_ != nullptr) listener_->on_dht_value(tag, text);
    if (listener_ != nullptr) listener_->on_dht_done(tag);
  }));
}

std::unique_ptr<DhtDirectory> make_sim_directory(SimDht& dht, EventLoop& loop, Storage* storage,
                                                 DhtDirectoryOptions options) {
  return std::make_unique<DhtDirectory>(loop, std::make_unique<SimDhtAccess>(dht, loop), storage, std::move(options));
}

}  // namespace shoal
