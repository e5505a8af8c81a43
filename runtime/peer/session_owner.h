#pragma once
// What a session of a peer, and its stage, ask of the peer that it belongs to.   Thread: loop only.
#include <optional>
#include <string>

#include "common/result.h"

namespace shoal {

class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  virtual void end_session(const std::string& why) = 0;                            // a new one follows
  virtual void finish(const std::string& reason, std::optional<Error> error) = 0;  // none follows
  virtual void on_notice(const std::string& line) = 0;                             // as Peer::Owner's
  virtual void on_warning(const std::string& line) = 0;
};

}  // namespace shoal
