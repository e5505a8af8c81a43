#include "sim/checkers.h"

namespace shoal {

namespace {

const WindowSlot kSlots[] = {WindowSlot::kA, WindowSlot::kB};

// One serving replica against the books and against its own ledger.
class ReplicaCheck {
 public:
  ReplicaCheck(const CountingBooks& books, const Swarm::HostedPeer& process, std::size_t index,
               std::vector<std::string>& broken)
      : books_(books),
        stage_peer_(*process.peer->stage_peer()),
        ledger_(stage_peer_.ledger()),
        executor_(dynamic_cast<WindowedExecutor&>(*process.peer->executor())),
        session_(process.peer->session()),
        stage_(*process.peer->report().stage),
        index_(index),
        broken_(broken) {}

  void run() {
    check_anchor();
    // What a stopped session's device did last, its ledger has not heard of.
    if (stage_peer_.stopped()) return;
    for (const WindowSlot slot : kSlots) check_window(slot);
    check_parameters();
  }

 private:
  void problem(const std::string& what) {
    broken_.push_back("peer " + std::to_string(index_) + ", stage " + std::to_string(stage_.value) + ", version " +
                      std::to_string(stage_peer_.version().value) + ": " + what);
  }

  // `values` must be sign * sum, and `tag` its tag.
  std::string differs(CountTag tag, std::span<const float> values, const GradientSum& sum, double sign) const {
    if (tag != sum.tag) return "its tag differs";
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double wanted = i < sum.values.size() ? sign * sum.values[i] : 0;  // what only weighs stays zero
      if (static_cast<double>(values[i]) != wanted)
        return "value " + std::to_string(i) + " is " + std::to_string(values[i]) + " and not " + std::to_string(wanted);
    }
    return "";
  }

  std::string anchor_differs(Version version) {
    Arena& arena = executor_.arena();
    return differs(arena.tag(ArenaRole::kAnchor), arena.span(ArenaRole::kAnchor), books_.secured_up_to(stage_, version),
                   -1);
  }

  void check_anchor() {
    const Version version = stage_peer_.version();
    const std::string wrong = anchor_differs(version);
    if (wrong.empty()) return;
    // A stopped session may stand between the device's commit and its name.
    if (stage_peer_.stopped() && anchor_differs(Version(version.value + 1)).empty()) return;
    problem("the anchor is not the sum over what rounds secured: " + wrong);
  }

  // Adds what the ledger says of `serial` to `sum`, and judges it against log, rounds and listings.
  void add_held(EntrySerial serial, bool settled, const char* where, GradientSum& sum) {
    const EntryName entry_name{session_, serial};
    const Entry* entry = ledger_.entries().find(serial);
    if (entry == nullptr)
      return problem("entry " + text_of(entry_name) + " is " + where + " and unknown to the ledger");
    if (is_on_device(entry->state)) return;  // its place is taken, its gradient is not there yet
    sum.add(entry->microbatch, stage_, entry->stamp);
    const CountingBooks::Winner* winner = books_.winner(entry_name);
    if (settled && (winner == nullptr || winner->microbatch != entry->microbatch || winner->stage != stage_))
      problem("entry " + text_of(entry_name) + " is " + where + " as settled, and the log does not name it");
    if (const auto at = books_.secured_at(entry_name); at && *at <= stage_peer_.version())
      problem("entry " + text_of(entry_name) + " is " + where + " and in the anchor");
    const std::string* lost = books_.cause_of_loss(entry_name);
    if (lost != nullptr && !books_.over(session_) && entry->state != EntryState::kUndoing)
      problem("entry " + text_of(entry_name) + " is " + where + " and lost (" + *lost + ")");
  }

  void check_window(WindowSlot slot) {
    GradientSum sum;
    const std::string name = std::string("in window ") + (slot == WindowSlot::kA ? "A" : "B");
    if (const Windows::Window* window = stage_peer_.windows().at(slot))
      for (const auto& [serial, entry] : window->entries) add_held(serial, entry.settled, name.c_str(), sum);
    Arena& arena = executor_.arena();
    const ArenaRole role = accumulator_of(slot);
    const std::string wrong = differs(arena.tag(role), arena.span(role), sum, 1);
    if (!wrong.empty()) problem("what is " + name + " is not what the ledger counted there: " + wrong);
  }

