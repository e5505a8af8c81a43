#pragma once
// A registration at one relay, kept for as long as this lives: it is made again, with pauses that double, whenever it
// ends. Others call this process over it (kRegister), or the relay learns by it which run it serves (kRun).
//
// Thread: the desk's.   Bounds: a list is queued only when all before it has left; kWordsPerTurn words of the relay's.
#include <functional>
#include <optional>
#include <string>

#include "common/backoff.h"
#include "common/crypto/sign.h"
#include "transport/relay/relay_words.h"
#include "transport/zmq/relay_talk.h"

namespace shoal {

class RelayPost final : public Errand {
 public:
  static constexpr Duration kPauseFirst = 500ms, kPauseMax = 30s;
  static constexpr int kWordsPerTurn = 64;

  // REQUIRES: `key` is the home's. kRun: `key` is the PeerId that strangers may call, too.
  RelayPost(HostPort relay, RelayHome home, KeyPair key, std::function<void(const RelayIncoming&)> on_call)
      : relay_(std::move(relay)), home_(home), key_(std::move(key)), on_call_(std::move(on_call)) {}
  // kRun: the newest signed list, as pack_relay_list() has it; each registration begins with it.
  void tell(Bytes list);

  bool turn(TimePoint now) override;
  SocketWaits waits() const override;
  TimePoint due() const override;

 private:
  enum class Stage { kNonce, kVerdict, kStands };
  Status begin(TimePoint now);
  Status go_on(TimePoint now);
  Status take_word(TimePoint now);
  Status take_verdict();
  void rest(TimePoint now, const std::string& why);
  std::string what() const;

  const HostPort relay_;
  const RelayHome home_;
  const KeyPair key_;
  const std::function<void(const RelayIncoming&)> on_call_;
  std::optional<RelayTalk> talk_;
  Stage stage_ = Stage::kNonce;
  TimePoint again_at_{}, silent_at_{}, ping_at_{};
  Backoff pause_{kPauseFirst, kPauseMax};
  std::string told_;  // to the log: why it does not stand
  Bytes list_;
  bool list_waits_ = false;
};

}  // namespace shoal
