#pragma once
// One session of a peer, from a ticket's addresses to a place in the run and out of it: the link to the authority, the
// manifest, the admission, the stage; which part takes a message; how it goes. What comes before and after it is
// runtime/peer/peer.h.
//
// Thread: loop only. Borrows all of its environment, which outlives it. It asks its owner to end it, and is taken down
// in a later turn of the loop.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "authority/membership.h"
#include "common/lifetime.h"
#include "common/log_throttle.h"
#include "runtime/peer/session_environment.h"
#include "runtime/peer/stage_place.h"
#include "transport/transport.h"

namespace shoal {

class PeerSession final : private Transport::Listener, private MembershipPort {
 public:
  PeerSession(Session self, PeerSessionEnvironment environment);

  // ---- from its owner ----
  void tell_others();  // called regularly: our record, when it is due; and asks for theirs
  void leave();        // REQUIRES: the session is not over
  // env_.absence.goes() from now on. For people: `line`, what is to settle first, `hint`.
  void begin_going(const std::string& line, const std::string& hint);
  void check_going();
  void stop(bool goodbye);  // nothing is called back any more
  void announce();          // once the stage is known
  void on_end(const std::string& reason) override;

  // ---- look ----
  const Session& self() const { return self_; }
  Transport& transport() { return transport_; }
  Membership* membership() const { return membership_.get(); }  // null before the manifest is here
  StagePlace* stage() const { return stage_.get(); }            // null before the answer
  StagePeer* stage_peer() const { return stage_ ? stage_->peer() : nullptr; }
  StagePeerStatus status() const;  // zeros before the state is here
  PeerFigures figures() const;
  Traffic traffic() const;
  // Stage and version of the anchor that this process holds.
  std::optional<std::pair<StageId, Version>> held_state() const;
  bool holds_alone() const;  // the stage's state, as far as the list says

 private:
  // Transport::Listener
  void on_link_up(const Remote& remote) override;
  void on_link_down(const Remote& remote, const Error& cause) override;
  void on_message(const Remote& remote, Message message, TransferId transfer, std::uint64_t frame_bytes) override;
  void on_frames(const Remote& remote, TransferId transfer, Result<std::vector<Bytes>> frames) override;
  // MembershipPort
  void send_to_authority(Message message) override;
  Beat make_beat() override;
  void on_joined(const JoinAnswer& answer) override;
  void on_refused(const std::string& reason) override;
  void on_unreachable(const std::string& reason) override;
  void on_later(const std::string& reason) override;
  void on_members(const MemberList& list) override;
  void on_fenced(const std::string& reason) override;
  void on_goodbye() override;
  void on_status(const BeatAck& status) override;

  void send(const PeerId& to, Message message, std::vector<Bytes> frames = {});
  void on_end_message(const Remote& remote, const End& end);
  void on_manifest(const Manifest& manifest);
  void start_membership();
  void build_stage(const JoinAnswer& answer);
  void on_stage_failed(Error error);
  Result<Room> room_for_stage(const StageSpec& spec);  // ERRORS: kTooLarge
  Announcing::Facts facts() const;                     // REQUIRES: the stage is known

  const Session self_;
  const PeerSessionEnvironment env_;
  const PeerId authority_;
  Transport transport_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<StagePlace> stage_;
  LogThrottle said_;
  Lifetime lifetime_;  // of callbacks that are about this session; over before a restart and after the end
};

}  // namespace shoal
