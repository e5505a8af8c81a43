#include "transport/capped_wire.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/bulk_bytes.h"
#include "common/check.h"
#include "transport/envelope.h"
#include "transport/limits.h"

namespace shoal {
namespace {

constexpr std::uint64_t kPassAtOnce = kBulkBytesMax / 4;  // in one callback: each is summed and copied behind it
constexpr std::size_t kCappedMessageMax = limits::kChunkBytesMax + kChunkHeadBytes;

}  // namespace

CappedWire::CappedWire(Wire& inner, EventLoop& loop, const LineCaps& caps) : inner_(inner), loop_(loop) {
  SHOAL_CHECK(caps.any());
  if (caps.up > 0) up_.emplace(caps.up);
  if (caps.down > 0) down_.emplace(caps.down);
  inner_.set_listener(this);
}

CappedWire::~CappedWire() {
  inner_.set_listener(nullptr);
  if (up_) loop_.cancel(up_->timer);
  if (down_) loop_.cancel(down_->timer);
}

Status CappedWire::send(ConnectionId connection, Lane lane, Bytes message) {
  const std::uint64_t bytes = message.size() + kFramingBytes;
  const auto found = connections_.find(connection);
  if (!up_ || lane == Lane::kControl || found == connections_.end()) {
    SHOAL_TRY(inner_.send(connection, lane, std::move(message)));
    if (up_) up_->pace.pay(bytes);
    return Status::success();
  }
  if (message.size() > kCappedMessageMax)
    return make_error(ErrorCode::kTooLarge, "message of " + std::to_string(message.size()) + " bytes, limit " +
                                                std::to_string(kCappedMessageMax));
  const std::uint64_t waiting = up_->waiting.cost_of(connection);
  if (waiting > 0 && waiting + message.size() > limits::kQueuedBulkBytesMax) {
    found->second.busy = true;
    return make_error(ErrorCode::kBusy, "the lane is full");
  }
  up_->waiting.push(connection, std::move(message));
  pump_up();
  return Status::success();
}

void CappedWire::disconnect(ConnectionId connection) {
  forget(connection);
  inner_.disconnect(connection);
}

RefusalCounts CappedWire::refusals() const {
  RefusalCounts counts = inner_.refusals();
  const RefusalCounts ours = refusals_.counts();
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += ours[i];
  return counts;
}

void CappedWire::on_up(ConnectionId connection, const PeerId& peer, bool dialled) {
  connections_.emplace(connection, Connection{peer});
  if (listener_) listener_->on_up(connection, peer, dialled);
}

void CappedWire::on_bytes(ConnectionId connection, Lane lane, Bytes message) {
  if (!down_ || lane == Lane::kControl) {
    if (down_) down_->pace.pay(message.size() + kFramingBytes);
    if (listener_) listener_->on_bytes(connection, lane, std::move(message));
    return;
  }
  if (!connections_.contains(connection)) return;
  down_->waiting.push(connection, std::move(message));
  if (down_->waiting.cost() > limits::kUnreadBytesMax) return end_flood(down_->waiting.largest());
  pump_down();
}

void CappedWire::on_writable(ConnectionId connection, Lane lane) {
  if (up_ && lane == Lane::kBulk) {
    up_->waiting.release(connection);
    pump_up();
  } else if (listener_) {
    listener_->on_writable(connection, lane);
  }
}

void CappedWire::on_down(ConnectionId connection, const Error& cause) {
  forget(connection);
  if (listener_) listener_->on_down(connection, cause);
}

void CappedWire::pump_up() {
  std::uint64_t passed = 0;
  while (may_pass(*up_, passed, &CappedWire::pump_up)) {
    const ConnectionId connection = up_->waiting.next();
    const std::uint64_t bytes = up_->waiting.front().size() + kFramingBytes;
    const Status sent = inner_.send(connection, Lane::kBulk, up_->waiting.front());
    if (!sent.ok() && sent.code() == ErrorCode::kBusy) {
      up_->waiting.hold();
      continue;
    }
    if (!sent.ok()) {  // it is gone, and its on_down comes
      up_->waiting.forget(connection);
      continue;
    }
    up_->waiting.pop();
    up_->pace.pass(loop_.now(), bytes);
    passed += bytes;
    if (up_->waiting.cost_of(connection) <= limits::kQueuedBulkBytesMax / 2) tell_writable(connection);
  }
}

void CappedWire::pump_down() {
  const Lifetime::Watch watch = lifetime_.watch();
  std::uint64_t passed = 0;
  while (!watch.over() && may_pass(*down_, passed, &CappedWire::pump_down)) {
    const ConnectionId connection = down_->waiting.next();
    Bytes message = down_->waiting.front();
    down_->waiting.pop();
    down_->pace.pass(loop_.now(), message.size() + kFramingBytes);
    passed += message.size() + kFramingBytes;
    if (listener_) listener_->on_bytes(connection, Lane::kBulk, std::move(message));
  }
}

bool CappedWire::may_pass(Way& way, std::uint64_t passed, void (CappedWire::*pump)()) {
  loop_.cancel(std::exchange(way.timer, 0));
  if (way.waiting.empty()) return false;
  const TimePoint at = way.pace.passes_at(way.waiting.front().size() + kFramingBytes);
  if (at <= loop_.now() && passed < kPassAtOnce) return true;
  way.timer = loop_.at(at, [this, &way, pump] {
    loop_.name_callback("caps");
    way.timer = 0;
    (this->*pump)();
  });
  return false;
}

void CappedWire::end_flood(ConnectionId connection) {
  const Error cause = make_error(ErrorCode::kTooLarge, "sends faster than it is read, without regard to byte credits");
  refusals_.note(Refusal::kFlood, "peer " + short_name(connections_.at(connection).peer), cause.message);
  disconnect(connection);
  if (listener_) listener_->on_down(connection, cause);
}

// Maybe from inside send().
void CappedWire::tell_writable(ConnectionId connection) {
  const auto found = connections_.find(connection);
  if (found == connections_.end() || !std::exchange(found->second.busy, false)) return;
  loop_.post(lifetime_.guard([this, connection] {
    if (listener_ && connections_.contains(connection)) listener_->on_writable(connection, Lane::kBulk);
  }));
}

void CappedWire::forget(ConnectionId connection) {
  connections_.erase(connection);
  if (up_) up_->waiting.forget(connection);
  if (down_) down_->waiting.forget(connection);
}

}  // namespace shoal
