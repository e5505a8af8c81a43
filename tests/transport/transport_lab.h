#pragma once
// Transports over a WireLab, and what they said.
#include <memory>

#include "tests/transport/wire_lab.h"
#include "transport/transport.h"

namespace shoal {

struct TransportLog final : Transport::Listener {
  struct Got {
    Remote remote;
    Message message;
    TransferId transfer;
    std::uint64_t frame_bytes;
  };
  struct Frames {
    TransferId transfer;
    Result<std::vector<Bytes>> frames;
  };
  std::vector<Remote> ups;
  std::vector<std::pair<Remote, Error>> downs;
  std::vector<Got> messages;
  std::vector<Frames> frames;
  std::function<void(const Got&)> on_got = [](const Got&) {};

  void on_link_up(const Remote& remote) override { ups.push_back(remote); }
  void on_link_down(const Remote& remote, const Error& cause) override { downs.emplace_back(remote, cause); }
  void on_message(const Remote& remote, Message message, TransferId transfer, std::uint64_t frame_bytes) override {
    messages.push_back({remote, std::move(message), transfer, frame_bytes});
    const Got got = messages.back();
    on_got(got);
  }
  void on_frames(const Remote&, TransferId transfer, Result<std::vector<Bytes>> got) override {
    frames.push_back({transfer, std::move(got)});
  }
};

template <class M>
std::size_t count_of(const TransportLog& log) {
  std::size_t n = 0;
  for (const TransportLog::Got& got : log.messages) n += std::holds_alternative<M>(got.message) ? 1 : 0;
  return n;
}

// Everything of one end, in the order in which it must be destroyed.
struct TransportEnd {
  TransportLog log;
  std::unique_ptr<Transport> transport;
};

inline RunId test_run(std::uint8_t number = 1) {
  RunId run;
  run.bytes.fill(number);
  return run;
}

inline Transport::Options test_options(WireLab& lab, int index, std::uint64_t incarnation = 1, RunId run = test_run()) {
  Transport::Options options;
  options.run = run;
  options.self = lab.peer(index);
  options.session = Session::of(options.self, incarnation);
  options.whereabouts = {{lab.address(index)}};
  return options;
}

inline void start_transport(TransportEnd& end, WireLab& lab, int index, std::uint64_t incarnation = 1,
                            RunId run = test_run()) {
  end.transport = std::make_unique<Transport>(lab.wire(index), lab.loop(), test_options(lab, index, incarnation, run));
  end.transport->set_listener(&end.log);
}

}  // namespace shoal
