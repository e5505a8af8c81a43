// The member list: how it is made, told to all, and given to who asks.
#include <algorithm>
#include <utility>

#include "authority/authority.h"
#include "common/log.h"
#include "transport/envelope.h"

namespace shoal {
namespace {

// Between two lists that are told: what changes meanwhile goes together, under one signature. Each is a message to
// every member, so the pause grows with them.
constexpr Duration kListPauseMin = 250ms, kListPauseMax = 1s, kListPauseOfMember = 5ms;
constexpr Duration kListAgain = 1s;  // between two answers to one member that asks

}  // namespace

MemberList Authority::build_list() const {
  MemberList list;
  list.run = options_.run;
  list.epoch = epoch_;
  for (const StageState& stage : stages_) {
    StageMembers entry;
    entry.stage = stage.stage;
    entry.epoch = stage.epoch;
    entry.version = stage.version;
    entry.digest = stage.digest;
    entry.secured = stage.secured;
    entry.round = stage.round_committed;
    entry.step = stage.step_done;
    list.stages.push_back(std::move(entry));
  }
  for (const auto& [session, member] : members_) {
    Member shown = member.member;
    shown.version = member.version;
    list.stages[member.stage.value].members.push_back(std::move(shown));
  }
  return list;
}

// A list that is too large would end the run, and its log would end every later life of it: so it is seen to before the
// member is decided. What members change later (versions, epochs) is counted at its largest.
bool Authority::fits_list(const std::vector<std::string>& addresses, const std::optional<Session>& older) const {
  constexpr std::uint64_t kLargest = UINT64_MAX;
  MemberList list = build_list();
  list.epoch = Epoch(kLargest);
  Member joiner{Session{kLargest, kLargest}, PeerId{}, addresses, true, Version(kLargest)};
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

// Lists reach this in the order of their decisions, so epochs only rise. The trainer routes by them at once.
void Authority::publish(MemberList list) {
  published_ = std::move(list);
  if (published_.epoch == epoch_) list_dirty_ = false;
  port_.on_members(published_);
  if (list_timer_ != 0) return;
  if (loop_.now() >= next_list_) return tell_list();
  list_timer_ = loop_.at(next_list_, [this] {
    list_timer_ = 0;
    tell_list();
  });
}

void Authority::tell_list() {
  if (failed_) return;
  next_list_ = loop_.now() + std::clamp<Duration>(static_cast<int>(members_.size()) * kListPauseOfMember, kListPauseMin,
                                                  kListPauseMax);
  const Result<Message> news = lists_.tell(published_);
  if (!news.ok()) return fail_log(news.error());
  for (const auto& [session, member] : members_)
    if (member.list_sent) port_.send(member.member.peer, *news);
}

// Lists are told once they are durable, so a member has none that our log lacks, unless it lies. Its word is no proof,
// so nothing but the warning follows. It takes our lists again when they have passed the one it has.
void Authority::name_newer_list(MemberState& member, Epoch epoch) {
  if (std::exchange(member.newer_list_named, true)) return;
  const Session session = member.member.session;
  const std::string cause = "it says that it has list " + std::to_string(epoch.value) + ", and list " +
                            std::to_string(lists_.newest().epoch.value) + " is the newest here";
  port_.write(
      {.event = EventKind::kMember, .stage = member.stage, .about = session, .state = "newer list", .cause = cause});
  log_warning("stage ", member.stage, ": session ", short_name(session), ": ", cause,
              ". Was an older copy of authority.log put back? HINT: stop, put the newer one back and resume; else "
              "members keep their older lists until newer ones come");
}

void Authority::send_list(MemberState& member, Epoch epoch, std::uint64_t id) {
  if (loop_.now() < member.next_list) return;
  member.next_list = loop_.now() + kListAgain;
  if (const Epoch newest = lists_.newest().epoch; newest.value > 0 && epoch > newest)
    return name_newer_list(member, epoch);
  for (Message& message : lists_.since(epoch, id)) port_.send(member.member.peer, std::move(message));
  member.list_sent = true;
}

}  // namespace shoal
