#pragma once
// The seam under DhtDirectory: keys to values that anybody may write, in a process that may be away.
// Implementations: dht/dht_child.h (supervised child with OpenDHT), sim/sim_directory.h (virtual table). Values are not
// verified here.
//
// Thread: loop only; callbacks run on the loop, never from inside a call.   While down every call is a no-op that
// answers nothing.
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"

namespace shoal {

struct DhtStatus {
  std::uint32_t good_nodes = 0;                       // answered of late
  std::uint32_t dubious_nodes = 0;                    // known, not heard of lately
  std::uint64_t stored_values = 0, stored_bytes = 0;  // held for others and for us
  std::vector<std::string> nodes;                     // some good nodes as "host:port", for a later start
};

class DhtAccess {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // Nothing of an earlier life is kept: values must be put again. `port` is the UDP port.
    virtual void on_dht_up(std::uint16_t port) = 0;
    virtual void on_dht_down(const Error& cause) = 0;
    virtual void on_dht_value(std::uint64_t tag, const std::string& text) = 0;
    virtual void on_dht_done(std::uint64_t tag) = 0;  // no more values for this get
    virtual void on_dht_status(const DhtStatus& status) = 0;
  };

  virtual ~DhtAccess() = default;
  virtual void set_listener(Listener* listener) = 0;  // before anything else; null: none any more
  // Keeps `text` under (key, id) until withdrawn. A later put of the same (key, id) replaces it when `serial` is
  // higher.
  virtual void put(const std::string& key, std::uint64_t id, std::uint16_t serial, const std::string& text) = 0;
  // Stops keeping it: its holders drop it within kRecordTtl. There is no delete that strangers could not use too.
  virtual void withdraw(const std::string& key, std::uint64_t id) = 0;
  // Values come by on_dht_value with `tag` (never 0, never reused), then on_dht_done, unless it goes down.
  virtual void get(std::uint64_t tag, const std::string& key) = 0;
  virtual void bootstrap(const std::string& address) = 0;
  virtual bool alive() const = 0;  // up, and heard of within the last seconds
};

}  // namespace shoal
