#pragma once
// What a relay knows: which runs it serves and their lists, which members are registered, and which calls wait or are
// joined. It decides every verdict. State machine without I/O, clock or cryptography: signatures are checked by its
// owner, before a word is believed and behind what costs less.
//
// Thread: one.   Bounds: the constants below; pairs have two lanes each.
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/time.h"
#include "transport/address_pace.h"
#include "transport/relay/relay_words.h"

namespace shoal {

using RelayConnection = std::uint64_t;  // never 0, never used again

inline constexpr std::size_t kRelayRunsMax = 8, kRelayRunsPerPartyMax = 4;
inline constexpr std::size_t kRelayHomesMax = 256;  // of a run
// Calls that wait are some too. Where nobody can be dialled, a member needs lanes to the launching process, to its
// stage and to both neighbouring ones: with fewer the last two that need each other would never meet.
inline constexpr std::size_t kRelayLanesMax = 1024, kRelayLanesPerRunMax = 512, kRelayLanesPerMemberMax = 64;
// Lanes of callers that are not on the list: they call the run's own key alone.
inline constexpr std::size_t kRelayStrangerLanesMax = 64, kRelayStrangerLanesPerPartyMax = 16;
inline constexpr Duration kRelayAnswerTime = 5s;      // from a call to its answer
inline constexpr Duration kRelayRunGrace = 60s;       // a run is kept without the connection that told of it
inline constexpr std::size_t kRelayNamesKept = 4096;  // of calls, which come once
// A second, and at once: calls of a callee; of the one that strangers may call, by members and by strangers, which are
// fewer than its desk answers (limits::kCallsPerSecond); of a caller to a callee.
inline constexpr double kCalleePace = 8, kCalleeBurst = 16, kOpenPace = 64, kOpenBurst = 128, kStrangersPace = 16,
                        kStrangersBurst = 64, kPairPace = 2, kPairBurst = 8;

class RelayBook {
 public:
  // The run's members now, and who of it may be called by strangers, which is as good as a member. Connections that
  // are none of theirs any more, to be ended. ERRORS: kBusy (kRelayRunsMax).
  Result<std::vector<RelayConnection>> follow(const RunId& run, const PeerId& open, const std::vector<PeerId>& members);
  // Whether register_home() might take it.
  RelayVerdict may_register(const RelayHome& home, const std::string& party) const;
  struct Registered {
    RelayVerdict verdict;
    RelayConnection replaced = 0;  // to be ended: the newest registration of a key counts
  };
  // REQUIRES: its key signed it.
  Registered register_home(RelayConnection connection, const RelayHome& home, const std::string& party);

  // Whether call() might take it.
  RelayVerdict may_call(const RelayCall& call, const std::string& party) const;
  struct Called {
    RelayVerdict verdict;
    RelayConnection home = 0;  // where the callee is to be told
  };
  // `told` is drawn for the callee. REQUIRES: the caller signed it.
  Called call(RelayConnection connection, const RelayCall& call, const std::string& party, const RelayToken& told,
              TimePoint now);
  struct Answered {
    RelayVerdict verdict;
    RelayConnection caller = 0;
    Lane lane = Lane::kControl;
  };
  Answered answer(RelayConnection connection, const RelayToken& told);

  // Calls whose callee did not come, to be refused; runs without word for long are forgotten, with their connections.
  struct Late {
    std::vector<RelayConnection> callers, ended;
  };
  Late late(TimePoint now);
  // It is over. The other end of its lane, which ends with it; 0: none.
  RelayConnection gone(RelayConnection connection, TimePoint now);

  std::size_t runs() const { return runs_.size(); }
  std::size_t homes() const;
  std::size_t pairs() const;  // with a lane that is joined

 private:
  struct Run {
    PeerId open;
    std::set<PeerId> members;  // with `open`
    std::map<PeerId, RelayConnection> homes;
    RelayConnection teller = 0;        // of its own key; 0: none
    std::string party;                 // of the teller
    std::optional<TimePoint> over_at;  // without a teller, where there was one
    bool lists(const PeerId& peer) const { return members.contains(peer); }
  };
  struct Line {  // of a call, by the caller's connection
    RunId run;
    PeerId caller, callee;
    Lane lane;
    bool on_list;  // the caller was, at some time
    std::string party;
    RelayToken told;
    TimePoint until;
    RelayConnection answerer = 0;  // 0: it waits
  };
  RelayVerdict room_for(const RelayCall& call, bool on_list, const std::string& party) const;
  std::vector<RelayConnection> without(const RunId& run);  // those of the run's that nobody on it has any more

  std::map<RunId, Run> runs_;
  std::map<RelayConnection, Line> lines_;
  std::map<RelayToken, RelayConnection> waiting_;         // by what the callee was told
  std::map<RelayConnection, RelayConnection> answerers_;  // answerer -> caller
  std::set<RelayToken> names_;
  std::deque<RelayToken> names_in_order_;
  AddressPace callees_{kCalleePace, kCalleeBurst}, open_callees_{kOpenPace, kOpenBurst},
      strangers_{kStrangersPace, kStrangersBurst}, pairs_{kPairPace, kPairBurst};
};

}  // namespace shoal
