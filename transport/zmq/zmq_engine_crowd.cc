// Who is kept of those who count for nothing yet, on the wire's thread: connections that have not greeted, and those of
// peers that nobody favoured.
#include <algorithm>

#include "transport/zmq/zmq_engine.h"

namespace shoal {
namespace {

std::size_t index_of(Lane lane) { return static_cast<std::size_t>(lane); }
Crowd::Id id_of(int fd) { return static_cast<Crowd::Id>(fd); }

}  // namespace

void ZmqEngine::on_accepted(Lane lane, int fd) {
  if (fd < 0) return;
  ByteWatchdog& watchdog = watchdogs_[index_of(lane)];
  Crowd& crowd = ungreeted_[index_of(lane)];
  watchdog.opened(fd);
  if (watchdog.size() > bounds_.accepted)
    return turn_away(lane, fd, Refusal::kCrowd,
                     "this process keeps " + std::to_string(bounds_.accepted) + " connections at most");
  crowd.leave(id_of(fd));
  const std::string address = remote_host(fd);
  if (!pace_.take(address, now_))
    return turn_away(lane, fd, Refusal::kCrowd, "its address opens more connections than are taken from one");
  if (const auto longest = crowd.enter(id_of(fd), address, now_))
    turn_away(lane, static_cast<int>(*longest), Refusal::kCrowd,
              "more connections that have not greeted than are kept");
}

void ZmqEngine::turn_away(Lane lane, int fd, Refusal cause, const std::string& why) {
  refusals_.note(cause, remote_text(fd), why);
  ungreeted_[index_of(lane)].leave(id_of(fd));
  watchdogs_[index_of(lane)].cut(fd);
}

void ZmqEngine::turn_away_silent_ones() {
  for (const Lane lane : {Lane::kControl, Lane::kBulk})
    for (const Crowd::Id id : ungreeted_[index_of(lane)].here_since_before(now_ - limits::kGreetingTime))
      turn_away(lane, static_cast<int>(id), Refusal::kGreeting,
                "did not greet within " + std::to_string(limits::kGreetingTime / 1s) + " s");
}

void ZmqEngine::meet(const Connection& connection) {
  if (favoured_.contains(connection.peer) || strangers_.holds(connection.id)) return;
  const auto longest = strangers_.enter(connection.id, remote_host(connection.lanes[0].fd), now_);
  if (!longest) return;
  refuse(*find(*longest), Refusal::kCrowd,
         make_error(ErrorCode::kRefused, "more connections of processes that are no members than are kept"));
}

void ZmqEngine::favour(const std::vector<PeerId>& peers) {
  favoured_ = std::set<PeerId>(peers.begin(), peers.end());
  std::vector<ConnectionId> accepted;
  for (const auto& [id, connection] : connections_) {
    if (connection->dialled) continue;
    if (favoured_.contains(connection->peer)) strangers_.leave(id);
    accepted.push_back(id);
  }
  for (const ConnectionId id : accepted)
    if (const Connection* connection = find(id)) meet(*connection);
}

Status ZmqEngine::room_for_dial() const {
  const auto dialled =
      std::count_if(connections_.begin(), connections_.end(), [](const auto& entry) { return entry.second->dialled; });
  const std::uint64_t taken =
      watchdogs_[0].size() + watchdogs_[1].size() + 2 * ZmqSocket::kDescriptors * static_cast<std::uint64_t>(dialled);
  if (taken <= bounds_.descriptors) return Status::success();
  return make_error(ErrorCode::kUnreachable, "no descriptor is left for it: connections have " + std::to_string(taken) +
                                                 " of " + std::to_string(bounds_.descriptors) +
                                                 ". HINT: raise the limit (ulimit -n)");
}

}  // namespace shoal
