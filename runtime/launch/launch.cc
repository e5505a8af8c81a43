#include "runtime/launch/launch.h"

#include <algorithm>

#include "authority/membership.h"
#include "common/crypto/hash.h"
#include "common/log.h"
#include "common/trainer_id.h"
#include "events/session_end.h"
#include "runtime/config/frames_allowed.h"
#include "runtime/plan/flight_plan.h"
#include "runtime/plan/split_limits.h"

namespace shoal {

namespace {
constexpr Duration kTick = 200ms;
constexpr Duration kBytesPeriod = 1s;
constexpr std::size_t kReasonMax = 400;  // below limits::kTextMax
}  // namespace

Launch::Launch(LaunchOptions options, LaunchEnvironment environment, Owner& owner)
    : options_(std::move(options)),
      env_(std::move(environment)),
      owner_(owner),
      trainer_space_(trainer_log_path(options_.folder), options_.log_bytes_max, options_.log_compact_bytes),
      authority_space_(authority_log_path(options_.folder), options_.log_bytes_max, options_.log_compact_bytes) {}

Launch::~Launch() { env_.loop.cancel(timer_); }

// A process that died before it synced leaves records that are read back here and that a power loss takes: what follows
// from them (COMMITs, lists, round commits, END) must not be known to others before they are durable.
void Launch::start() {
  trainer_log_->sync(lifetime_.guard([this](const Status& trainer) {
    if (over_) return;
    if (!trainer.ok()) return on_log_failure(trainer.error());
    authority_->sync_log([this](const Status& authority) {
      if (over_) return;
      if (!authority.ok()) return on_log_failure(authority.error());
      begin();
    });
  }));
}

void Launch::begin() {
  SHOAL_CHECK(trainer_log_->settled());
  session_ = Session::of(options_.key.id(), env_.rng.next());
  env_.events.set_session(session_);
  write({.event = EventKind::kStart, .cause = options_.resume ? "resume" : ""});
  transport_ = std::make_unique<Transport>(env_.wire, env_.loop,
                                           Transport::Options{RunId{options_.key.id().bytes}, options_.key.id(),
                                                              session_, PeerRole::kTrainer, options_.addresses});
  transport_->set_listener(this);
  dial_back_ = std::make_unique<DialBack>(*transport_, env_.loop,
                                          [this](const DialBack::Verdict& verdict) { on_dialled_back(verdict); });
  const std::uint64_t trainer_id = trainer_id_of(options_.key.id());
  trainer_ = std::make_unique<Trainer>(
      TrainerOptions{options_.config, session_, trainer_id},
      TrainerEnvironment{env_.loop, *transport_, env_.events, env_.samples, *book_, *trainer_log_},
      static_cast<Trainer::Owner&>(*this));
  authority_->start();
  if (book_->ended()) return end_again();
  for (const std::string& warning : split_warnings(options_.config)) owner_.on_warning(warning);
  if (const auto warning = price_warning(options_.config)) owner_.on_warning(*warning);
  if (const auto notice = pipe_notice(options_.config)) owner_.on_notice(*notice);
  const std::uint64_t cursor = book_->next() ? book_->next()->serial : book_->next_serial();
  trainer_log_->append(book_->life_record({.session = session_,
                                           .cursor = cursor,
                                           .epoch = static_cast<std::uint32_t>(cursor / env_.samples.training()),
                                           .samples = env_.samples.count(),
                                           .text = text_}));
  trainer_log_->sync(lifetime_.guard([this](const Status& status) {
    if (!status.ok()) on_log_failure(status.error());
  }));
  trainer_->announce_steps();
  tick();
  if (!finish_wanted_.empty()) finish(finish_wanted_);
}

void Launch::later(std::function<void()> task) { env_.loop.post(lifetime_.guard(std::move(task))); }

void Launch::tick() {
  env_.loop.name_callback("launch tick");
  timer_ = env_.loop.after(kTick, lifetime_.guard([this] {
    if (!over_) tick();
  }));
  const TimePoint now = env_.loop.now();
  watch_stages();
  if (now >= next_announce_) announce();
  if (now >= next_exchange_) exchange_records();
  if (now >= next_bytes_) write_bytes();
  for (const InboundFrames& late : payments_.take_late(now)) transport_->refuse(late.peer, late.transfer);
  tend_logs();
  if (!finishing_ && stages_ready_ && trainer_->reached_end()) finish("all tokens are committed");
  if (finishing_) watch_holders(now);
  tell_waiting(now);
  tell_parked(now);
}

void Launch::tell_parked(TimePoint now) {
  const std::string parked = parked_text();
  if (parked.empty()) return parked_since_.reset();
  if (!parked_since_) parked_since_ = now;
  if (now >= next_parked_) {
    next_parked_ = now + 10s;
    owner_.on_notice(parked);
  }
  owner_.on_parked_for(now - *parked_since_);
}

// Every second what was added since: a killed process leaves out a second at most.
void Launch::write_bytes() {
  next_bytes_ = env_.loop.now() + kBytesPeriod;
  const TransportCounters& counters = transport_->counters();
  write(bytes_event({.event = EventKind::kBytes,
                     .sent = counters.sent_bytes - bytes_written_[0],
                     .received = counters.received_bytes - bytes_written_[1]},
                    env_.loop.take_longest_callback()));
  bytes_written_[0] = counters.sent_bytes;
  bytes_written_[1] = counters.received_bytes;
}

void Launch::tend_logs() {
  const TimePoint now = env_.loop.now();
  const auto told = [this](LogSpace& space, auto bytes) {
    return lifetime_.guard([this, &space, bytes](const Status& status) {
      if (status.ok()) return space.compacted(bytes(), book_->committed());
      space.not_compacted(env_.loop.now());
      owner_.on_warning(space.path() + " cannot be compacted and goes on growing: " + status.error().message);
    });
  };
  if (!finishing_ && !trainer_log_->compacting() && trainer_space_.compaction_due(trainer_log_->bytes(), now))
    trainer_log_->compact(book_->compacted(), told(trainer_space_, [this] { return trainer_log_->bytes(); }));
  if (!finishing_ && authority_space_.compaction_due(authority_->log_bytes(), now)) {
    const Status begun = authority_->compact(told(authority_space_, [this] { return authority_->log_bytes(); }));
    if (!begun.ok() && begun.code() != ErrorCode::kBusy) authority_space_.not_compacted(now);
  }
  for (const auto& warning : {trainer_space_.warning(trainer_log_->bytes(), book_->committed()),
                              authority_space_.warning(authority_->log_bytes(), book_->committed())})
    if (warning) owner_.on_warning(*warning);
}

// ---- transport ----

std::optional<Session> Launch::linked_session(const PeerId& peer) const {
  const auto remote = transport_ ? transport_->remote(peer) : std::nullopt;
  return remote ? std::optional(remote->session) : std::nullopt;
}

void Launch::on_link_up(const Remote& remote) {
  authority_->on_link_up(remote);
  trainer_->on_link_up(remote);
  if (env_.directory != nullptr) send(remote.peer, PeersQuery{});
}

void Launch::on_link_down(const Remote& remote, const Error&) {
  authority_->on_link_down(remote);
  trainer_->on_link_down(remote);
  if (fetcher_) fetcher_->on_donor_down(remote.peer);
  std::erase_if(inbound_chunks_, [&](const auto& item) { return item.first.peer == remote.peer; });
  payments_.drop(remote.peer);
}

void Launch::on_message(const Remote& remote, Message message, TransferId transfer, std::uint64_t frame_bytes) {
  if (auto* chunk = std::get_if<Chunk>(&message);
      chunk != nullptr && chunk_wanted(fetcher_.get(), remote.peer, *chunk, frame_bytes)) {
    if (transfer == 0)
      fetcher_->on_chunk(remote.peer, *chunk, {});
    else
      inbound_chunks_[{remote.peer, transfer}] = *chunk;
    return;
  }
  if (std::holds_alternative<ManifestQuery>(message)) {
    send(remote.peer, Manifest{manifest_});
  } else if (auto* m = std::get_if<StateOffer>(&message)) {
    if (fetcher_) fetcher_->on_offer(remote.peer, *m);
  } else if (std::holds_alternative<PeersQuery>(message)) {
    if (env_.directory != nullptr) send(remote.peer, Peers{env_.directory->known(kExchangedMax)});
  } else if (auto* m = std::get_if<Peers>(&message)) {
    if (env_.directory != nullptr) env_.directory->offer(m->records);
  } else if (auto* m = std::get_if<JoinRequest>(&message); m != nullptr && !authority_->knows(remote.session)) {
    const bool pays_already = payments_.awaits(remote.peer);  // one at a time
    if (transfer != 0 && frame_bytes == kDialPaymentBytes && !pays_already) {
      if (const auto out = payments_.await({remote.peer, transfer}, std::move(*m), env_.loop.now()))
        transport_->refuse(out->peer, out->transfer);
      return;
    }
    if (!pays_already) dial_back_->check(remote, *m, {.host = transport_->other_host(remote.peer), .paid = false});
  } else if (std::holds_alternative<JoinRequest>(message) || std::holds_alternative<Beat>(message) ||
             std::holds_alternative<Leave>(message) || std::holds_alternative<Goodbye>(message) ||
             std::holds_alternative<RoundReport>(message) || std::holds_alternative<MembersQuery>(message)) {
    authority_->on_message(remote, message);
  } else {
    trainer_->on_message(remote, message, 0);
  }
  if (transfer != 0) transport_->refuse(remote.peer, transfer);
}

void Launch::on_dialled_back(const DialBack::Verdict& verdict) {
  const auto remote = transport_->remote(verdict.from.peer);
  if (!remote || remote->session != verdict.from.session) return;  // its next session asks for itself
  if (verdict.reached.ok()) return authority_->on_message(*remote, verdict.request);
  JoinAnswer answer;
  answer.unreachable = true;
  answer.reason = verdict.reached.error().message.substr(0, kReasonMax);
  if (verdict.failures == 1) {
    write({.event = EventKind::kUnreachable, .about = remote->session, .cause = answer.reason});
    if (const auto times = said_.due(short_name(remote->peer), env_.loop.now()))
      owner_.on_notice("peer " + short_name(remote->peer) + " is not admitted: it cannot be dialled where it says (" +
                       answer.reason + ")" + LogThrottle::text_of(*times));
  }
  answer.reason = "cannot be dialled: " + answer.reason;
  send(remote->peer, std::move(answer));
}

void Launch::on_frames(const Remote& remote, TransferId transfer, Result<std::vector<Bytes>> frames) {
  if (const auto paid = payments_.take({remote.peer, transfer})) {
    if (frames.ok() && !authority_->knows(remote.session))
      dial_back_->check(remote, *paid, {.host = transport_->other_host(remote.peer), .paid = true});
    return;
  }
  const auto it = inbound_chunks_.find({remote.peer, transfer});
  if (it == inbound_chunks_.end()) return;
  const Chunk chunk = it->second;
  inbound_chunks_.erase(it);
  if (fetcher_ && frames.ok() && frames->size() == 1) fetcher_->on_chunk(remote.peer, chunk, frames->front());
}

// ---- the authority's port ----

void Launch::send(const PeerId& peer, Message message) {
  if (const auto sent = transport_->send(peer, std::move(message)); !sent.ok())
    log_debug("not sent: ", sent.error().message);
}

std::vector<std::uint8_t> Launch::sign(ByteView body) {
  const Signature signature = options_.key.sign(body);
  return {signature.begin(), signature.end()};
}

void Launch::fence(const Session& session) { transport_->fence(session); }

void Launch::on_members(const MemberList& list) {
  // Posted: none of these may call back into the authority.
  later([this, list] {
    transport_->favour(peers_of(list));
    trainer_->on_members(list);
    if (fetcher_ && fetcher_->active()) ask_donors();
    if (stages_ready_ || book_->ended()) return;
    const bool all = std::all_of(list.stages.begin(), list.stages.end(), [](const StageMembers& stage) {
      return std::any_of(stage.members.begin(), stage.members.end(),
                         [](const Member& member) { return member.serving; });
    });
    if (!all || list.stages.size() < options_.config.pipeline.stages) return;
    stages_ready_ = true;
    owner_.on_notice("every stage has a peer: training begins");
    trainer_->start();
  });
}

void Launch::on_round_commit(const RoundCommit& commit) {
  later([this, commit] { trainer_->on_round_commit(commit); });
}

void Launch::on_round_abandoned(const RoundAbandon&) { ++summary_.rounds_abandoned; }

void Launch::on_restored(const RoundCommit& commit, const RecentCommits::TakenBack& taken) {
  owner_.on_notice("stage " + std::to_string(commit.stage.value) + " went back to version " +
                   std::to_string(commit.back_to->value) + ", called " + std::to_string(commit.version.value) +
                   " from now on: nobody held the version before, and " + std::to_string(taken.entries()) +
                   " contributions that its rounds had secured are lost");
  later([this] {
    if (!validating_) return;  // of a version that nobody has
    trainer_->stop_validation();
    validate();
  });
}

void Launch::on_session_over(const Session& session, StageId stage, const std::string& why) {
  owner_.on_notice("stage " + std::to_string(stage.value) + ": session " + short_name(session) + " is over (" + why +
                   ")");
  if (timer_ != 0) standing_.on_session_over(session, stage, env_.loop.now());  // else the log is replayed
  later([this, session, why] { trainer_->on_session_over(session, why); });
}

void Launch::on_slow_log(Duration waited) {
  owner_.on_notice("the disk has not confirmed a write of " + options_.folder + "/authority.log for " +
                   std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(waited).count()) +
                   " ms: the run waits for it. HINT: put --dir on a disk that others use less");
}

