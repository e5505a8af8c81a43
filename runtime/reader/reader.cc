#include "runtime/reader/reader.h"

#include <algorithm>

#include "authority/list_change.h"
#include "authority/membership.h"
#include "runtime/config/signed_manifest.h"
#include "transport/signed_list.h"

namespace shoal {
namespace {

constexpr Duration kTick = 200ms;

}  // namespace

Reader::Reader(ReaderOptions options, Wire& wire, EventLoop& loop, Rng rng)
    : options_(std::move(options)), loop_(loop), rng_(rng.fork("reader")) {
  const Session session = Session::of(options_.self, rng_.next());
  transport_ = std::make_unique<Transport>(
      wire, loop, Transport::Options{options_.run, options_.self, session, PeerRole::kObserver, {}});
  transport_->set_listener(this);
  transport_->hear(as_peer(options_.run), options_.launching);
}

Reader::~Reader() { loop_.cancel(timer_); }

void Reader::start() {
  started_ = heard_ = loop_.now();
  transport_->dial(as_peer(options_.run));
  tick();
}

bool Reader::ready() const {
  return text_ && list_ && list_->stages.size() >= config_->pipeline.stages && !stage_without_peers();
}

std::optional<std::size_t> Reader::stage_without_peers() const {
  const auto serves = [](const StageMembers& stage) {
    return std::ranges::any_of(stage.members, [](const Member& member) { return member.serving; });
  };
  const auto found = std::ranges::find_if_not(list_->stages, serves);
  if (found == list_->stages.end()) return {};
  return static_cast<std::size_t>(found - list_->stages.begin());
}

void Reader::tick() {
  timer_ = loop_.after(kListPeriod, lifetime_.guard([this] { tick(); }));
  if (failure_) return;
  send(config_ ? Message(query_for_list()) : Message(ManifestQuery{}));
  if (transport_->remote(as_peer(options_.run))) heard_ = loop_.now();  // links notice what is gone
  was_ready_ = was_ready_ || ready();
  if (!was_ready_ && list_ && stage_without_peers() && loop_.now() - started_ >= options_.text.patience)
    fail(ErrorCode::kUnreachable, "no peer serves stage " + std::to_string(*stage_without_peers()) +
                                      ". HINT: lend a machine with `shoal join`, or ask again when the run trains");
  if (loop_.now() - heard_ < kPatience) return;
  fail(ErrorCode::kUnreachable, "the run's launching process does not answer" +
                                    (last_cause_.empty() ? "" : ": " + last_cause_) +
                                    ". HINT: is the run still on, and the ticket its own? One that admits "
                                    "listed keys answers --own-key alone");
}

void Reader::send(Message message) {
  if (const auto sent = transport_->send(as_peer(options_.run), std::move(message)); !sent.ok())
    last_cause_ = sent.error().message;
}

void Reader::fail(ErrorCode code, std::string why) {
  if (!failure_) failure_ = make_error(code, std::move(why));
}

void Reader::on_link_up(const Remote& remote) {
  if (!is_launch(remote.peer)) return;
  send(ManifestQuery{});
  send(query_for_list());
}

// For a newer one than is here.
MembersQuery Reader::query_for_list() const { return list_ ? MembersQuery{list_->epoch, list_id_} : MembersQuery{}; }

void Reader::on_link_down(const Remote& remote, const Error& cause) {
  if (is_launch(remote.peer)) {
    last_cause_ = cause.message;
    if (cause.code == ErrorCode::kRefused || cause.code == ErrorCode::kUnsupported)
      fail(cause.code, "the run does not let this machine read: " + cause.message);
  } else if (text_) {
    text_->on_link_down(remote.peer);
  }
}

void Reader::on_message(const Remote& remote, Message message, TransferId transfer, std::uint64_t frame_bytes) {
  bool awaited = false;
  if (const auto* manifest = std::get_if<Manifest>(&message); manifest && is_launch(remote.peer)) {
    on_manifest(*manifest);
  } else if (const auto* members = std::get_if<Members>(&message); members && is_launch(remote.peer)) {
    on_list(*members);
  } else if (const auto* end = std::get_if<End>(&message); end && check_end(*end, options_.run).ok()) {
    fail(ErrorCode::kGone, "the run is over: " + end->reason);
  } else if (const auto* extended = std::get_if<Extended>(&message); extended && text_) {
    awaited = text_->on_extended(remote, *extended, transfer, frame_bytes);
  }
  if (transfer != 0 && !awaited) transport_->refuse(remote.peer, transfer);
}

void Reader::on_frames(const Remote& remote, TransferId transfer, Result<std::vector<Bytes>> frames) {
  if (text_) (void)text_->on_frames(remote.peer, transfer, frames);
}

void Reader::on_manifest(const Manifest& manifest) {
  if (config_) return;
  auto config = open_manifest(manifest, options_.run);
  if (!config.ok()) return fail(config.code(), config.error().message);
  auto specs = split_model(config->model_spec(), config->pipeline.stages, config->pipeline.layers_per_stage);
  if (!specs.ok()) return fail(specs.code(), specs.error().message);
  config_ = *std::move(config);
  text_ = std::make_unique<SwarmText>(options_.text,
                                      SwarmText::Environment{loop_, *transport_, *std::move(specs), rng_.fork("text")});
  if (list_) text_->on_members(*list_);
  send(query_for_list());
}

void Reader::on_list(const Members& members) {
  auto list = open_member_list(members, options_.run, list_ ? std::optional(list_->epoch) : std::nullopt);
  if (!list.ok()) return;  // one that is known, or not the run's
  list_ = *std::move(list);
  list_id_ = list_id(members.body);
  if (text_) text_->on_members(*list_);
}

Result<std::vector<float>> WaitingText::extend(std::span<const std::uint32_t> ids) {
  auto answer = std::make_shared<std::optional<Result<std::vector<float>>>>();
  reader_.text().extend(ids, [answer](Result<std::vector<float>> logits) { *answer = std::move(logits); });
  (void)wait_([&] { return answer->has_value() || reader_.failure(); });
  if (answer->has_value()) return std::move(**answer);
  reader_.text().cancel();
  if (reader_.failure()) return *reader_.failure();
  return make_error(ErrorCode::kInterrupted, "the text was stopped");
}

}  // namespace shoal
