#pragma once
// What a contract test needs of any wire: two or three ends on one loop, and a way to let time pass until something
// holds.
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "common/event_loop.h"
#include "transport/wire.h"

namespace shoal {

class WireLab {
 public:
  virtual ~WireLab() = default;
  virtual EventLoop& loop() = 0;
  virtual PeerId peer(int index) = 0;
  // The end `index` (0, 1, 2), made at the first call.
  virtual Wire& wire(int index) = 0;
  virtual Address address(int index) = 0;
  virtual Address nobody() = 0;                   // where nobody listens
  virtual Address silent() = 0;                   // where no dial is answered, not even by a refusal
  virtual bool relayed() const { return false; }  // its addresses lead over a relay
  // `index` admits only `admitted` from now on; before its wire() is called first.
  virtual void admit_only(int index, std::vector<PeerId> admitted) = 0;
  virtual void destroy(int index) = 0;  // as if its process ended
  virtual bool run_until(const std::function<bool()>& done, Duration limit) = 0;
  void run_for(Duration time) {
    (void)run_until([] { return false; }, time);
  }
};

// Remembers what a wire said.
struct WireLog final : Wire::Listener {
  struct Up {
    ConnectionId connection;
    PeerId peer;
    bool dialled;
  };
  struct Message {
    ConnectionId connection;
    Lane lane;
    Bytes bytes;
  };
  struct Down {
    ConnectionId connection;
    Error cause;
  };
  std::vector<Up> ups;
  std::vector<Message> messages;
  std::vector<Down> downs;
  std::size_t writables = 0;
  std::size_t events = 0;
  std::function<void(ConnectionId, Lane)> writable = [](ConnectionId, Lane) {};

  void on_up(ConnectionId connection, const PeerId& peer, bool dialled) override {
    ++events;
    ups.push_back({connection, peer, dialled});
  }
  void on_bytes(ConnectionId connection, Lane lane, Bytes message) override {
    ++events;
    messages.push_back({connection, lane, std::move(message)});
  }
  void on_writable(ConnectionId connection, Lane lane) override {
    ++events;
    ++writables;
    writable(connection, lane);
  }
  void on_down(ConnectionId connection, const Error& cause) override {
    ++events;
    downs.push_back({connection, cause});
  }
};

inline Bytes numbered_bytes(std::size_t size, std::uint64_t number) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(number * 131 + i * 7 + (i >> 8));
  for (std::size_t i = 0; i < 8 && i < size; ++i) bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
  return Bytes::from_vector(std::move(bytes));
}
inline bool same_bytes(ByteView a, ByteView b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

}  // namespace shoal
