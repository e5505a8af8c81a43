#pragma once
// A relay on loopback that joins as a relay does, or misbehaves where a test wants it to. Blocking, with a thread a
// connection. Thread: its functions from any.
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/os/posix_file.h"
#include "transport/relay/relay_words.h"
#include "transport/wire.h"

namespace shoal {

// What it does wrong, on connections that come from then on.
enum class RelayFault {
  kNone,
  kResetAtOnce,         // every connection
  kResetCall,           // when it has read the call
  kResetBehindVerdict,  // of a call
  kResetJoined,         // after some bytes of the caller's
  kStallJoined,         // carries nothing
  kGarbleJoined,        // turns a bit of each portion of the caller's
  kSayToCall,           // `words` instead of a verdict
  kSayToHome,           // `words` behind the nonce instead of a verdict
  kFloodHome,           // calls without end down each registration
};

class ScriptedRelay {
 public:
  ScriptedRelay();
  ~ScriptedRelay();
  ScriptedRelay(const ScriptedRelay&) = delete;
  ScriptedRelay& operator=(const ScriptedRelay&) = delete;

  Address address() const { return "127.0.0.1:" + std::to_string(port_); }
  Address via() const { return "via/" + address(); }
  void misbehave(RelayFault fault, std::vector<std::uint8_t> words = {});
  // Ends every connection by a reset.
  void reset_all();

  bool has(const PeerId& home) const;      // registered now
  std::size_t registrations() const;       // so far
  std::size_t answers() const;             // connections that came to answer, so far
  bool forged() const { return forged_; }  // a signature did not fit

 private:
  struct Waiting {
    int answer = -1;
    bool came = false;
  };
  void accept_all();
  void serve(int fd);
  void serve_home(int fd, RelayFault fault);
  void serve_call(int fd, RelayFault fault);
  void carry(int from, int to, RelayFault fault);
  void close_at_end(int fd);

  Descriptor listener_;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  RelayFault fault_ = RelayFault::kNone;  // guarded by mutex_, as all below
  std::vector<std::uint8_t> words_;
  std::map<PeerId, int> homes_;
  std::map<RelayToken, Waiting> waiting_;
  std::vector<int> open_;
  std::size_t registrations_ = 0, answers_ = 0;
  std::atomic<bool> stopping_{false}, forged_{false};
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace shoal
