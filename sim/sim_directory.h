#pragma once
// A DHT in virtual time: one table for all simulated processes, with delay, loss, outage and strangers who write to it.
// The directory over it is the product's own (dht/dht_directory.h), so that what is simulated is what ships. Thread:
// the simulation's.   Bounds: kSimValuesPerKeyMax values of one key.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/event_loop.h"
#include "common/lifetime.h"
#include "common/rng.h"
#include "dht/dht_access.h"
#include "dht/dht_directory.h"

namespace shoal {

inline constexpr std::size_t kSimValuesPerKeyMax = 4096;

class SimDhtAccess;

// The table. Borrows the loop; outlives every access to it.
class SimDht {
 public:
  SimDht(EventLoop& loop, std::uint64_t seed) : loop_(loop), rng_(seed) {}

  // ---- faults ----
  void set_answer_loss(double share) { answer_loss_ = share; }  // of gets that end without their values
  // Everybody's child is dead until it ends; the table keeps its values, which expire as always.
  void set_outage(bool outage);
  // What is written meanwhile does not arrive: what is read gets older.
  void set_stale(bool stale) { stale_ = stale; }
  // A stranger writes what no honest process would.
  void inject(const std::string& key, std::uint64_t id, const std::string& text);

  // ---- for tests ----
  std::vector<std::string> values(const std::string& key) const;  // not expired in the table

 private:
  friend class SimDhtAccess;
  struct Value {
    std::uint16_t serial = 0;
    std::string text;
    TimePoint until;  // TimePoint::max() while its owner keeps it
    const SimDhtAccess* owner = nullptr;
  };
  void store(const SimDhtAccess* owner, const std::string& key, std::uint64_t id, std::uint16_t serial,
             const std::string& text, TimePoint until);
  void forget_owner(const SimDhtAccess* owner);

  EventLoop& loop_;
  Rng rng_;
  const Duration delay_ = 20ms;  // of each way
  double answer_loss_ = 0;
  bool outage_ = false, stale_ = false;
  std::map<std::string, std::map<std::uint64_t, Value>> table_;
  std::vector<SimDhtAccess*> accesses_;  // in the order of their making, so that a seed is one course
};

// One process's way to the table. Up after one delay; its values outlive it by kRecordTtl, as those of a process that
// was killed do.
class SimDhtAccess final : public DhtAccess {
 public:
  // Its answers come on `loop`, the process's.
  SimDhtAccess(SimDht& dht, EventLoop& loop);
  ~SimDhtAccess() override;

  void set_listener(Listener* listener) override { listener_ = listener; }
  void put(const std::string& key, std::uint64_t id, std::uint16_t serial, const std::string& text) override;
  void withdraw(const std::string& key, std::uint64_t id) override;
  void get(std::uint64_t tag, const std::string& key) override;
  void bootstrap(const std::string&) override {}  // the table is everywhere
  bool alive() const override { return up_; }

 private:
  friend class SimDht;
  void go_down();
  void come_up_after(Duration delay);

  SimDht& dht_;
  EventLoop& loop_;
  Listener* listener_ = nullptr;
  bool up_ = false;
  std::uint64_t life_ = 0;  // rises when it goes down: what was under way then never arrives
  Lifetime lifetime_;
};

// The product's directory of one simulated process. `storage` may be null.
std::unique_ptr<DhtDirectory> make_sim_directory(SimDht& dht, EventLoop& loop, Storage* storage,
                                                 DhtDirectoryOptions options);

}  // namespace shoal
