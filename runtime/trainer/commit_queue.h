#pragma once
// COMMITs on their way out: by session what it is told with the next flush, in messages of bounded size. Value.
// Thread: loop only.   Bounds: what is outstanding in the commit book.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "transport/messages.h"

namespace shoal {

class CommitQueue {
 public:
  using Commits = std::map<Session, std::vector<CommitItem>>;

  explicit CommitQueue(std::size_t items_max) : items_max_(items_max) {}

  void add(const Commits& commits) {
    for (const auto& [session, items] : commits) {
      auto& queue = commits_[session];
      queue.insert(queue.end(), items.begin(), items.end());
    }
  }
  // `send` gets a copy of `frame` for each, with as many items as one message may have.
  void flush(const Commit& frame, const auto& send) {
    for (auto& [session, items] : std::exchange(commits_, {}))
      for (auto at = items.begin(); at != items.end();) {
        const auto end = at + std::min<std::ptrdiff_t>(items.end() - at, static_cast<std::ptrdiff_t>(items_max_));
        Commit message = frame;
        message.items.assign(at, end);
        send(session, std::move(message));
        at = end;
      }
  }

 private:
  const std::size_t items_max_;
  Commits commits_;
};

}  // namespace shoal
