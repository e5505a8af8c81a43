#include "dht/dht_directory.h"

#include <algorithm>
#include <utility>

#include "common/log.h"

namespace shoal {
namespace {

constexpr Duration kRetryAfter = 500ms;  // between two questions of one look-up
constexpr Duration kSaveAfter = 2s;      // changes of so long go to disk together
constexpr int kEmptyAnswersMax = 2;      // from a DHT that is joined, before "none" is believed
constexpr std::size_t kWatchedMax = 1024;
constexpr std::size_t kGetsMax = 4096;

}  // namespace

DhtDirectory::DhtDirectory(EventLoop& loop, std::unique_ptr<DhtAccess> access, Storage* storage,
                           DhtDirectoryOptions options)
    : loop_(loop),
      access_(std::move(access)),
      options_(std::move(options)),
      rng_(options_.seed),
      table_(options_.run, rng_.fork("table")),
      cache_(storage, options_.cache_path) {
  const CacheContent content = cache_.load();
  for (const std::string& text : content.records) {
    // What a disk gave back is input: a record that does not fit is counted by the table and left out.
    if (!table_.restore(text, loop_.wall()).ok()) continue;
  }
  learned_nodes_ = content.nodes;
  access_->set_listener(this);
  schedule_refresh();
}

DhtDirectory::~DhtDirectory() {
  access_->set_listener(nullptr);
  for (auto& [id, look_up] : look_ups_) {
    loop_.cancel(look_up.budget_timer);
    if (look_up.retry_timer != 0) loop_.cancel(look_up.retry_timer);
  }
  loop_.cancel(refresh_timer_);
  if (publish_timer_ != 0) loop_.cancel(publish_timer_);
  if (save_timer_ != 0) {
    loop_.cancel(save_timer_);
    cache_.save({table_.remembered_texts(kCacheRecordsMax, loop_.wall()), learned_nodes_});
  }
}

Duration DhtDirectory::jitter(Duration most) { return std::chrono::duration_cast<Duration>(most * rng_.uniform()); }

// ---- our own records ----

void DhtDirectory::announce(std::string signed_record, std::string key) {
  const auto record = parse_any_record(signed_record);
  SHOAL_CHECK(record.ok());
  SHOAL_CHECK_EQ(key_of(*record), key);
  SHOAL_CHECK(own_.size() < kOwnRecordsMax || own_.contains(key));
  // Also in our own table: peer exchange passes it on. An older one than others hold is refused there and by every
  // reader.
  if (const auto taken = table_.offer(signed_record, loop_.wall()); !taken.ok())
    log_warning("our own record is of no use to others: ", taken.error().message, " (is the clock right?)");
  Own& own = own_[key];
  own.text = std::move(signed_record);
  publish(key, own);
  save_soon();
}

void DhtDirectory::publish(const std::string& key, Own& own) {
  if (!up_) return;
  if (own.id == 0 || own.serial >= options_.serial_max) {
    if (own.id != 0) access_->withdraw(key, own.id);
    own.id = rng_.next() | 1;
    own.serial = 0;
  }
  own.kept = true;
  access_->put(key, own.id, ++own.serial, own.text);
}

void DhtDirectory::withdraw(const std::string& key) {
  const auto found = own_.find(key);
  if (found == own_.end()) return;
  Own& own = found->second;
  if (up_ && own.id != 0) access_->withdraw(key, own.id);
  own_.erase(found);
}

// ---- the DHT came, went, says something ----

void DhtDirectory::on_dht_up(std::uint16_t port) {
  up_ = true;
  port_ = port;
  join_network();
  if (publish_timer_ != 0) loop_.cancel(publish_timer_);
  publish_timer_ = loop_.after(jitter(200ms), [this] {
    publish_timer_ = 0;
    for (auto& [key, own] : own_) publish(key, own);
  });
  for (auto& [id, look_up] : look_ups_) ask(id);
}

void DhtDirectory::join_network() {
  for (const std::string& address : options_.bootstrap) access_->bootstrap(address);
  for (const std::string& address : learned_nodes_) access_->bootstrap(address);
}

void DhtDirectory::on_dht_down(const Error& cause) {
  log_debug("DHT down: ", cause.message);
  up_ = false;
  falls_.push_back(loop_.now());
  if (falls_.size() > kFallsMax) falls_.pop_front();
  status_ = {};
  gets_.clear();
  for (auto& [key, own] : own_) own.kept = false;
  // Look-ups wait for it to come back, until their budgets end; those that memory can answer end now.
  std::vector<std::uint64_t> answered;
  for (auto& [id, look_up] : look_ups_) {
    look_up.tag = 0;
    if (look_up.found()) answered.push_back(id);
  }
  const Lifetime::Watch life = lifetime_.watch();
  for (std::uint64_t id : answered) {
    end_look_up(id);
    if (life.over()) return;
  }
}

void DhtDirectory::on_dht_value(std::uint64_t tag, const std::string& text) {
  if (!gets_.contains(tag)) return;
  const auto taken = table_.offer(text, loop_.wall());
  if (taken.ok() && *taken) save_soon();
  if (const std::string apart = clocks_apart(); !apart.empty() && !std::exchange(told_of_clocks_, true))
    log_warning(apart, ": such records are refused. HINT: is this machine's clock right (`timedatectl`)?");
}

void DhtDirectory::on_dht_done(std::uint64_t tag) {
  const auto found = gets_.find(tag);
  if (found == gets_.end()) return;
  const std::uint64_t id = found->second;
  gets_.erase(found);
  const auto waiting = look_ups_.find(id);
  if (waiting == look_ups_.end()) return;
  LookUp& look_up = waiting->second;
  look_up.tag = 0;
  if (status_.good_nodes > 0) ++look_up.empty_answers;
  if (look_up.found() || look_up.empty_answers >= kEmptyAnswersMax) return end_look_up(id);
  // One may be pending: the DHT came back meanwhile and was asked at once.
  if (look_up.retry_timer != 0) loop_.cancel(look_up.retry_timer);
  look_up.retry_timer = loop_.after(kRetryAfter, [this, id] {
    const auto still = look_ups_.find(id);
    if (still == look_ups_.end()) return;
    still->second.retry_timer = 0;
    ask(id);
  });
}

void DhtDirectory::on_dht_status(const DhtStatus& status) {
  status_ = status;
  if (!status.nodes.empty() && status.nodes != learned_nodes_) {
    const bool more = learned_nodes_.empty();
    learned_nodes_ = status.nodes;
    if (more) save_soon();
  }
}

// ---- look-ups ----

void DhtDirectory::look_up_stage(StageId stage, Duration budget, std::function<void(std::vector<PeerRecord>)> done) {
  look_up(
      stage_key(options_.run, stage), budget, [this, stage] { return !table_.stage(stage, loop_.wall()).empty(); },
      [this, stage, done = std::move(done)] {
        std::vector<PeerRecord> records = table_.stage(stage, loop_.wall());
        if (records.empty()) records = table_.remembered_stage(stage, loop_.wall());
        done(std::move(records));
      });
}

void DhtDirectory::look_up_run(Duration budget, std::function<void(Result<RunRecord>)> done) {
  const auto live = [this] {
    const auto record = table_.run_record(loop_.wall());
    return record && is_live(record->expires, loop_.wall());
  };
  look_up(run_key_name(options_.run), budget, live, [this, done = std::move(done)] {
    if (auto record = table_.run_record(loop_.wall())) return done(std::move(*record));
    done(make_error(ErrorCode::kTimeout, "no record of run " + short_name(options_.run) +
                                             " was found in the DHT\nHINT: is the launching process up, and "
                                             "is a DHT node of this run reachable over UDP?"));
  });
}

void DhtDirectory::look_up_standing(std::uint16_t part, Duration budget,
                                    std::function<void(Result<StandingRecord>)> done) {
  const auto live = [this, part] {
    const auto record = table_.standing(part, loop_.wall());
    return record && is_live(record->expires, loop_.wall());
  };
  look_up(standing_key(options_.run, part), budget, live, [this, part, done = std::move(done)] {
    if (auto record = table_.standing(part, loop_.wall())) return done(std::move(*record));
    done(make_error(ErrorCode::kTimeout, "how run " + short_name(options_.run) + " stands was not found in the DHT"));
  });
}

void DhtDirectory::look_up(std::string key, Duration budget, std::function<bool()> found,
                           std::function<void()> finish) {
  if (watched_.size() < kWatchedMax || watched_.contains(key)) watched_[key] = loop_.now() + kWatchedFor;
  if ((!up_ && found()) || look_ups_.size() >= kLookUpsMax) {
    loop_.post(lifetime_.guard(std::move(finish)));
    return;
  }
  const std::uint64_t id = next_++;
  LookUp& look_up = look_ups_[id];
  look_up.key = std::move(key);
  look_up.until = loop_.now() + budget;
  look_up.found = std::move(found);
  look_up.finish = std::move(finish);
  look_up.budget_timer = loop_.at(look_up.until, [this, id] { end_look_up(id); });
  ask(id);
}

void DhtDirectory::ask(std::uint64_t id) {
  LookUp& look_up = look_ups_.at(id);
  if (!up_ || look_up.tag != 0 || gets_.size() >= kGetsMax) return;
  look_up.tag = next_++;
  gets_[look_up.tag] = id;
  access_->get(look_up.tag, look_up.key);
}

void DhtDirectory::end_look_up(std::uint64_t id) {
  const auto found = look_ups_.find(id);
  if (found == look_ups_.end()) return;
  LookUp look_up = std::move(found->second);
  look_ups_.erase(found);
  loop_.cancel(look_up.budget_timer);
  if (look_up.retry_timer != 0) loop_.cancel(look_up.retry_timer);
  gets_.erase(look_up.tag);
  look_up.finish();  // last: it may look up again, or end this object
}

// ---- upkeep ----

void DhtDirectory::schedule_refresh() {
  const Duration period = std::chrono::duration_cast<Duration>(options_.refresh * 0.9) + jitter(options_.refresh / 5);
  refresh_timer_ = loop_.after(period, [this] {
    refresh();
    schedule_refresh();
  });
}

void DhtDirectory::refresh() {
  // What was asked half a lifetime ago and never ended will not end.
  std::erase_if(gets_, [](const auto& get) { return get.second == 0; });
  for (auto& [key, own] : own_) {
    const auto record = parse_any_record(own.text);
    if (is_live(expires_of(*record), loop_.wall()) || !std::exchange(own.kept, false) || !up_) continue;
    // Nobody would believe it any more: stop keeping it alive.
    access_->withdraw(key, own.id);
  }
  for (auto it = watched_.begin(); it != watched_.end();) {
    if (it->second <= loop_.now()) {
      it = watched_.erase(it);
      continue;
    }
    if (up_ && gets_.size() < kGetsMax) {
      const std::uint64_t tag = next_++;
      gets_[tag] = 0;
      access_->get(tag, it->first);
    }
    ++it;
  }
  // Nodes that the DHT lost meanwhile are asked again: after an outage on both sides nobody else would begin.
  if (up_ && status_.good_nodes == 0) join_network();
}

void DhtDirectory::save_soon() {
  if (save_timer_ != 0) return;
  save_timer_ = loop_.after(kSaveAfter, [this] {
    save_timer_ = 0;
    cache_.save({table_.remembered_texts(kCacheRecordsMax, loop_.wall()), learned_nodes_});
  });
}

void DhtDirectory::offer(const std::vector<std::string>& signed_records) {
  bool news = false;
  for (std::size_t i = 0; i < std::min(signed_records.size(), kExchangedMax); ++i) {
    const auto taken = table_.offer(signed_records[i], loop_.wall());
    news |= taken.ok() && *taken;
  }
  if (news) save_soon();
}

std::uint32_t DhtDirectory::falls() const {
  return static_cast<std::uint32_t>(
      std::count_if(falls_.begin(), falls_.end(), [&](TimePoint at) { return loop_.now() - at < kFallsWindow; }));
}

std::vector<std::string> DhtDirectory::known(std::size_t limit) const { return table_.live_texts(limit, loop_.wall()); }

}  // namespace shoal
