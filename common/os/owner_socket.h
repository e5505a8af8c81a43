#pragma once
// A word from another process of this machine's owner: one line in, one line out, over a Unix socket (0600) in a folder
// of its own. Its file's mode and the folder's say which users may connect.
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "common/event_loop.h"
#include "common/result.h"

namespace shoal {

inline constexpr std::size_t kSocketLineMax = 4096;  // bytes of a line, either way
inline constexpr std::size_t kSocketClientsMax = 16;

// Thread: made and destroyed on the loop's; owns a thread, which does all the waiting. A connection that says nothing
// for kSilenceMax is closed, and so is one beyond kSocketClientsMax.
class OwnerSocket {
 public:
  static constexpr Duration kSilenceMax = 5s;
  using Answer = std::function<void(const std::string& line)>;  // on the loop; the first call counts
  // On the loop: a line came, without its end. The connection is kept until it is answered, until the client goes, or
  // until the server does.
  using Take = std::function<void(const std::string& line, Answer answer)>;

  // A socket that an earlier process left at `path` is replaced. REQUIRES: no other process serves `path` (a lock says
  // so). ERRORS: kIo.
  static Result<std::unique_ptr<OwnerSocket>> listen(EventLoop& loop, const std::string& path, Take take);
  ~OwnerSocket();  // removes the socket
  OwnerSocket(const OwnerSocket&) = delete;
  OwnerSocket& operator=(const OwnerSocket&) = delete;

 private:
  struct State;
  OwnerSocket(std::shared_ptr<State> state, std::string path);
  const std::shared_ptr<State> state_;
  const std::string path_;
  std::thread thread_;
};

// Says `line` there and waits for the answer as long as the server lives: empty where it ends without one. ERRORS:
// kMissing (nobody serves `path`), kIo, kRefused (it is another user's).
Result<std::string> ask_line(const std::string& path, const std::string& line);

}  // namespace shoal
