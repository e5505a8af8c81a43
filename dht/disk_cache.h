#pragma once
// The last good records and DHT nodes of one run on disk, so that a process that starts while the DHT is away knows
// whom to dial. One JSON object a line: records as they stand in the DHT, and {"node":"host:port"}. Nothing read back
// is trusted: the reader verifies every record again, and a line that is none of both is skipped. Thread: loop only.
// Ownership: borrows the Storage, which outlives it.   Bounds: kCacheRecordsMax records, kCacheNodesMax nodes.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/storage.h"
#include "dht/peer_directory.h"

namespace shoal {

inline constexpr std::size_t kCacheRecordsMax = 256;
inline constexpr std::size_t kCacheNodesMax = 64;

struct CacheContent {
  std::vector<std::string> records;  // newest first
  std::vector<std::string> nodes;    // "host:port" of DHT nodes
};

std::string pack_cache(const CacheContent& content);  // what is over the bounds is left out
CacheContent parse_cache(std::string_view text);      // never fails: bad lines are skipped

class DiskCache {
 public:
  // An empty path makes a cache that holds nothing.
  DiskCache(Storage* storage, std::string path) : storage_(storage), path_(std::move(path)) {}
  ~DiskCache() { state_->gone = true; }  // a save that is under way goes on
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // An absent, unreadable or oversized file is an empty cache.
  CacheContent load() const;
  // Replaces the file atomically. While one replacement is under way only the newest later content is kept.
  void save(const CacheContent& content);
  // How the last finished save ended.
  const Status& last_status() const { return state_->last; }

 private:
  struct State {  // outlives the cache while a save is under way
    bool under_way = false;
    bool again = false;
    bool gone = false;
    std::string next;
    Status last;
  };
  static void write(Storage* storage, const std::string& path, const std::shared_ptr<State>& state, std::string text);

  Storage* storage_;
  std::string path_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace shoal