void Launch::on_log_failure(const Error& error) {
  later([this, error] {
    done(make_error(error.code, "a log of the run cannot be written: " + error.message +
                                    "; once it can, go on with: shoal launch --resume " + options_.folder));
  });
}

// ---- the trainer's owner ----

void Launch::on_step(const Step& step) { authority_->on_step(step); }

void Launch::on_train_line(const TrainLine& line) {
  TrainLine whole = line;
  whole.faults = authority_->tally().faults;
  owner_.on_train_line(whole);
}

void Launch::on_progress(std::uint64_t run_targets, double loss, std::uint64_t step) {
  BeatAck status;
  status.run_targets = run_targets;
  status.run_loss = loss;
  status.run_step = step;
  authority_->set_status(status);
  standing_.on_progress(run_targets, loss, step, env_.loop.now());
}

void Launch::on_parked(StageId stage, bool parked) {
  if (trainer_->parked() != (parked ? 1u : 0u))
    return;  // said once, when the first one waits and when none does any more
  const std::string name = "stage " + std::to_string(stage.value);
  owner_.on_notice(parked ? "parked: no live peer of " + name
                          : "no microbatch waits for a peer of " + name + " any more");
}

void Launch::on_lost(const CommitBook::Listing& listing) {
  log_info("lost: microbatch ", listing.microbatch.serial, " at stage ", listing.stage, " (", listing.cause, ")");
}

// ---- the end ----

void Launch::on_progress(std::uint64_t bytes, std::uint64_t total) {
  owner_.on_headway({.what = "fetching the state of stage " + std::to_string(next_state_),
                     .done = bytes,
                     .total = total,
                     .bytes = true});
}

void Launch::on_validated(std::uint64_t samples, std::uint64_t of) {
  owner_.on_headway({.what = "validating", .done = samples, .total = of});
}

}  // namespace shoal
