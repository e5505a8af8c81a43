#include "tests/live/rogue_strangers.h"

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "common/crypto/sign.h"
#include "common/os/thread_loop.h"
#include "dht/dht_child.h"
#include "dht/record.h"
#include "transport/zmq/zmq_socket.h"

namespace shoal {
namespace {

class Claims final : private DhtAccess::Listener {
 public:
  Claims(ThreadLoop& loop, const Ticket& ticket, std::size_t identities, DhtAccess& dht)
      : loop_(loop), ticket_(ticket), dht_(dht) {
    for (std::size_t i = 0; i < identities; ++i) keys_.push_back(KeyPair::generate());
    dht_.set_listener(this);
  }
  ~Claims() override { dht_.set_listener(nullptr); }
  std::size_t put() const { return put_; }

 private:
  void on_dht_up(std::uint16_t) override { dht_.bootstrap(ticket_.contacts.front().address); }
  void on_dht_down(const Error&) override { connected_ = false; }
  void on_dht_value(std::uint64_t, const std::string&) override {}
  void on_dht_done(std::uint64_t) override {}
  void on_dht_status(const DhtStatus& status) override {
    if (status.good_nodes > 0 && !std::exchange(connected_, true)) claim();
  }

  void claim() {
    if (!connected_) return;
    const WallTime now = loop_.wall();
    ++serial_;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      PeerRecord record;
      record.run = ticket_.run;
      record.peer = keys_[i].id();
      record.session = Session::of(keys_[i].id(), 1);
      record.stage = StageId(static_cast<std::uint16_t>(i % 2));
      record.whereabouts.addresses = {"198.51.100.7:7741"};
      record.figures.rate = 1e9;
      record.serving = true;
      record.sequence = next_sequence(0, now);
      record.expires = now + kRecordTtl;
      const auto text = pack_record(record, keys_[i]);
      if (!text.ok()) continue;
      dht_.put(stage_key(record.run, record.stage), record.session.peer_tag, serial_, *text);
      if (++put_ == 1) std::puts("begun"), std::fflush(stdout);
    }
    loop_.after(kRecordPeriod, [this] { claim(); });
  }

  ThreadLoop& loop_;
  const Ticket& ticket_;
  DhtAccess& dht_;
  std::vector<KeyPair> keys_;
  bool connected_ = false;
  std::uint16_t serial_ = 0;
  std::size_t put_ = 0;
};

}  // namespace

Status keep_silent(const Ticket& ticket, double seconds, std::size_t connections) {
  const auto address = parse_host_port(ticket.contacts.front().address);
  const auto listener = curve_public_of(ticket.contacts.front().peer);
  if (!address.ok() || !listener.ok())
    return make_error(ErrorCode::kInput, "the ticket's first contact cannot be dialled");
  ZmqContext context;
  const KeyPair key = KeyPair::generate();
  std::vector<ZmqSocket> sockets(connections);
  std::size_t dialled = 0;
  for (const TimePoint end = monotonic_now() + from_seconds(seconds); monotonic_now() < end;) {
    for (ZmqSocket& socket : sockets) {
      while (socket.open()) {
        const auto event = socket.monitor_event();
        if (!event) break;
        if (event->kind == ZmqMonitorEvent::Kind::kDisconnected) socket = ZmqSocket();
      }
      if (socket.open()) continue;
      auto made = ZmqSocket::make(context, ZmqSocket::Kind::kDealer);
      if (!made.ok()) return made.error();
      made->configure(Lane::kControl, key, address->is_v6());
      made->expect_peer(*listener);
      const Status watched = made->start_monitor(context, "silent" + std::to_string(dialled));
      if (!watched.ok()) return watched;
      if (made->connect(*address).ok() && dialled++ == 0) std::puts("begun"), std::fflush(stdout);
      socket = *std::move(made);
    }
    std::vector<ZmqWaiting> waiting;
    for (ZmqSocket& socket : sockets) waiting.push_back({&socket, false});
    zmq_wait(waiting, -1, 100ms);
  }
  std::printf("%zu connections in turn\n", dialled);
  std::fflush(nullptr);
  std::_Exit(0);
}

Status claim_places(const Ticket& ticket, double seconds, std::size_t identities) {
  ThreadLoop loop;
  DhtChildOptions options;
  options.bind = "127.0.0.1";
  options.network = ticket.network;
  SHOAL_ASSIGN(const auto child, DhtChild::start(loop, options));
  Claims claims(loop, ticket, identities, *child);
  loop.post([&] { loop.after(from_seconds(seconds), [&] { loop.stop(); }); });
  loop.run();
  std::printf("%zu records put\n", claims.put());
  std::fflush(nullptr);
  std::_Exit(0);
}

}  // namespace shoal
