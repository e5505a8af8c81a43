#pragma once
// What the owner of a machine says to the `shoal join` that lends it, and when it is lent: takes words on the socket in
// its home (`shoal pause`, `resume`, `finish`), looks at the clock, and has the peer pause and come back.
// Thread: loop only.   Borrows: loop and peer, which outlive it.
#include <memory>
#include <string>
#include <vector>

#include "common/event_loop.h"
#include "common/lifetime.h"
#include "common/os/owner_socket.h"
#include "common/work_queue.h"
#include "lend/gpu_use.h"
#include "runtime/peer/pause_plan.h"
#include "runtime/peer/peer.h"

namespace shoal {

class OwnerDesk {
 public:
  OwnerDesk(EventLoop& loop, Peer& peer, std::optional<LendHours> hours)
      : loop_(loop), peer_(peer), plan_(std::move(hours)) {}

  // Words come from now on. ERRORS: kIo.
  Status listen(const std::string& home);
  // Looks at this GPU as well, by jobs of `aside`, which outlives it: what others compute there has the peer pause.
  void watch_gpu(int index, WorkQueue& aside);
  void start();  // once the peer is
  void on_paused(const PeerPause& pause);
  void on_finished(const std::string& how);

 private:
  void hear(const std::string& word, const OwnerSocket::Answer& answer);
  void look();  // what the plan wants now
  void tick();
  void look_at_gpu();

  EventLoop& loop_;
  Peer& peer_;
  PausePlan plan_;
  bool over_ = false;
  WorkQueue* aside_ = nullptr;  // null: the GPU is not looked at
  int gpu_ = 0;
  GpuBusy busy_;
  bool gpu_warned_ = false;
  std::vector<OwnerSocket::Answer> asked_pause_, asked_finish_;  // not answered yet
  Lifetime lifetime_;
  std::unique_ptr<OwnerSocket> socket_;  // null: nobody is heard
};

}  // namespace shoal
