#pragma once
// The way into the DHT of a process that links to a run.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/event_loop.h"
#include "common/storage.h"
#include "dht/dht_directory.h"

namespace shoal {

struct DirectoryOptions {
  RunId run;
  std::uint32_t network = 0;
  std::string bind = "0.0.0.0";
  std::uint16_t port = 0;  // UDP; 0: any
  std::vector<std::string> bootstrap;
  std::string cache_path;
};
// The DHT's supervised child and the directory over it, on `loop`. ERRORS: DhtChild::start's.
Result<std::unique_ptr<DhtDirectory>> open_directory(EventLoop& loop, Storage& storage,
                                                     const DirectoryOptions& options);

}  // namespace shoal
