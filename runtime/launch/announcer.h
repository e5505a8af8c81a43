#pragma once
// What the directory is told of a run: its record (addresses, and the end), how it stands, and the records that its
// peers know. Without a directory nothing is told.
//
// Thread: loop only.   Borrows: all that it is given.   Bounds: one record a kRecordPeriod, and sooner for news; those
// of standing.h.
#include <functional>
#include <utility>

#include "authority/authority.h"
#include "router/commit_book.h"
#include "runtime/launch/launch_port.h"
#include "runtime/launch/standing.h"
#include "transport/links.h"

namespace shoal {

class Announcer {
 public:
  struct Environment {
    EventLoop& loop;
    PeerDirectory* directory;  // may be null
    const LaunchOptions& options;
    const CommitBook& book;
    const Authority& authority;
    Links& links;
    std::function<LaunchFigures()> figures;
  };
  // `manifest`: the digest of its body.
  Announcer(Environment environment, const Digest& manifest) : env_(std::move(environment)), manifest_(manifest) {}

  // Tells how the run stands, when that is news and again in time.
  void tick(const std::vector<StageStatus>& stages, bool finishing);
  void tell_end(const std::vector<StageStatus>& stages, const std::string& reason);  // END was sent
  Standing& standing() { return standing_; }
  // This process goes, and the run has not ended: nobody is to look for it here.
  void withdraw();

 private:
  void announce();
  void announce_standing(const RunRecord& beside);
  void exchange_records();

  Environment env_;
  Digest manifest_;
  std::optional<std::string> ended_;  // why
  Standing standing_;
  std::size_t standing_parts_ = 0;  // records of it that the directory has
  std::uint64_t sequence_ = 0;
  TimePoint next_announce_{}, announced_at_{}, next_exchange_{};
};

}  // namespace shoal
