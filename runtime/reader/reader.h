#pragma once
// A process that reads: it links to a run, checks its manifest and its member lists, and continues a text over its
// stages. It trains nothing, is no member, and nobody waits for it.
//
// Thread: loop only.   Borrows: wire, loop.   Bounds: lists are asked for each kListPeriod.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/crypto/sign.h"
#include "common/lifetime.h"
#include "runtime/config/config.h"
#include "runtime/generate/generate.h"
#include "runtime/reader/swarm_text.h"
#include "transport/transport.h"

namespace shoal {

struct ReaderOptions {
  RunId run;
  PeerId self;
  Whereabouts launching;  // the launching process
  SwarmText::Options text{};
};

class Reader final : private Transport::Listener {
 public:
  static constexpr Duration kListPeriod = 2s, kPatience = 30s;

  Reader(ReaderOptions options, Wire& wire, EventLoop& loop, Rng rng);
  ~Reader() override;
  void start();

  // Every stage has a peer that serves.
  bool ready() const;
  // Why it never will be: also a launching process that has been silent for kPatience, and a stage that nobody served
  // within the patience of a text.
  const std::optional<Error>& failure() const { return failure_; }
  // REQUIRES: ready().
  SwarmText& text() { return *text_; }
  const RunConfig& config() const { return *config_; }

 private:
  // Transport::Listener
  void on_link_up(const Remote& remote) override;
  void on_link_down(const Remote& remote, const Error& cause) override;
  void on_message(const Remote& remote, Message message, TransferId transfer, std::uint64_t frame_bytes) override;
  void on_frames(const Remote& remote, TransferId transfer, Result<std::vector<Bytes>> frames) override;

  // REQUIRES: a list.
  std::optional<std::size_t> stage_without_peers() const;
  bool is_launch(const PeerId& peer) const { return peer == as_peer(options_.run); }
  void on_manifest(const Manifest& manifest);
  void on_list(const Members& members);
  MembersQuery query_for_list() const;
  void tick();
  void send(Message message);
  void fail(ErrorCode code, std::string why);

  const ReaderOptions options_;
  EventLoop& loop_;
  Rng rng_;
  std::unique_ptr<Transport> transport_;
  std::optional<RunConfig> config_;
  std::optional<MemberList> list_;
  std::uint64_t list_id_ = 0;
  std::unique_ptr<SwarmText> text_;
  std::optional<Error> failure_;
  std::string last_cause_;  // of a link to the launching process that did not stand
  TimePoint heard_{};       // the launching process
  TimePoint started_{};
  bool was_ready_ = false;  // a stage that loses its peers later is the text's matter
  TimerId timer_ = 0;
  Lifetime lifetime_;
};

// The text of a reader, for generate(). `wait` runs the loop until its condition holds, or gives up (false).
class WaitingText final : public TextModel {
 public:
  using Wait = std::function<bool(const std::function<bool()>& until)>;
  WaitingText(Reader& reader, Wait wait) : reader_(reader), wait_(std::move(wait)) {}
  // ERRORS: SwarmText's; the reader's failure(); kInterrupted (`wait` gave up).
  Result<std::vector<float>> extend(std::span<const std::uint32_t> ids) override;
  std::uint64_t context() const override { return reader_.config().model_spec().context_length(); }
  void restart() override { reader_.text().restart(); }

 private:
  Reader& reader_;
  Wait wait_;
};

}  // namespace shoal
