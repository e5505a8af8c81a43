#pragma once
// The DHT in a process of its own: starts `shoal-dht`, speaks to it (dht/child_protocol.h), restarts it when it dies or
// falls silent. The packaged OpenDHT can be crashed by one datagram from a stranger; here that costs a restart and
// nothing else. The child holds no secrets and no weights, its memory is limited, and it dies with this process.
//
// Thread: the interface on the loop only. One thread of its own owns the child's life, reads and writes the pipe and
// posts to the loop. Ownership: borrows the loop, which outlives it. The destructor ends the child and joins. Bounds:
// kChildQueueMax commands wait for the pipe (more are dropped: a get that is not answered ends by its budget) and as
// many events for the loop (more stay in the pipe).
#include <memory>
#include <string>
#include <vector>

#include "common/event_loop.h"
#include "dht/dht_access.h"

namespace shoal {

inline constexpr std::size_t kChildQueueMax = 1024;

struct DhtChildOptions {
  std::string program;           // path of shoal-dht; empty: beside our own executable
  std::string bind = "0.0.0.0";  // address of the UDP socket
  std::uint16_t port = 0;        // 0: any; a restart asks for the same one again, unless somebody hunts the child there
  std::uint32_t network = 0;     // DHT nodes speak only to their own network; 0 is the public one and refused here
  std::uint64_t memory_bytes = 512ull << 20;        // of address space; a quiet node takes a third
  Duration backoff_min = 500ms, backoff_max = 10s;  // between two starts (dht/restart_pace.h)
  Duration silence_max = 10s;                       // a child that says nothing for so long is killed
};

struct ChildCounters {
  std::uint64_t starts = 0, deaths = 0;
};

class DhtChild final : public DhtAccess {
 public:
  // ERRORS: kInput (network 0), kMissing (no such program).
  static Result<std::unique_ptr<DhtChild>> start(EventLoop& loop, DhtChildOptions options);
  ~DhtChild() override;

  void set_listener(Listener* listener) override;
  void put(const std::string& key, std::uint64_t id, std::uint16_t serial, const std::string& text) override;
  void withdraw(const std::string& key, std::uint64_t id) override;
  void get(std::uint64_t tag, const std::string& key) override;
  void bootstrap(const std::string& address) override;
  bool alive() const override;

  std::uint16_t port() const;  // 0 until it is up for the first time
  int process_id() const;      // 0 while there is none; for tests and `--events`. Any thread.
  ChildCounters counters() const;

 private:
  class Supervisor;
  DhtChild(EventLoop& loop, DhtChildOptions options);
  std::shared_ptr<Supervisor> supervisor_;
};

}  // namespace shoal
