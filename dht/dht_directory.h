#pragma once
// PeerDirectory over a DHT that may be away: verifies what comes, remembers it, refreshes it, and keeps our own records
// published. The same code runs over the supervised child and over the simulated table.
//
// look_up_*: answers at once from memory while the DHT is away and memory has live records. Otherwise asks, and asks
// again until a live record is held, the DHT has twice said that there is none, or the budget ends. What is then held
// and live is the answer; when nothing is, the last good records (expired, at most a day old) are, as a hint where to
// dial. A key that was looked up is asked for again every TTL/2 for kWatchedFor.
//
// Thread: loop only; callbacks run on the loop, never from inside a call.   Ownership: owns the access; borrows loop
// and storage. Bounds: those of RecordTable and DiskCache; kLookUpsMax look-ups at a time (more answer from memory);
// kOwnRecordsMax of ours.
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/event_loop.h"
#include "common/lifetime.h"
#include "common/rng.h"
#include "common/storage.h"
#include "dht/dht_access.h"
#include "dht/disk_cache.h"
#include "dht/peer_directory.h"
#include "dht/record_table.h"

namespace shoal {

inline constexpr std::size_t kLookUpsMax = 1024;
inline constexpr std::size_t kOwnRecordsMax = 64;
inline constexpr std::size_t kFallsMax = 1024;
inline constexpr Duration kWatchedFor = std::chrono::minutes(10);

struct DhtDirectoryOptions {
  RunId run;
  std::vector<std::string> bootstrap;  // "host:port" of DHT nodes
  std::string cache_path;              // empty: nothing on disk
  std::uint64_t seed = 1;              // of jitter and value ids
  Duration refresh = kRecordTtl / 2;
  std::uint16_t serial_max = 60'000;  // of 65535: holders refuse a serial that wrapped, so a new value id is taken here
};

class DhtDirectory final : public PeerDirectory, private DhtAccess::Listener {
 public:
  // `storage` may be null. REQUIRES: loop and storage outlive it.
  DhtDirectory(EventLoop& loop, std::unique_ptr<DhtAccess> access, Storage* storage, DhtDirectoryOptions options);
  ~DhtDirectory() override;

  // REQUIRES: signed_record parses and belongs under `key`. Its sequence must be higher than that of every earlier one
  // of this key, also in earlier lives of the peer: wall-clock milliseconds do. A peer that announces makes a new one
  // well before it expires, kRecordTtl / 3 is good.
  void announce(std::string signed_record, std::string key) override;
  // The DHT forgets the record by its own time. A peer that leaves announces a last one with `serving` = false first,
  // and withdraws it later.
  void withdraw(const std::string& key) override;
  void look_up_stage(StageId stage, Duration budget, std::function<void(std::vector<PeerRecord>)> done) override;
  void look_up_run(Duration budget, std::function<void(Result<RunRecord>)> done) override;  // ERRORS: kTimeout
  void look_up_standing(std::uint16_t part, Duration budget, std::function<void(Result<StandingRecord>)> done) override;
  void offer(const std::vector<std::string>& signed_records) override;
  std::vector<std::string> known(std::size_t limit) const override;
  bool alive() const override { return access_->alive(); }
  std::uint32_t falls() const override;

  std::uint16_t port() const { return port_; }  // UDP, 0 before the first start
  std::uint32_t good_nodes() const { return status_.good_nodes; }
  const RecordCounters& counters() const { return table_.counters(); }
  std::string clocks_apart() const { return table_.clocks_apart(); }

 private:
  struct Own {
    std::string text;
    std::uint64_t id = 0;  // of the value: drawn anew for every life of this process
    std::uint16_t serial = 0;
    bool kept = false;  // put and not withdrawn since it expired
  };
  struct LookUp {
    std::string key;
    TimePoint until;
    std::function<bool()> found;
    std::function<void()> finish;
    std::uint64_t tag = 0;  // of the get under way, 0: none
    int empty_answers = 0;
    TimerId budget_timer = 0, retry_timer = 0;
  };

  void on_dht_up(std::uint16_t port) override;
  void on_dht_down(const Error& cause) override;
  void on_dht_value(std::uint64_t tag, const std::string& text) override;
  void on_dht_done(std::uint64_t tag) override;
  void on_dht_status(const DhtStatus& status) override;

  void publish(const std::string& key, Own& own);
  void join_network();
  void look_up(std::string key, Duration budget, std::function<bool()> found, std::function<void()> finish);
  void ask(std::uint64_t id);
  void end_look_up(std::uint64_t id);
  void refresh();
  void schedule_refresh();
  void save_soon();
  Duration jitter(Duration most);

  EventLoop& loop_;
  std::unique_ptr<DhtAccess> access_;
  DhtDirectoryOptions options_;
  Rng rng_;
  RecordTable table_;
  DiskCache cache_;
  std::vector<std::string> learned_nodes_;  // from the DHT or the cache
  DhtStatus status_;
  std::uint16_t port_ = 0;
  bool up_ = false;
  bool told_of_clocks_ = false;
  std::deque<TimePoint> falls_;  // the newest, at most kFallsMax

  std::map<std::string, Own> own_;
  std::map<std::uint64_t, LookUp> look_ups_;
  std::map<std::uint64_t, std::uint64_t> gets_;  // tag -> look-up, 0 for a refresh
  std::map<std::string, TimePoint> watched_;     // key -> until
  std::uint64_t next_ = 1;                       // the next tag or look-up id
  TimerId refresh_timer_ = 0, save_timer_ = 0, publish_timer_ = 0;
  Lifetime lifetime_;
};

}  // namespace shoal
