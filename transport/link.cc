#include "transport/link.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "common/log.h"
#include "transport/envelope.h"

namespace shoal {
namespace {

std::string text_of(const Error& error) { return std::string(name_of(error.code)) + ": " + error.message; }

// A tick that came so late means that we stood still, not the other end.
constexpr Duration kOwnStallMin = 2 * limits::kPingPeriod;
constexpr int kLeastRttRises = 64;  // by this part with each ping, should the way have become longer

}  // namespace

Status check_hello(const Hello& hello, const PeerId& peer, const RunId& run) {
  if (hello.protocol != protocol_version()) {
    return make_error(ErrorCode::kVersion, "protocol version " + std::to_string(hello.protocol) +
                                               ", this program speaks " + std::to_string(protocol_version()) +
                                               "; HINT: use the same release of shoal at both ends");
  }
  if (hello.run != run)
    return make_error(ErrorCode::kForeign,
                      "belongs to run " + short_name(hello.run) + ", this is run " + short_name(run));
  if (hello.session != Session::of(peer, hello.session.incarnation)) {
    return make_error(ErrorCode::kRefused,
                      "session " + short_name(hello.session) + " is not one of peer " + short_name(peer));
  }
  if (hello.whereabouts.addresses.size() > limits::kAddressesMax) {
    return make_error(ErrorCode::kTooLarge, std::to_string(hello.whereabouts.addresses.size()) + " addresses, limit " +
                                                std::to_string(limits::kAddressesMax));
  }
  return Status::success();
}

void count_refusal(TransportCounters& counters, ErrorCode code) {
  switch (code) {
    case ErrorCode::kTooLarge:
      ++counters.too_large;
      break;
    case ErrorCode::kForeign:
      ++counters.foreign_run;
      break;
    case ErrorCode::kVersion:
      ++counters.wrong_version;
      break;
    case ErrorCode::kStale:
      ++counters.stale_session;
      break;
    case ErrorCode::kCorrupt:
      ++counters.corrupt;
      break;
    case ErrorCode::kRefused:
    case ErrorCode::kNotAdmitted:
      ++counters.refused;
      break;
    case ErrorCode::kMalformed:
      ++counters.malformed;
      break;
    default:
      break;  // losses and timeouts are no refusals
  }
}

Link::Link(Parts parts, ConnectionId connection, const PeerId& self, const PeerId& peer, const RunId& run, bool dialled)
    : parts_(parts),
      connection_(connection),
      remote_{peer, {}, {}},
      run_(run),
      dialled_(dialled),
      chooses_(self < peer),
      inbox_(parts.budget, peer < self) {}

Link::~Link() { parts_.loop.cancel(timer_); }

void Link::start() {
  timer_ = parts_.loop.after(limits::kHandshakeTime, [this] {
    timer_ = 0;
    fail(make_error(ErrorCode::kTimeout, "no Hello within " + std::to_string(limits::kHandshakeTime / 1ms) + " ms"));
  });
  if (!chooses_) send_now(parts_.owner.our_hello());
}

void Link::on_bytes(Lane lane, Bytes bytes) {
  if (over()) return;
  heard_ = parts_.loop.now();
  received_bytes_ += bytes.size();
  parts_.counters.received_bytes += bytes.size();
  if (lane == Lane::kBulk) {
    on_chunk(std::move(bytes));
  } else if (!messages_.take(heard_)) {
    fail(make_error(ErrorCode::kTooLarge, "peer " + short_name(peer()) + " sends more than " +
                                              std::to_string(std::llround(limits::kMessagesPerSecondMax)) +
                                              " messages a second"));
  } else if (state_ == State::kGreeting) {
    on_greeting(bytes);
  } else {
    on_control(bytes);
  }
  if (up()) give_credit();
}

void Link::on_greeting(ByteView bytes) {
  auto envelope = parse_envelope(bytes);
  if (!envelope.ok()) {
    // So that the other end can name the difference as well.
    if (envelope.code() == ErrorCode::kVersion && chooses_) send_now(parts_.owner.our_hello());
    return fail(envelope.error());
  }
  if (const auto* fenced = std::get_if<Fenced>(&envelope->message)) return end(refused_by(*fenced));
  const auto* hello = std::get_if<Hello>(&envelope->message);
  if (!hello || envelope->transfer) {
    return fail(make_error(ErrorCode::kMalformed, std::string(name_of(envelope->message)) + " before Hello"));
  }
  on_hello(*hello);
}

void Link::on_hello(const Hello& hello) {
  Status verdict = check_hello(hello, peer(), run_);
  if (verdict.ok()) {
    remote_.session = hello.session;
    remote_.role = hello.role;
    verdict = parts_.owner.admit(*this, hello);
    if (over()) return;
    if (!verdict.ok()) remote_.session = {};
    if (!verdict.ok() && verdict.code() == ErrorCode::kStale) send_now(Fenced{hello.session, verdict.error().message});
  } else if (chooses_) {
    send_now(parts_.owner.our_hello());
  }
  if (!verdict.ok()) return fail(verdict.error());

  if (chooses_) send_now(parts_.owner.our_hello());
  parts_.loop.cancel(timer_);
  state_ = State::kUp;
  since_ = heard_ = chunk_heard_ = worked_ = ticked_ = parts_.loop.now();
  parts_.outbox.open();
  parts_.owner.on_link_open(*this);
  if (up()) tick();
}

void Link::on_control(ByteView bytes) {
  // What it said is lost, and only with its link may a message be lost: who waits for it learns of that.
  if (const Status whole = check_envelope(bytes); !whole.ok())
    return fail(make_error(ErrorCode::kCorrupt, "a damaged message: " + whole.error().message));
  auto envelope = parse_envelope(bytes);
  if (!envelope.ok()) return offence(envelope.error());
  on_up_message(std::move(envelope).value());
}

void Link::on_up_message(Envelope envelope) {
  if (std::holds_alternative<Hello>(envelope.message))
    return offence(make_error(ErrorCode::kMalformed, "a second Hello"));
  if (envelope.message.index() <= 4) {
    if (envelope.transfer)
      return offence(make_error(ErrorCode::kMalformed, std::string(name_of(envelope.message)) + " with frames"));
    return void(on_link_message(envelope.message));
  }
  const auto* fenced = std::get_if<Fenced>(&envelope.message);
  if (!fenced || fenced->session != parts_.owner.our_hello().session) return deliver(std::move(envelope));
  const Error cause = refused_by(*fenced);
  deliver(std::move(envelope));
  end(cause);
}

Error Link::refused_by(const Fenced& fenced) const {
  return make_error(ErrorCode::kStale, "peer " + short_name(peer()) + " refuses session " + short_name(fenced.session) +
                                           ": " + fenced.reason);
}

bool Link::on_link_message(const Message& message) {
  if (const auto* ping = std::get_if<Ping>(&message)) {
    if (parts_.outbox.crowded()) return true;
    parts_.outbox.push_link_message(Pong{ping->nonce});
    pump();
  } else if (const auto* pong = std::get_if<Pong>(&message)) {
    if (pong->nonce != nonce_ || pinged_ == TimePoint{}) return true;  // an earlier one: too late to tell
    const Duration time = parts_.loop.now() - pinged_;
    rtt_ = rtt_ == Duration::zero() ? time : rtt_ + (time - rtt_) / 8;
    least_rtt_ = least_rtt_ == Duration::zero() ? time : std::min(time, least_rtt_ + least_rtt_ / kLeastRttRises);
    pinged_ = {};
  } else if (const auto* credit = std::get_if<ByteCredit>(&message)) {
    on_byte_credit(*credit);
  } else if (const auto* drop = std::get_if<DropTransfer>(&message)) {
    const bool theirs = inbox_.drop(drop->transfer);
    if (!theirs) parts_.outbox.drop(drop->transfer);  // refused by them; unknown: all of it was sent already
    if (theirs)
      parts_.owner.on_link_frames(*this, drop->transfer, make_error(ErrorCode::kGone, "the sender dropped them"));
  } else {
    return false;
  }
  return true;
}

void Link::on_byte_credit(const ByteCredit& credit) {
  if (credit.consumed < their_consumed_ || credit.consumed > bulk_sent_ || !parts_.outbox.add_credit(credit.bytes)) {
    return fail(make_error(ErrorCode::kMalformed, "byte credit of " + std::to_string(credit.bytes) + " at " +
                                                      std::to_string(credit.consumed)));
  }
  if (credit.consumed > their_consumed_) {
    meter_.on_delivered(parts_.loop.now(), credit.consumed - their_consumed_, rtt_);
    line_.on_delivered(parts_.loop.now(), credit.consumed - their_consumed_);
  }
  their_consumed_ = credit.consumed;
  worked_ = parts_.loop.now();
  pump();
}

void Link::deliver(Envelope envelope) {
  worked_ = parts_.loop.now();
  TransferId transfer = 0;
  std::uint64_t frame_bytes = 0;
  if (envelope.transfer) {
    transfer = envelope.transfer->id;
    frame_bytes = envelope.transfer->total_bytes();
    if (Status reserved = inbox_.on_header(*envelope.transfer); !reserved.ok()) {
      if (reserved.code() == ErrorCode::kStale) {
        ++parts_.counters.duplicate;
        return;
      }
      if (reserved.code() != ErrorCode::kTooLarge) return offence(reserved.error());
      note(reserved.error());
      if (parts_.outbox.crowded()) return;
      parts_.outbox.push_link_message(DropTransfer{transfer});
      return pump();
    }
    if (!inbox_.waiting()) chunk_heard_ = parts_.loop.now();
  }
  parts_.owner.on_link_message(*this, std::move(envelope.message), transfer, frame_bytes);
  if (up() && transfer != 0) hand_over(inbox_.replay());
}

void Link::on_chunk(Bytes bytes) {
  chunk_heard_ = worked_ = parts_.loop.now();
  auto finished = inbox_.on_chunk(std::move(bytes));
  if (!finished.ok()) return fail(finished.error());
  hand_over(std::move(finished).value());
}

void Link::hand_over(std::vector<Inbox::Finished> finished) {
  for (Inbox::Finished& transfer : finished) {
    if (!up()) return;
    if (!transfer.frames.ok()) note(transfer.frames.error());
    parts_.owner.on_link_frames(*this, transfer.transfer, std::move(transfer.frames));
  }
}

void Link::refuse(TransferId transfer) {
  if (!up() || !inbox_.drop(transfer)) return;
  parts_.outbox.push_link_message(DropTransfer{transfer});
  pump();
}

void Link::drop(TransferId transfer) {
  if (!parts_.outbox.drop(transfer) || !up()) return;
  parts_.outbox.push_link_message(DropTransfer{transfer});
  pump();
}

void Link::give_credit() {
  if (parts_.outbox.crowded()) return;  // tick() comes back to it
  // By the smoothed one a loop that is late would let more come at once, which makes it later.
  const std::optional<std::uint64_t> bytes = inbox_.take_grant(parts_.loop.now(), least_rtt_);
  if (!bytes) return;
  parts_.outbox.push_link_message(ByteCredit{*bytes, inbox_.consumed_bytes()});
  pump();
}

void Link::pump() { pump(chunks_due_ ? 0 : limits::kChunkBytes); }

void Link::pump(std::uint64_t bulk_max) {
  if (!up()) return;
  const Outbox::Sent sent = parts_.outbox.pump(parts_.wire, connection_, line_, parts_.loop.now(), bulk_max);
  sent_bytes_ += parts_.counters.add_sent(sent.control_bytes + sent.bulk_bytes, parts_.wire.relayed(connection_));
  if (sent.chunk_payload_bytes == 0) return;
  meter_.on_sent(parts_.loop.now(), sent.chunk_payload_bytes);
  bulk_sent_ += sent.chunk_payload_bytes;
  if (std::exchange(chunks_due_, true)) return;
  parts_.loop.post(lifetime_.guard([this] {
    parts_.loop.name_callback("chunks");
    chunks_due_ = false;
    pump(kBulkAtOnce);
  }));
}

void Link::tick() {
  const TimePoint now = parts_.loop.now();
  if (now - ticked_ > kOwnStallMin) heard_ = chunk_heard_ = now;
  ticked_ = now;
  if (now - heard_ > limits::kLinkSilenceMax) {
    return fail(make_error(ErrorCode::kTimeout, "peer " + short_name(peer()) + " was silent for " +
                                                    std::to_string((now - heard_) / 1ms) + " ms"));
  }
  if (!inbox_.waiting()) chunk_heard_ = now;
  if (now - chunk_heard_ > limits::kTransferSilenceMax) {
    return fail(make_error(ErrorCode::kTimeout, "peer " + short_name(peer()) +
                                                    " announced frames and sent none of them for " +
                                                    std::to_string((now - chunk_heard_) / 1s) + " s"));
  }
  // Both ends tick alike, so one is to be the first.
  const Duration quiet = limits::kIdlePingPeriod + (dialled_ ? Duration::zero() : limits::kPingPeriod);
  if (now - worked_ <= limits::kIdleAfter || now - heard_ >= quiet) ping(now);
  timer_ = parts_.loop.after(limits::kPingPeriod, [this] {
    parts_.loop.name_callback("link tick");
    timer_ = 0;
    tick();
  });
  give_credit();
  pump();
}

void Link::ping(TimePoint now) {
  if (pinged_ == TimePoint{} || now - pinged_ >= limits::kLinkSilenceMax / 2) {
    pinged_ = now;
    ++nonce_;
  }
  if (!parts_.outbox.crowded()) parts_.outbox.push_link_message(Ping{nonce_});
}

void Link::send_now(const Message& message) {
  auto envelope = pack_envelope(message, std::nullopt);
  SHOAL_CHECK(envelope.ok());
  const std::size_t bytes = envelope->size();
  if (!parts_.wire.send(connection_, Lane::kControl, std::move(envelope).value()).ok())
    return;  // its loss shows as silence
  sent_bytes_ += parts_.counters.add_sent(bytes, parts_.wire.relayed(connection_));
}

void Link::close(const Message* farewell) {
  if (over()) return;
  if (farewell && up()) send_now(*farewell);
  state_ = State::kOver;
  parts_.loop.cancel(timer_);
  timer_ = 0;
}

void Link::fail(const Error& cause) {
  if (over()) return;
  note(cause);
  end(cause);
}

void Link::end(const Error& cause) {
  if (over()) return;
  close();
  parts_.owner.on_link_failed(*this, cause);
}

// Logged at the 1st, 2nd, 4th, ... of its kind, so that a hostile peer cannot fill the log.
void Link::note(const Error& cause) {
  TransportCounters& counters = parts_.counters;
  const auto sum = [&] {
    return counters.malformed + counters.too_large + counters.foreign_run + counters.wrong_version +
           counters.stale_session + counters.corrupt + counters.refused;
  };
  const std::uint64_t before = sum();
  count_refusal(counters, cause.code);
  if (sum() != before && std::has_single_bit(sum()))
    log_warning("refused from peer ", short_name(peer()), " (", sum(), " so far): ", text_of(cause));
}

void Link::offence(const Error& cause) {
  note(cause);
  if (++offences_ < limits::kMalformedPerLinkMax) return;
  end(make_error(ErrorCode::kMalformed, "peer " + short_name(peer()) + " sent " + std::to_string(offences_) +
                                            " messages that make no sense; the last: " + cause.message));
}

LinkStats Link::stats() const {
  LinkStats stats;
  stats.up = up();
  stats.relayed = parts_.wire.relayed(connection_);
  stats.busy = !parts_.outbox.empty() || inbox_.waiting();
  stats.rtt = rtt_;
  stats.bytes_per_second = meter_.bytes_per_second();
  stats.queued_bytes = parts_.outbox.queued_bytes();
  stats.sent_bytes = sent_bytes_;
  stats.received_bytes = received_bytes_;
  stats.heard = heard_;
  return stats;
}

}  // namespace shoal
