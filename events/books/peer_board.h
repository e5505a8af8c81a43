#pragma once
// The sessions of a run and what each did: where it stands, what it had accepted, what it lost, its bytes. One that is
// over stays for kFades with its reason. What a peer did over all its sessions is kept by its key's first 8 bytes.
// Pure. Times are seconds since 1970.
// Bounds: kPeersMax peers by key, further ones are summed; one row a session that lives or went lately; an edge for
// each pair of them that a path took lately.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/time.h"
#include "events/books/seen_event.h"
#include "metrics/recent_rate.h"

namespace shoal {

enum class SeenState : std::uint8_t { kJoining, kServing, kNotServing, kLeaving, kLeft, kLost };
std::string_view name_of(SeenState state);  // "joining", "serving", "not serving", ...

// How much a second, where what is older counts less and less.
class Flow {
 public:
  void add(double amount, double time);
  double per_second(double time) const;

 private:
  static constexpr double kRemembers = 10;  // seconds to 1/e
  double rate_ = 0, at_ = 0;
};

// What was done. Bytes by the peer's own file; 0 where nobody has it.
struct DoneWork {
  std::uint64_t microbatches = 0, targets = 0, lost = 0, sent = 0, received = 0;
  void add(const DoneWork& more);
};

// By one key over all its sessions.
struct PeerWork : DoneWork {
  std::string name{};  // what its owner calls it, as it joined last; empty: nothing
  std::uint64_t sessions = 0;
};

struct SeenPeer : DoneWork {
  Session session;
  std::uint16_t stage = 0;
  SeenState state = SeenState::kJoining;
  std::string reason{};  // of its state
  double since = 0;      // joined, or first named
  double worked = 0;     // the newest path that it is on; 0: none yet
  double over = 0;       // 0: it lives
  bool asked_to_move = false;
  std::string
      reach{};  // "none", "local", "direct" where the authority said it: it does not of one that is direct at once
  Flow up{}, down{};
  RecentRate rate{kRateWindow};   // of targets
  std::optional<double> quiet{};  // seconds without a beat, where the launching process says so

  bool lives() const { return over == 0; }
};

class PeerBoard {
 public:
  static constexpr double kFades = 60;
  static constexpr std::size_t kPeersMax = 1024;
  static constexpr std::size_t kReasonBytesMax = 200;
  static constexpr std::size_t kOverMax = 4096;

  using Edge = std::pair<Session, Session>;  // from the holder; a zero session is the trainer

  // What is told for the first time.
  void take(const SeenEvent& event);
  // Once a second: rates go on, and what is gone for long goes.
  void tick(double time);
  void set_quiet(const Session& session, double seconds);
  // What this session had accepted, where no path tells it.
  void set_work(const Session& session, std::uint64_t microbatches, std::uint64_t targets);

  const std::map<Session, SeenPeer>& rows() const { return rows_; }
  const std::map<Edge, Flow>& edges() const { return edges_; }
  const std::map<std::uint64_t, PeerWork>& work() const { return work_; }
  const PeerWork& others() const { return others_; }  // beyond kPeersMax
  SeenPeer* find(const Session& session);
  bool is_over(const Session& session) const { return over_.contains(session); }  // it was told so
  // What its peer did; nothing where it is not known.
  PeerWork find_work(const Session& session) const;

 private:
  SeenPeer& row_of(const Session& session, std::uint16_t stage, double time);
  PeerWork& work_of(const Session& session);
  SeenPeer* add(const Session& session, const DoneWork& more);  // to its peer, and to its row, which is given
  void take_member(const EventRecord& member, double time);
  void take_over(const EventRecord& over, double time);
  void take_path(const EventRecord& commit, double time);
  void take_bytes(const SeenEvent& event);

  std::map<Session, SeenPeer> rows_;
  std::map<Edge, Flow> edges_;
  std::map<std::uint64_t, PeerWork> work_;
  PeerWork others_;
  std::set<Session> over_;  // told to be; kOverMax of them
};

}  // namespace shoal