  void check_parameters() {
    GradientSum stepped;
    for (const EntrySerial serial : stage_peer_.windows().stepped()) add_held(serial, true, "stepped", stepped);
    Arena& arena = executor_.arena();
    const std::span<const float> anchor = arena.span(ArenaRole::kAnchor), current = arena.span(ArenaRole::kCurrent);
    const bool shifts = executor_.shift_pending();
    std::vector<float> own(current.begin(), current.end());
    for (std::size_t i = 0; i < own.size(); ++i)
      own[i] += (shifts ? arena.span(ArenaRole::kShift)[i] : 0.0f) - anchor[i];
    const CountTag tag =
        arena.tag(ArenaRole::kCurrent) + (shifts ? arena.tag(ArenaRole::kShift) : 0) - arena.tag(ArenaRole::kAnchor);
    const std::string wrong = differs(tag, own, stepped, -1);
    if (!wrong.empty()) problem("the parameters are not the anchor and what the ledger calls stepped: " + wrong);
  }

  const CountingBooks& books_;
  const StagePeer& stage_peer_;
  const Ledger& ledger_;
  WindowedExecutor& executor_;
  const Session session_;
  const StageId stage_;
  const std::size_t index_;
  std::vector<std::string>& broken_;
};

}  // namespace

std::vector<std::string> CountingChecker::look() {
  books_.read(swarm_.events());
  std::vector<std::string> broken = books_.broken();
  check_fences(broken);
  for (const SimDial& dial : swarm_.network().nats().answered())
    if (std::string line = broken_by(dial); !line.empty()) broken.push_back(std::move(line));
  check_relays(broken);
  for (std::size_t i = 0; i < swarm_.peers().size(); ++i) {
    const auto& process = *swarm_.peers()[i];
    if (!process.alive || !process.peer || !process.peer->stage_peer() || !process.peer->stage_peer()->serving())
      continue;
    // Behind a session its arrays are rearranged for the images that it keeps (runtime/peer/kept_state.h).
    const PeerPhase phase = process.peer->report().phase;
    if (phase == PeerPhase::kRestarting || phase == PeerPhase::kOver) continue;
    ReplicaCheck(books_, process, i, broken).run();
  }
  return broken;
}

// A launching process that has begun knows its logs, also of a life before.
void CountingChecker::check_fences(std::vector<std::string>& broken) const {
  if (swarm_.launch() == nullptr || swarm_.launch()->trainer() == nullptr) return;
  for (const auto& process : swarm_.peers()) {
    const auto linked = swarm_.launch()->linked_session(process->key.id());
    if (linked && books_.fenced().contains(*linked))
      broken.push_back("the launching process has a link to session " + short_name(*linked) + ", which it fenced");
  }
}

void CountingChecker::check_relays(std::vector<std::string>& broken) {
  std::set<PeerId> now = on_list_;
  if (swarm_.launch() != nullptr) {
    now.clear();
    for (const StageMembers& stage : swarm_.launch()->authority().members().stages)
      for (const Member& member : stage.members) now.insert(member.peer);
  }
  const auto known = [&](const PeerId& peer) { return now.contains(peer) || on_list_.contains(peer); };
  const std::vector<SimJoin>& joins = swarm_.network().relays().joined();
  for (; joins_read_ < joins.size(); ++joins_read_) {
    const auto& [relay, caller, callee] = joins[joins_read_];
    const PeerId& launch = swarm_.run_key().id();
    if (callee != launch && !(known(callee) && (caller == launch || known(caller))))
      broken.push_back("the relay at " + relay + " joined " + short_name(caller) + " and " + short_name(callee) +
                       ", which are not on the list");
  }
  for (const auto& [at, relay] : swarm_.network().relays().all())
    if (static_cast<double>(relay->carried()) > relay->allowed() + SimRelay::kPieceBytes)
      broken.push_back("the relay at " + at + " carried " + std::to_string(relay->carried()) +
                       " bytes, more than its rate lets through");
  on_list_ = std::move(now);
}

std::vector<std::string> check_counting(const Swarm& swarm) { return CountingChecker(swarm).look(); }

std::vector<std::string> check_end(const Swarm& swarm, const std::set<std::uint64_t>& afflicted) {
  CountingChecker checker(swarm);
  std::vector<std::string> broken = checker.look();
  const CountingBooks& books = checker.books();
  for (const auto& [microbatch, path] : books.committed())
    for (std::size_t k = 0; k < path.size(); ++k)
      if (!books.secured_at(path[k]) && !books.is_lost(path[k]))
        broken.push_back("microbatch " + std::to_string(microbatch.serial) + " at stage " + std::to_string(k) +
                         " is committed, in no round and not lost");
  for (const EntryName& entry_name : books.lost_as_rest())
    if (!books.over(entry_name.session) && !afflicted.contains(entry_name.session.peer_tag))
      broken.push_back("entry " + text_of(entry_name) +
                       " of a living session is lost as the rest: nobody named it lost");
  if (!swarm.finished())
    broken.push_back("the run did not end");
  else if (swarm.summary().unfinished > 0)
    broken.push_back(std::to_string(swarm.summary().unfinished) + " microbatches are unfinished");
  return broken;
}

}  // namespace shoal
