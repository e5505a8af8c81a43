#pragma once
// Links in virtual time between the senders and the peers of a contest: each pair has a line of its own, with a delay
// and a rate. Headers and words cross in the delay; frames queue for the line behind those of the same pair. Nothing is
// lost but what a dead process sends or is sent, and what a muted one says.
//
// Thread: the simulation's.   Borrows: loop, ends.   Bounds: none of its own.
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/sim_loop.h"
#include "transport/links.h"

namespace shoal {

struct RoutingLine {
  Duration delay = 5ms;         // one way
  double bytes_per_second = 0;  // of frames; 0: they take no time
};

// A process of the contest.
class RoutingEnd {
 public:
  virtual ~RoutingEnd() = default;
  virtual void on_message(const Remote& from, Message& message, TransferId transfer) = 0;
  virtual void on_frames(const Remote& from, TransferId transfer, bool whole) = 0;
};

// A frame that stands for so many bytes, and what it stands for.
Bytes frame_of(std::uint64_t bytes);
std::uint64_t bytes_of(const std::vector<Bytes>& frames);

class RoutingNet {
 public:
  using Index = std::size_t;
  // The line from a place to a place: several ends may have lived at one.
  using Lines = std::function<RoutingLine(std::size_t from, std::size_t to)>;

  RoutingNet(SimLoop& loop, Lines lines) : loop_(loop), lines_(std::move(lines)) {}

  Index add(RoutingEnd& end, const Session& session, std::size_t place);
  void kill(Index index);  // its machine is gone: nobody is told
  void mute(Index index);  // it hears, and is not heard any more: one way of its line is gone
  bool dead(Index index) const { return nodes_[index].dead; }

  Result<TransferId> send(Index from, const PeerId& to, Message message, const std::vector<Bytes>& frames);
  void drop(Index from, const PeerId& to, TransferId transfer);    // of `from`
  void refuse(Index by, const PeerId& from, TransferId transfer);  // of `from`, by its receiver
  std::uint64_t ahead_of(Index from, const PeerId& to, TransferId transfer) const;
  std::optional<Remote> remote(const PeerId& peer) const;
  LinkStats stats(Index from, const PeerId& to) const;

 private:
  struct Node {
    RoutingEnd* end = nullptr;
    Remote remote;
    std::size_t place = 0;
    bool dead = false, muted = false;
    TimePoint stopped{};  // when it was heard last, if it is dead or muted
  };
  struct Transfer {
    TransferId id = 0;
    std::uint64_t bytes = 0;
  };
  struct Pipe {
    std::deque<Transfer> waiting;  // the first one is on the line
    double measured = 0;           // bytes a second of the newest that went out
  };
  std::optional<Index> find(const PeerId& peer) const;
  void forward(Index from, Index to);  // puts the next one on the line
  void take_away(Index from, Index to, TransferId transfer);

  SimLoop& loop_;
  Lines lines_;
  std::vector<Node> nodes_;
  std::map<PeerId, Index> by_peer_;
  std::map<std::pair<Index, Index>, Pipe> pipes_;
  TransferId next_ = 1;
};

// The part of a RoutingNet that one end has.
class RoutingLinks final : public Links {
 public:
  explicit RoutingLinks(RoutingNet& net) : net_(net) {}
  void set_index(RoutingNet::Index index) { index_ = index; }

  void learn(const PeerId&, Whereabouts) override {}
  Result<TransferId> send(const PeerId& peer, Message message, std::vector<Bytes> frames) override {
    return net_.send(index_, peer, std::move(message), frames);
  }
  void drop(const PeerId& peer, TransferId transfer) override { net_.drop(index_, peer, transfer); }
  std::uint64_t ahead_of(const PeerId& peer, TransferId transfer) const override {
    return net_.ahead_of(index_, peer, transfer);
  }
  void refuse(const PeerId& peer, TransferId transfer) override { net_.refuse(index_, peer, transfer); }
  std::optional<Remote> remote(const PeerId& peer) const override { return net_.remote(peer); }
  LinkStats stats(const PeerId& peer) const override { return net_.stats(index_, peer); }

 private:
  RoutingNet& net_;
  RoutingNet::Index index_ = 0;
};

PeerId routing_peer_id(const Session& session);

}  // namespace shoal
