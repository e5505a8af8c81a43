#include "runtime/stage_peer/text_desk.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "common/check.h"
#include "common/log.h"
#include "stages/host_coder.h"

namespace shoal {
namespace {

std::uint64_t bytes_of_request(const StageSpec& spec, const Extend& message) {
  const std::uint64_t activation = spec.is_first() ? 0 : std::uint64_t{spec.model.wire_width()} * sizeof(float);
  return message.count * (sizeof(std::uint32_t) + activation);
}

HostTensor tensor_of(DType dtype, Shape shape, const Bytes& frame) {
  Buffer buffer(frame.size());  // aligned, which a frame may not be
  std::memcpy(buffer.data(), frame.data(), frame.size());
  return make_host_tensor(dtype, std::move(shape), std::move(buffer));
}

// The ids of the largest logits, largest first, and those logits.
std::vector<Bytes> likeliest(std::span<const float> logits, std::size_t count) {
  std::vector<std::uint32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0u);
  count = std::min(count, ids.size());
  std::ranges::partial_sort(
      ids, ids.begin() + static_cast<std::ptrdiff_t>(count),
      [&](std::uint32_t a, std::uint32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  ids.resize(count);
  std::vector<float> values;
  for (const std::uint32_t id : ids) values.push_back(logits[id]);
  return {Bytes::copy_of(bytes_of(std::span<const std::uint32_t>(ids))),
          Bytes::copy_of(bytes_of(std::span<const float>(values)))};
}

}  // namespace

struct TextDesk::Outcome {
  Status status;
  std::vector<Bytes> frames;
  std::shared_ptr<TextStage> stage;
};

TextDesk::~TextDesk() { env_.loop.cancel(timer_); }

std::uint64_t TextDesk::bytes_of(std::uint64_t places) const {
  const ModelSpec& model = env_.spec.model;
  const std::uint64_t of_layer = 2 * std::uint64_t{model.key_heads()} * model.width_of_head() * sizeof(float);
  return (env_.spec.end_layer - env_.spec.first_layer) * of_layer * places;
}

// ---- requests ----

std::optional<std::string> TextDesk::unfit(const Extend& message, std::uint64_t frame_bytes) const {
  if (message.stage != env_.spec.stage) return "another stage is served here";
  if (message.count == 0 || message.count > kPlacesMax)
    return "a request has 1 to " + std::to_string(kPlacesMax) + " places";
  if (std::uint64_t{message.first} + message.count > env_.spec.model.context_length())
    return "the model's context is " + std::to_string(env_.spec.model.context_length());
  if (bytes_of(std::uint64_t{message.first} + message.count) > kTextBytesMax)
    return "its keys and values would take more than " + std::to_string(kTextBytesMax >> 20) + " MiB here";
  if (frame_bytes != bytes_of_request(env_.spec, message)) return "its frames have another size than its places need";
  return std::nullopt;
}

void TextDesk::answer(const PeerId& to, const Extend& message, TextAnswer answer, std::string reason,
                      std::vector<Bytes> frames) {
  Extended said{message.text, message.stage, message.first, message.count, answer, env_.version(), std::move(reason)};
  if (const auto sent = env_.links.send(to, std::move(said), std::move(frames)); !sent.ok())
    log_debug("not sent: ", sent.error().message);
}

void TextDesk::on_extend(const Remote& from, const Extend& message, TransferId transfer, std::uint64_t frame_bytes) {
  const auto refuse = [&](TextAnswer why, std::string reason) {
    if (transfer != 0) env_.links.refuse(from.peer, transfer);
    answer(from.peer, message, why, std::move(reason));
  };
  if (!env_.serving()) return refuse(TextAnswer::kBusy, "this peer does not serve yet");
  if (transfer == 0) return refuse(TextAnswer::kRefused, "it has no frames");
  if (auto why = unfit(message, frame_bytes)) return refuse(TextAnswer::kRefused, std::move(*why));
  forget_requests(from.peer);
  if (queue_.size() + awaited_.size() >= kQueuedMax) return refuse(TextAnswer::kBusy, "too many requests wait here");
  awaited_[{from.peer, transfer}] = {message, env_.loop.now()};
}

// A reader that asks again has given up what it asked before.
void TextDesk::forget_requests(const PeerId& reader) {
  std::erase_if(queue_, [&](const Request& request) { return request.reader == reader; });
  std::erase_if(awaited_, [&](const auto& item) {
    if (item.first.first != reader) return false;
    env_.links.refuse(reader, item.first.second);
    return true;
  });
}

bool TextDesk::on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames) {
  const auto found = awaited_.find({from.peer, transfer});
  if (found == awaited_.end()) return false;
  const Extend message = found->second.message;
  awaited_.erase(found);
  if (!frames.ok()) return true;  // the reader's link is down, or it gave up
  const std::size_t wanted = env_.spec.is_first() ? 1 : 2;
  if (frames->size() != wanted || frames->front().size() != message.count * sizeof(std::uint32_t)) {
    answer(from.peer, message, TextAnswer::kRefused, "its frames are not ids and activation");
    return true;
  }
  queue_.push_back({from.peer, message, std::move(*frames)});
  begin_next();
  return true;
}

void TextDesk::on_link_down(const PeerId& peer) {
  std::erase_if(awaited_, [&](const auto& item) { return item.first.first == peer; });
  forget_requests(peer);
  std::erase_if(texts_, [&](const auto& item) { return item.first.reader == peer && !item.second.computing; });
}

void TextDesk::tick(TimePoint now) {
  std::erase_if(awaited_, [&](const auto& item) {
    if (now - item.second.since < kFramesWithin) return false;
    env_.links.refuse(item.first.first, item.first.second);
    return true;
  });
  std::erase_if(texts_, [&](const auto& item) { return !item.second.computing && now - item.second.used > kIdle; });
}

// ---- the device ----

// Others that were continued longest ago go, unless they are at work, until this one has so many bytes.
bool TextDesk::make_room(const Name& name, std::uint64_t needed) {
  const auto others = [&] {
    std::uint64_t sum = 0;
    for (const auto& [other, text] : texts_)
      if (other != name) sum += text.bytes;
    return sum;
  };
  while ((!texts_.contains(name) && texts_.size() >= kTextsMax) || others() + needed > kTextBytesMax) {
    auto oldest = texts_.end();
    for (auto text = texts_.begin(); text != texts_.end(); ++text) {
      if (text->first == name || text->second.computing) continue;
      if (oldest == texts_.end() || text->second.used < oldest->second.used) oldest = text;
    }
    if (oldest == texts_.end()) return false;
    texts_.erase(oldest);
  }
  return true;
}

void TextDesk::begin_next() {
  if (computing_ || queue_.empty() || timer_ != 0) return;
  if (env_.loop.now() < rest_until_) {
    timer_ = env_.loop.at(rest_until_, lifetime_.guard([this] {
      timer_ = 0;
      begin_next();
    }));
    return;
  }
  Request request = std::move(queue_.front());
  queue_.pop_front();
  compute(std::move(request));
}

void TextDesk::compute(Request request) {
  const Name name{request.reader, request.message.text};
  const std::uint32_t first = request.message.first;
  if (first == 0) texts_.erase(name);
  const auto known = texts_.find(name);
  if (first > 0 && (known == texts_.end() || known->second.stage->places() != first)) {
    answer(request.reader, request.message, TextAnswer::kUnknown, "the places before are not here");
    return begin_next();
  }
  if (!make_room(name, bytes_of(std::uint64_t{first} + request.message.count))) {
    answer(request.reader, request.message, TextAnswer::kBusy, "as many texts are continued as are kept");
    return begin_next();
  }
  Text& text = texts_[name];
  text.computing = true;
  text.used = env_.loop.now();
  computing_ = true;
  auto outcome = std::make_shared<Outcome>();
  outcome->stage = text.stage;
  auto shared = std::make_shared<Request>(std::move(request));
  env_.on_device(
      [outcome, shared, spec = env_.spec](StageExecutor& executor) {
        if (!outcome->stage) outcome->stage = executor.begin_text();
        const std::int64_t count = shared->message.count;
        const HostTensor ids = tensor_of(DType::kU32, {1, count}, shared->frames.front());
        HostCoder coder(spec.is_first()
                            ? HostTensor{}
                            : tensor_of(DType::kF32, {1, count, spec.model.wire_width()}, shared->frames.back()));
        const Result<HostTensor> made = outcome->stage->extend(ids, coder);
        outcome->status = made.ok() ? Status() : Status(made.error());
        if (!made.ok()) return;
        outcome->frames = spec.is_last() ? likeliest(made->f32(), shared->message.likeliest)
                                         : std::vector<Bytes>{coder.output().bytes};
      },
      lifetime_.guard([this, outcome, shared](Duration took) { done(*shared, *outcome, took); }));
}

void TextDesk::done(const Request& request, Outcome& outcome, Duration took) {
  const TimePoint now = env_.loop.now();
  computing_ = false;
  rest_until_ = now + kRest * took;
  const auto found = texts_.find({request.reader, request.message.text});
  SHOAL_CHECK(found != texts_.end());
  if (outcome.status.ok()) {
    found->second = {outcome.stage, outcome.stage->bytes(), now, false};
    answer(request.reader, request.message, TextAnswer::kDone, "", std::move(outcome.frames));
  } else {
    texts_.erase(found);
    answer(request.reader, request.message, TextAnswer::kRefused, outcome.status.error().message.substr(0, 400));
  }
  begin_next();
}

}  // namespace shoal
