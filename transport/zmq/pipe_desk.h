#pragma once
// Ways over relays, in front of libzmq, which speaks to 127.0.0.1 only: this thread joins that to connections of its
// own to relays (transport/relay/relay_words.h). What libzmq says goes through unread, so proof of keys, encryption,
// bounds and liveness are between the two ends as on any other connection. A later way (TLS, punching) is another
// opening of the outward socket.
//
// Threads: of its own, from the first call on; the functions from any. Bounds: called pipes as made with, and
// limits::kCallsPerSecond of a relay's words; calls of ours as the engine dials. No error of a socket and no
// byte of a relay is more than the end of one pipe or registration.
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/crypto/sign.h"
#include "transport/token_bucket.h"
#include "transport/zmq/relay_post.h"
#include "transport/zmq/relayed_pipe.h"

namespace shoal {

class PipeDesk {
 public:
  using PipeId = std::uint64_t;
  using Listeners = std::array<HostPort, 2>;  // ours, by lane

  // `run`: without one (zero) nobody is called and nobody can call.
  PipeDesk(KeyPair key, const RunId& run, std::size_t called_max);
  ~PipeDesk();
  PipeDesk(const PipeDesk&) = delete;
  PipeDesk& operator=(const PipeDesk&) = delete;

  // `told` hears on the desk's thread where a lane of `peer` can be dialled once, or why it cannot (CallingPipe).
  // No connection is let in there but one from the port that expect() says.
  PipeId call(const PeerId& peer, Lane lane, const HostPort& relay, CallingPipe::Told told);
  void expect(PipeId pipe, std::uint16_t own_port);
  void give_up(PipeId pipe);

  // From now on others can call this process at these relays alone, and come to these listeners.
  void be_called_at(const std::vector<HostPort>& relays, const Listeners& listeners);
  // From now on these relays alone are told of the run, by this list as pack_relay_list() has it. REQUIRES: the key is
  // the run's.
  void tell_run(const std::vector<HostPort>& relays, const Bytes& list);

  std::string relay_behind(const std::string& remote) const { return origins_.relay_behind(remote); }

 private:
  struct Running {
    std::unique_ptr<Errand> errand;
    SocketWaits waits{};
  };
  void post(std::function<void()> task);
  // The desk's thread:
  void run();
  void run_posted();
  void start(PipeId id, std::unique_ptr<Errand> errand);
  void turn(PipeId id);
  void wait_for(PipeId id, Running& running);
  void end(PipeId id);
  void take_call(const HostPort& relay, const RelayIncoming& incoming);
  // Ends the posts of a kind that are at none of these relays, and makes those that are missing.
  void keep_posts(RelayKind kind, const std::vector<HostPort>& relays);
  Errand* find(PipeId id);

  const KeyPair key_;
  const RunId run_;
  const std::size_t called_max_;
  PipeOrigins origins_;
  Descriptor wake_, epoll_;
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;  // guarded by mutex_
  std::atomic<PipeId> next_id_{1};
  std::thread thread_;  // made under mutex_

  // The desk's thread only.
  std::map<PipeId, Running> running_;
  std::map<std::pair<RelayKind, std::string>, PipeId> posts_;  // by kind and relay
  std::set<PipeId> called_;
  Listeners listeners_;
  std::map<std::string, TokenBucket> paces_;  // of calls, by relay
  bool stopping_ = false;
  TimePoint now_{};
};

}  // namespace shoal
