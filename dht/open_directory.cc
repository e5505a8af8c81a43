#include "dht/open_directory.h"

#include "common/rng.h"
#include "dht/dht_child.h"

namespace shoal {

Result<std::unique_ptr<DhtDirectory>> open_directory(EventLoop& loop, Storage& storage,
                                                     const DirectoryOptions& options) {
  DhtChildOptions child_options;
  child_options.network = options.network;
  child_options.bind = options.bind;
  child_options.port = options.port;
  SHOAL_ASSIGN(std::unique_ptr<DhtChild> child, DhtChild::start(loop, child_options));
  DhtDirectoryOptions directory_options;
  directory_options.run = options.run;
  directory_options.bootstrap = options.bootstrap;
  directory_options.cache_path = options.cache_path;
  directory_options.seed = entropy_seed();
  return {std::make_unique<DhtDirectory>(loop, std::move(child), options.cache_path.empty() ? nullptr : &storage,
                                         directory_options)};
}

}  // namespace shoal
