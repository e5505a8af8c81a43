#pragma once
// One life of the child program: a process at the other end of a socket pair, which is its stdin and stdout.
// Thread: the one that spawned it, for all of its life (the child dies with that thread, see dht/child_main.cc).
// Ownership: the destructor closes the pair, waits a moment, kills and reaps.
#include <string>
#include <vector>

#include "common/result.h"
#include "common/time.h"

namespace shoal {

class SpawnedChild {
 public:
  // `arguments` start with the program's path. ERRORS: kIo.
  static Result<SpawnedChild> spawn(const std::vector<std::string>& arguments);
  SpawnedChild(SpawnedChild&& other) noexcept;
  SpawnedChild& operator=(SpawnedChild&&) = delete;
  ~SpawnedChild();

  int process_id() const { return process_id_; }
  int socket() const { return socket_; }  // ours; non-blocking
  void kill_now();                        // SIGKILL; it is reaped by end()
  // Closes the pair, gives it `grace` to exit, else kills; says how it ended ("signal 9", "exit 0").
  std::string end(Duration grace);

 private:
  SpawnedChild(int process_id, int socket) : process_id_(process_id), socket_(socket) {}
  int process_id_ = 0;  // 0: reaped
  int socket_ = -1;
};

}  // namespace shoal
