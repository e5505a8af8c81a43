// The contract on both directories.
#include "sim/sim_directory.h"
#include "sim/sim_loop.h"
#include "tests/dht/directory_contract.h"
#include "tests/dht/real_rig.h"

namespace shoal {
namespace {

class SimDirectoryRig {
 public:
  SimLoop& loop() { return loop_; }
  DhtDirectory& make(const RunId& run) {
    DhtDirectoryOptions options;
    options.run = run;
    options.seed = directories_.size() + 1;
    directories_.push_back(make_sim_directory(dht_, loop_, nullptr, std::move(options)));
    return *directories_.back();
  }
  bool run_until(const std::function<bool()>& condition, Duration limit) {
    return loop_.run_until_true(condition, loop_.now() + limit);
  }
  void set_outage(bool outage) { dht_.set_outage(outage); }

 private:
  SimLoop loop_{kTestWall};
  SimDht dht_{loop_, 1};
  std::vector<std::unique_ptr<DhtDirectory>> directories_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Simulated, DirectoryContract, SimDirectoryRig);
INSTANTIATE_TYPED_TEST_SUITE_P(Real, DirectoryContract, RealDirectoryRig);

}  // namespace
}  // namespace shoal
