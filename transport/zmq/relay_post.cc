#include "transport/zmq/relay_post.h"

#include <algorithm>

#include "common/log.h"

namespace shoal {

void RelayPost::tell(Bytes list) {
  list_ = std::move(list);
  list_waits_ = stage_ == Stage::kStands;
}

bool RelayPost::turn(TimePoint now) {
  if (!talk_ && now < again_at_) return true;
  Status stands = talk_ ? Status::success() : begin(now);
  if (stands.ok()) stands = go_on(now);
  if (!stands.ok()) rest(now, stands.error().message);
  return true;
}

Status RelayPost::begin(TimePoint now) {
  SHOAL_ASSIGN(talk_, RelayTalk::begin(relay_));
  stage_ = Stage::kNonce;
  silent_at_ = now + limits::kRelayedDialTime;
  talk_->say(pack_relay_home(home_));
  talk_->await(sizeof(RelayNonce));
  return Status::success();
}

Status RelayPost::go_on(TimePoint now) {
  for (int words = 0; words < kWordsPerTurn; ++words) {
    SHOAL_TRY(talk_->turn());
    if (!talk_->whole()) break;
    SHOAL_TRY(take_word(now));
  }
  if (now >= silent_at_) return make_error(ErrorCode::kTimeout, "it is silent");
  if (stage_ != Stage::kStands || !talk_->all_said()) return Status::success();
  if (std::exchange(list_waits_, false)) talk_->say(list_);
  if (now >= ping_at_) talk_->say(pack_relay_ping());
  if (now >= ping_at_) ping_at_ = now + kRelayPingPeriod;
  return Status::success();  // it leaves in the next turn, which comes at once: to hear here would be to hear unasked
}

Status RelayPost::take_word(TimePoint now) {
  const ByteView heard = talk_->heard();
  if (stage_ == Stage::kNonce) {
    RelayNonce nonce;
    std::copy(heard.begin(), heard.end(), nonce.begin());
    talk_->say(key_.sign(home_text(home_, nonce)));
    talk_->forget();
    talk_->await(kRelayVerdictBytes);
    stage_ = Stage::kVerdict;
    return Status::success();
  }
  if (stage_ == Stage::kVerdict) {
    SHOAL_TRY(take_verdict());
    ping_at_ = now + kRelayPingPeriod;
  } else if (!is_relay_ping(heard)) {
    if (home_.kind == RelayKind::kRun) return make_error(ErrorCode::kMalformed, "it says what no relay says");
    if (heard.size() == kRelayPingBytes) {
      talk_->await(kRelayIncomingBytes - kRelayPingBytes);
      return Status::success();
    }
    SHOAL_ASSIGN(const RelayIncoming incoming, parse_relay_incoming(heard));
    on_call_(incoming);
  } else {  // it stood for a while
    told_.clear();
    pause_.reset();
  }
  silent_at_ = now + kRelaySilenceMax;
  talk_->forget();
  talk_->await(kRelayPingBytes);
  return Status::success();
}

Status RelayPost::take_verdict() {
  SHOAL_ASSIGN(const RelayVerdict verdict, parse_relay_verdict(talk_->heard()));
  if (verdict != RelayVerdict::kJoined) return make_error(ErrorCode::kUnreachable, std::string(name_of(verdict)));
  log_info("relay ", relay_.text(), ": ", what(), " stands");
  stage_ = Stage::kStands;
  if (home_.kind != RelayKind::kRun) return Status::success();
  talk_->say(key_.id().bytes);
  list_waits_ = !list_.empty();
  return Status::success();
}

void RelayPost::rest(TimePoint now, const std::string& why) {
  talk_.reset();
  stage_ = Stage::kNonce;
  again_at_ = now + pause_.next();
  if (why != told_) log_info("relay ", relay_.text(), ": ", what(), " does not stand: ", why, "; it is made again");
  told_ = why;
}

std::string RelayPost::what() const {
  return home_.kind == RelayKind::kRun ? "what tells it of the run" : "where others call this machine";
}

SocketWaits RelayPost::waits() const { return {talk_ ? talk_->waits() : SocketWait{}, SocketWait{}}; }

TimePoint RelayPost::due() const {
  if (!talk_) return again_at_;
  return stage_ == Stage::kStands ? std::min(silent_at_, ping_at_) : silent_at_;
}

}  // namespace shoal
