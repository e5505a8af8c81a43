#pragma once
// The two ends of a way over a relay, each a pipe between libzmq and a connection of ours to that relay: the end that
// calls offers a door on 127.0.0.1 for a DEALER, the end that is called goes to its own listener.
//
// Thread: the desk's; PipeOrigins any.
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "transport/relay/relay_words.h"
#include "transport/zmq/byte_pipe.h"
#include "transport/zmq/relay_talk.h"

namespace shoal {

// Which relay is behind the connections that our listeners have from ourselves: what comes so counts as the relay's.
class PipeOrigins {
 public:
  void put(const HostPort& own, const HostPort& relay);
  void drop(const HostPort& own);
  // "host:port" of the relay behind what a listener has from `remote`; empty: none is.
  std::string relay_behind(const std::string& remote) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::string> relays_;  // guarded by mutex_
};

// Calls, and once the relay joined it offers the door: to one connection, which its owner says the port of.
class CallingPipe final : public Errand {
 public:
  // Called once, if the pipe is not dropped before. ERRORS: kUnreachable, kBusy (a bound of the relay's), kTimeout. A
  // relay's word is never taken for the callee's: neither kNotAdmitted nor kRefused.
  using Told = std::function<void(Result<HostPort> door)>;
  CallingPipe(const HostPort& relay, const RelayCall& call, TimePoint now, Told told);
  void expect(std::uint16_t port) { expected_ = port; }

  bool turn(TimePoint now) override;
  SocketWaits waits() const override;
  TimePoint due() const override;

 private:
  Status call();  // and the door, when it is joined
  void let_in();

  const std::string what_;
  const Told told_;
  Result<RelayTalk> talk_;
  std::optional<Descriptor> door_;
  std::uint16_t expected_ = 0;
  std::optional<BytePipe> pipe_;
  TimePoint give_up_at_;
};

// Answers a call, and once the relay joined it goes to the listener.
class CalledPipe final : public Errand {
 public:
  // Borrows `origins`, which outlive it.
  CalledPipe(const HostPort& relay, const RelayToken& pass, const HostPort& listener, TimePoint now,
             PipeOrigins& origins);
  ~CalledPipe() override;

  bool turn(TimePoint now) override;
  SocketWaits waits() const override;
  TimePoint due() const override;

 private:
  Status answer();

  const HostPort relay_, listener_;
  PipeOrigins& origins_;
  Result<RelayTalk> talk_;
  std::optional<HostPort> own_;  // at the listener
  std::optional<BytePipe> pipe_;
  TimePoint give_up_at_;
};

}  // namespace shoal
