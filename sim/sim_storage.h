#pragma once
// Storage in memory for simulated processes: takes time, fails on demand. What was not synced outlives its process and
// not a power loss: the next process reads it, and it may be gone all the same.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/event_loop.h"
#include "common/lifetime.h"
#include "common/rng.h"
#include "common/storage.h"

namespace shoal {

// The disk of one simulated machine: outlives the processes on it. Thread: the simulation's.
class SimDisk {
 public:
  explicit SimDisk(std::uint64_t seed = 1) : rng_(seed) {}

  // ---- faults ----
  // Appends and replacements beyond this many bytes in all fail with kIo ("no space left").
  void set_capacity_bytes(std::size_t bytes) { capacity_bytes_ = bytes; }
  // Every later sync and replacement fails with kIo until cleared. As on Linux, a sync that failed leaves its pages in
  // the cache and takes them for written: they are read back, a later sync succeeds without them, and a power loss
  // makes zeros of them, unless they were written again.
  void set_failing(bool failing) { failing_ = failing; }
  // How long a sync or a replacement takes.
  void set_sync_delay(Duration delay) { sync_delay_ = delay; }
  // What follows is called after the storages on this disk are dead or told to die().
  // The process ended, the machine runs on: what was appended is there for the next process (the page cache) and is as
  // little synced as before; a replacement under way happened or not. Locks are gone.
  void process_died();
  // The machine lost its power: of every file what was not synced is cut at a random place, and of what is left there
  // some pages never reached the disk and are zeros, in any order. What is left then is synced. As process_died()
  // besides.
  void power_lost();

  // ---- for tests ----
  std::optional<std::vector<std::uint8_t>> content(const std::string& path) const;
  std::optional<std::vector<std::uint8_t>> durable_content(const std::string& path) const;
  void put(const std::string& path, std::vector<std::uint8_t> bytes);  // durable at once
  std::uint64_t syncs() const { return syncs_; }

 private:
  friend class SimStorage;
  friend class SimAppendFile;
  struct File {
    std::vector<std::uint8_t> bytes;
    std::size_t durable_bytes = 0;
    // Pages that a failed sync took for written, and of each from which byte on the disk does not have it.
    std::map<std::size_t, std::size_t> unwritten{};
    std::uint64_t lock = 0;  // 0: free
  };
  struct Replacement {
    std::string path;
    std::vector<std::uint8_t> bytes;
  };
  std::size_t used_bytes() const;
  Status check_room(std::size_t more) const;
  void apply(const Replacement& replacement);
  // In sync_delay, or not at all when the process is over; a process that dies meanwhile leaves it done or not.
  void replace_later(EventLoop& loop, Lifetime::Watch process, Replacement wanted, std::function<void(Status)> done);
  void lose_pages(File& file);
  static void fail_sync(File& file);
  static void write_pages(File& file, std::size_t from, std::size_t to);
  static void zero_unwritten(const File& file, std::vector<std::uint8_t>& bytes);

  Rng rng_;
  std::map<std::string, File> files_;
  std::map<std::uint64_t, Replacement> under_way_;
  std::size_t capacity_bytes_ = SIZE_MAX;
  bool failing_ = false;
  Duration sync_delay_ = 1ms;
  std::uint64_t next_serial_ = 1;
  std::uint64_t syncs_ = 0;
};

// One process's view of a disk. Borrows both; they outlive it and its files. Its death silences callbacks that are
// pending.
class SimStorage final : public Storage {
 public:
  SimStorage(EventLoop& loop, SimDisk& disk);
  ~SimStorage() override;

  Result<std::unique_ptr<AppendFile>> open_append(const std::string& path) override;
  Result<Bytes> read(const std::string& path, std::size_t limit_bytes) override;
  Result<std::uint64_t> read_at(const std::string& path, std::uint64_t at, MutableByteView into) override;
  void replace(const std::string& path, std::vector<Bytes> parts, std::function<void(Status)> done) override;
  Status truncate(const std::string& path, std::size_t size) override;
  Status rewrite(const std::string& path, std::size_t at, Bytes bytes) override;
  // kill -9 of the process: no callback comes any more, also not of its open files.
  void die() { lifetime_.end(); }

 private:
  EventLoop& loop_;
  SimDisk& disk_;
  Lifetime lifetime_;  // of the process
};

}  // namespace shoal
