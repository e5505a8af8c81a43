#pragma once
// The page that `join --page` gives out: the run as one peer sees it, of the signed member list, of what its beats are
// answered, and of its own work and bytes. Why a peer went and what was counted, the launching process alone knows.
// Thread: the loop's.
#include <map>
#include <memory>
#include <string>

#include "common/event_loop.h"
#include "common/ids.h"
#include "common/result.h"
#include "page/page_port.h"

namespace shoal {

class EventLog;
class LivePage;
class Peer;
struct Member;
struct MemberList;
struct PeerReport;
struct RunFacts;
struct RunWord;

class MemberPage {
 public:
  // ERRORS: LivePage::open's.
  static Result<std::unique_ptr<MemberPage>> open(EventLoop& loop, const RunId& run, const PeerId& self,
                                                  std::string name, const PagePort& port);
  ~MemberPage();
  // An event log that passes all on to `inner` and shows it. The page outlives it.
  std::unique_ptr<EventLog> shown(std::unique_ptr<EventLog> inner);
  void start(const Peer& peer);          // which outlives stop()
  void stop(const std::string& reason);  // the run is over, or this machine's part in it

 private:
  struct Told {  // of a session on the list
    StageId stage;
    bool serving = false;
  };
  MemberPage(const RunId& run, const PeerId& self, std::string name);
  RunFacts facts() const;
  RunWord word(const Peer& peer);
  void take_list(const MemberList& list);
  void take_member(StageId stage, const Member& member);

  RunId run_;
  PeerId self_;
  std::string name_;
  bool has_facts_ = false;  // the manifest's
  std::map<Session, Told> told_;
  std::map<StageId, Version> versions_;
  std::unique_ptr<LivePage> page_;
};

}  // namespace shoal
