#pragma once
// A machine's own folder: its key, made at first use, locked while a process uses it. A second process on the same home
// gets a fresh temporary key, so that no two processes ever speak under one PeerId. Owns the lock; it dies with the
// process. Thread: any, one at a time.
#include <memory>
#include <string>

#include "common/crypto/sign.h"
#include "common/os/file_storage.h"
#include "common/result.h"

namespace shoal {

class Home {
 public:
  // $XDG_DATA_HOME/shoal, else $HOME/.local/share/shoal, else kHere.
  static std::string default_path();
  static constexpr char kHere[] = ".shoal";  // in the folder that the process runs in
  // Makes the folder (0700) and the key file (0600) when absent. ERRORS: kIo, kRefused (others may read the key file),
  // kCorrupt (it holds no key), kInput (it is no file).
  static Result<Home> open(const std::string& path);

  const std::string& path() const { return path_; }
  const KeyPair& key() const { return key_; }
  // Another process uses this home: key() lives in this process only and nothing is kept on disk.
  bool is_temporary() const { return !lock_; }

 private:
  Home(std::string path, KeyPair key, std::unique_ptr<FileLock> lock)
      : path_(std::move(path)), key_(std::move(key)), lock_(std::move(lock)) {}
  std::string path_;
  KeyPair key_;
  std::unique_ptr<FileLock> lock_;
};

// Reads the key file at `path`, or makes it (0600, durable). Used for homes and for a run's key in its launch folder.
// ERRORS: as Home::open.
Result<KeyPair> load_or_make_key(const std::string& path);
// Reads it. ERRORS: as Home::open; kMissing.
Result<KeyPair> load_key(const std::string& path);

// The run's key in its launch folder. A new run may make it; a resumed one has it or cannot go on: its logs and its
// peers know no other. ERRORS: as load_key.
inline std::string run_key_path(const std::string& folder) { return folder + "/run.key"; }
Result<KeyPair> load_run_key(const std::string& folder, bool resume);

}  // namespace shoal
