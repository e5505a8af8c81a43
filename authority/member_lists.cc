#include "authority/member_lists.h"

#include <algorithm>
#include <utility>

#include "common/log.h"
#include "transport/envelope.h"

namespace shoal {
namespace {

// Between two lists that are told: what changes meanwhile goes together, under one signature. Each is a message to
// every member, so the pause grows with them.
constexpr Duration kListPauseMin = 250ms, kListPauseMax = 1s, kListPauseOfMember = 5ms;
constexpr Duration kListAgain = 1s;  // between two answers to one member that asks

}  // namespace

MemberLists::MemberLists(const AuthorityOptions& options, AuthorityPort& port, EventLoop& loop, MemberBook& book,
                         DecisionLog& log)
    : options_(options),
      port_(port),
      loop_(loop),
      book_(book),
      log_(log),
      history_(options.run, [&port](ByteView bytes) { return port.sign(bytes); }) {}

MemberLists::~MemberLists() {
  if (timer_ != 0) loop_.cancel(timer_);
}

MemberList MemberLists::list_of(std::vector<StageMembers> heads) const {
  MemberList list;
  list.run = options_.run;
  list.epoch = book_.epoch();
  list.stages = std::move(heads);
  list.relays = book_.relays();
  for (const auto& [session, member] : book_.members()) {
    Member shown = member.member;
    shown.version = member.version;
    list.stages[member.stage.value].members.push_back(std::move(shown));
  }
  return list;
}

// A list that is too large would end the run, and its log would end every later life of it: so it is seen to before the
// member is decided. What members change later (versions, epochs) is counted at its largest.
bool MemberLists::fits(MemberList list, const Whereabouts& whereabouts, const std::optional<Session>& older) const {
  constexpr std::uint64_t kLargest = UINT64_MAX;
  list.epoch = Epoch(kLargest);
  Member joiner{Session{kLargest, kLargest}, PeerId{}, whereabouts, true, Version(kLargest)};
  list.stages.front().members.push_back(joiner);
  for (StageMembers& stage : list.stages) {
    stage.epoch = Epoch(kLargest);
    stage.version = Version(kLargest);
    stage.round = RoundId(kLargest);
    std::erase_if(stage.members, [&](const Member& member) { return member.session == older; });
    for (Member& member : stage.members) member.version = Version(kLargest);
  }
  const auto packed = pack_member_list(list);
  return packed.ok() && packed->size() <= options_.list_bytes_max;
}

void MemberLists::publish(MemberList list) {
  published_ = std::move(list);
  port_.on_members(published_);
  if (timer_ != 0) return;
  if (loop_.now() >= next_tell_) return tell();
  timer_ = loop_.at(next_tell_, [this] {
    timer_ = 0;
    tell();
  });
}

void MemberLists::tell() {
  if (log_.failed()) return;
  next_tell_ = loop_.now() + std::clamp<Duration>(static_cast<int>(book_.members().size()) * kListPauseOfMember,
                                                  kListPauseMin, kListPauseMax);
  const Result<Message> news = history_.tell(published_);
  if (!news.ok()) return log_.fail(news.error());
  for (const auto& [session, member] : book_.members())
    if (member.lists.on_link) port_.send(member.member.peer, *news);
}

// Lists are told once they are durable, so a member has none that our log lacks, unless it lies. Its word is no proof,
// so nothing but the warning follows. It takes our lists again when they have passed the one it has.
void MemberLists::say_newer(MemberState& member, Epoch epoch) {
  if (std::exchange(member.lists.newer_one_said, true)) return;
  const Session session = member.member.session;
  const std::string cause = "it says that it has list " + std::to_string(epoch.value) + ", and list " +
                            std::to_string(told().value) + " is the newest here";
  port_.write(
      {.event = EventKind::kMember, .stage = member.stage, .about = session, .state = "newer list", .cause = cause});
  if (member.of_this_life) return log_warning("stage ", member.stage, ": session ", short_name(session), ": ", cause);
  log_warning("stage ", member.stage, ": session ", short_name(session), ": ", cause,
              ". Was an older copy of authority.log put back? HINT: stop, put the newer one back and resume; else "
              "members keep their older lists until newer ones come");
}

void MemberLists::give(MemberState& member, Epoch epoch, std::uint64_t id) {
  if (loop_.now() < member.lists.next) return;
  member.lists.next = loop_.now() + kListAgain;
  if (const Epoch newest = told(); newest.value > 0 && epoch > newest) return say_newer(member, epoch);
  for (Message& message : history_.since(epoch, id)) port_.send(member.member.peer, std::move(message));
  member.lists.on_link = true;
}

void MemberLists::show(const PeerId& reader, Epoch epoch, std::uint64_t id) {
  if ((epoch == told() && id == history_.id()) || loop_.now() < next_shown_) return;
  next_shown_ = loop_.now() + kShownEvery;
  for (Message& message : history_.since(Epoch(0), 0)) port_.send(reader, std::move(message));
}

}  // namespace shoal
