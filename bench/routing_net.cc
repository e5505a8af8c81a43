#include "bench/routing_net.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace shoal {

Bytes frame_of(std::uint64_t bytes) {
  std::vector<std::uint8_t> number(sizeof(bytes));
  std::memcpy(number.data(), &bytes, sizeof(bytes));
  return Bytes::from_vector(std::move(number));
}

std::uint64_t bytes_of(const std::vector<Bytes>& frames) {
  std::uint64_t all = 0;
  for (const Bytes& frame : frames) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, frame.data(), sizeof(bytes));
    all += bytes;
  }
  return all;
}

PeerId routing_peer_id(const Session& session) {
  PeerId peer;
  std::memcpy(peer.bytes.data(), &session.peer_tag, sizeof(session.peer_tag));
  return peer;
}

RoutingNet::Index RoutingNet::add(RoutingEnd& end, const Session& session, std::size_t place) {
  const PeerId peer = routing_peer_id(session);
  nodes_.push_back({&end, {peer, session, PeerRole::kPeer}, place});
  by_peer_[peer] = nodes_.size() - 1;
  return nodes_.size() - 1;
}

void RoutingNet::kill(Index index) {
  nodes_[index].dead = true;
  nodes_[index].stopped = loop_.now();
}

void RoutingNet::mute(Index index) {
  nodes_[index].muted = true;
  nodes_[index].stopped = loop_.now();
}

std::optional<RoutingNet::Index> RoutingNet::find(const PeerId& peer) const {
  const auto it = by_peer_.find(peer);
  return it == by_peer_.end() ? std::nullopt : std::optional(it->second);
}

Result<TransferId> RoutingNet::send(Index from, const PeerId& to, Message message, const std::vector<Bytes>& frames) {
  const auto receiver = find(to);
  if (!receiver) return make_error(ErrorCode::kUnreachable, "nobody has this key");
  const TransferId transfer = frames.empty() ? 0 : next_++;
  if (nodes_[from].dead || nodes_[from].muted) return transfer;
  const RoutingLine line = lines_(nodes_[from].place, nodes_[*receiver].place);
  loop_.after(line.delay, [this, from, to = *receiver, transfer, told = std::make_shared<Message>(std::move(message))] {
    if (!nodes_[to].dead) nodes_[to].end->on_message(nodes_[from].remote, *told, transfer);
  });
  if (transfer == 0) return transfer;
  Pipe& pipe = pipes_[{from, *receiver}];
  pipe.waiting.push_back({transfer, bytes_of(frames)});
  if (pipe.waiting.size() == 1) forward(from, *receiver);
  return transfer;
}

void RoutingNet::forward(Index from, Index to) {
  Pipe& pipe = pipes_.at({from, to});
  if (pipe.waiting.empty()) return;
  const RoutingLine line = lines_(nodes_[from].place, nodes_[to].place);
  const Transfer sent = pipe.waiting.front();
  const double seconds = line.bytes_per_second > 0 ? static_cast<double>(sent.bytes) / line.bytes_per_second : 0;
  loop_.after(from_seconds(seconds), [this, from, to, sent, line] {
    Pipe& out = pipes_.at({from, to});
    out.waiting.pop_front();
    out.measured = line.bytes_per_second;
    loop_.after(line.delay, [this, from, to, sent] {
      if (nodes_[to].dead || nodes_[from].dead || nodes_[from].muted) return;
      nodes_[to].end->on_frames(nodes_[from].remote, sent.id, true);
    });
    forward(from, to);
  });
}

void RoutingNet::take_away(Index from, Index to, TransferId transfer) {
  const auto pipe = pipes_.find({from, to});
  if (pipe == pipes_.end()) return;
  auto& waiting = pipe->second.waiting;
  const auto is = [&](const Transfer& t) { return t.id == transfer; };
  const auto at = std::find_if(waiting.begin(), waiting.end(), is);
  if (at != waiting.end() && at != waiting.begin()) waiting.erase(at);  // the first one is on the line already
}

void RoutingNet::drop(Index from, const PeerId& to, TransferId transfer) {
  const auto receiver = find(to);
  if (!receiver) return;
  take_away(from, *receiver, transfer);
  const RoutingLine line = lines_(nodes_[from].place, nodes_[*receiver].place);
  loop_.after(line.delay, [this, from, to = *receiver, transfer] {
    if (!nodes_[to].dead && !nodes_[from].dead && !nodes_[from].muted)
      nodes_[to].end->on_frames(nodes_[from].remote, transfer, false);
  });
}

void RoutingNet::refuse(Index by, const PeerId& from, TransferId transfer) {
  const auto sender = find(from);
  if (!sender) return;
  const RoutingLine line = lines_(nodes_[by].place, nodes_[*sender].place);
  loop_.after(line.delay, [this, by, from = *sender, transfer] { take_away(from, by, transfer); });
}

std::uint64_t RoutingNet::ahead_of(Index from, const PeerId& to, TransferId transfer) const {
  const auto receiver = find(to);
  const auto pipe = receiver ? pipes_.find({from, *receiver}) : pipes_.end();
  if (pipe == pipes_.end()) return 0;
  std::uint64_t bytes = 0;
  for (const Transfer& waiting : pipe->second.waiting) {
    bytes += waiting.bytes;
    if (waiting.id == transfer) return bytes;
  }
  return 0;
}

std::optional<Remote> RoutingNet::remote(const PeerId& peer) const {
  const auto index = find(peer);
  return index ? std::optional(nodes_[*index].remote) : std::nullopt;
}

LinkStats RoutingNet::stats(Index from, const PeerId& to) const {
  LinkStats link;
  const auto receiver = find(to);
  if (!receiver) return link;
  const Node& node = nodes_[*receiver];
  const RoutingLine line = lines_(nodes_[from].place, node.place);
  link.up = true;
  link.rtt = 2 * line.delay;
  if (const auto pipe = pipes_.find({from, *receiver}); pipe != pipes_.end())
    link.bytes_per_second = pipe->second.measured;
  link.heard = node.dead || node.muted ? node.stopped : loop_.now() - line.delay;  // pings are answered at once
  return link;
}

}  // namespace shoal
