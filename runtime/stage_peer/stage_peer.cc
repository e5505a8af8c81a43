#include "runtime/stage_peer/stage_peer.h"

#include "common/fault.h"
#include "common/log.h"
#include "common/trainer_id.h"
#include "runtime/config/frames_allowed.h"
#include "transport/one_taker.h"

namespace shoal {

namespace {
constexpr Duration kTick = 50ms;
constexpr Duration kBeat = 250ms;  // four of them without a word make a peer silent (PeerHealth::kSilence)

// Rounded up: what was measured is not zero.
std::uint32_t milliseconds_up(Duration d) {
  return static_cast<std::uint32_t>(std::chrono::ceil<std::chrono::milliseconds>(d).count());
}

}  // namespace

StagePeer::StagePeer(StageSession session)
    : session_(std::move(session)),
      part_bytes_max_(session_.executor->arena().size() * sizeof(float)),
      meters_(session_.config->targets_per_microbatch(), session_.config->activation_bytes()),
      neighbours_(session_.links, session_.self, session_.authority),
      windows_(windows_options(*session_.config)),
      credits_(entry_credits(session_)),
      bases_(session_.config->base_bytes()),
      edges_(session_, neighbours_, bases_, meters_),
      entries_(session_, neighbours_, courier_, ledger_, tensors_, bases_, meters_),
      courier_(entries_, neighbours_, courier_options(session_),
               make_policy(session_.config->pipeline.routing, session_.self)),
      ledger_(entries_, courier_, windows_, credits_, ledger_options(session_)),
      device_(session_.device, session_.loop, session_.executor,
              {[this] { return jobs_.start(ledger_.release_job()); }, [this] { return rounds_.start_next(); },
               [this] { return jobs_.start(next_job()); }}),
      writes_(session_, windows_, device_, arena_, meters_),
      jobs_(session_, ledger_, courier_, credits_, tensors_, edges_, device_, meters_, writes_),
      rounds_(session_, neighbours_, ledger_, windows_, device_, arena_, writes_) {
  schedule_tick();
}

StagePeer::~StagePeer() { stop(); }

void StagePeer::serve(Version version, RuleId rule, StepId done) {
  arena_.version = version;
  arena_.rule = rule;
  meters_.start(session_.loop.now());
  arena_.serving = true;
  arena_.step_done = done;
  if (traits_of(rule).every_step) {  // the moments came with it
    windows_.start_behind(done);
    arena_.adam_step = done.value;
  }
  windows_.wrote(session_.executor->stamp());
  session_.owner.on_version(version);
  device_.pump();
}

void StagePeer::stop() {
  if (stopped()) return;
  device_.stop();
  rounds_.cancel();
  session_.loop.cancel(tick_timer_);
}

void StagePeer::run_on_device(WorkKind task, std::function<void(StageExecutor&)> job, std::function<void()> done) {
  device_.ask(task, std::move(job), std::move(done));
}

void StagePeer::leave() {
  ledger_.set_leaving(true);
  device_.pump();
}

bool StagePeer::quiet() const { return ledger_.quiet() && device_.idle() && rounds_.quiet(); }

std::string StagePeer::waiting_for() const {
  std::string text = std::to_string(ledger_.entries().live()) + " open entries";
  if (rounds_.active()) text += ", a round";
  if (const auto missed = rounds_.behind()) text += ", the state of version " + std::to_string(missed->value);
  return text;
}

std::vector<Session> StagePeer::on_members(const MemberList& list) {
  std::vector<Session> over = entries_.on_members(list);
  for (const Session& session : over) edges_.forget(session);
  device_.pump();
  return over;
}

void StagePeer::on_link_up(const Remote& remote) { courier_.on_link_up(remote, session_.loop.now()); }

void StagePeer::on_link_down(const Remote& remote) {
  rounds_.forget_link(remote.peer);
  entries_.on_link_down(remote);
  device_.pump();
}

void StagePeer::on_message(const Remote& from, const Message& message, TransferId transfer, std::uint64_t frame_bytes) {
  windows_.note_time(session_.loop.now());
  if (const auto why = refusal(from, message, transfer, frame_bytes)) return refuse(from, message, transfer, *why);
  take(from, message, transfer);
  device_.pump();
}

std::optional<BusyReason> StagePeer::refusal(const Remote& from, const Message& message, TransferId transfer,
                                             std::uint64_t frame_bytes) {
  // Only the authority and members may claim; a list that is behind costs one retry.
  if (!neighbours_.admits(from)) return BusyReason::kNotServing;
  if (transfer == 0 || frame_bytes <= frame_bytes_allowed(message, *session_.config, session_.spec, part_bytes_max_))
    return std::nullopt;
  if (const auto times = said_.due(std::string(name_of(message)) + short_name(from.session), session_.loop.now()))
    log_warning(name_of(message), " with ", frame_bytes, " bytes of frames from ", short_name(from.session), " refused",
                LogThrottle::text_of(*times));
  return BusyReason::kMalformed;
}

void StagePeer::refuse(const Remote& from, const Message& message, TransferId transfer, BusyReason why) {
  if (transfer != 0) session_.links.refuse(from.peer, transfer);
  if (const auto* forward = std::get_if<Forward>(&message))
    (void)session_.links.send(from.peer, Busy{forward->lease, why, 0});
}

void StagePeer::take(const Remote& from, const Message& message, TransferId transfer) {
  const TimePoint now = session_.loop.now();
  const bool from_trainer = neighbours_.is_trainer(from);
  if (from_trainer) ledger_.heard_trainer(now);
  courier_.note_heard(from.session, now);
  std::visit(
      OneTaker{
          [&](const Forward& m) {
            // While behind, our anchor trains others' microbatches as well as before, but evaluates none.
            std::optional<BusyReason> why = entries_.unfit(from, m, transfer);
            if (!arena_.serving) why = BusyReason::kNotServing;
            if (!why) why = evaluation_refused(m, session_.spec, rounds_.anchor_for_next_job());
            if (!why && edges_.rests(from.session)) why = BusyReason::kFailed;
            if (why) return refuse(from, message, transfer, *why);
            entries_.on_forward(from, m, transfer);
          },
          [&](const Gradient&) {
            SHOAL_FAULT("peer.gradient_arrives");
            courier_.on_message(from, message, transfer, now);
          },
          [&](const AnyOf<Busy, Have, Gone, NeedKeyFrame, Progress, Waiting> auto&) {
            courier_.on_message(from, message, transfer, now);
          },
          [&](const Take& m) { ledger_.on_take(from.session, m, now); },
          [&](const Release& m) { ledger_.on_release(from.session, m); },
          [&](const Renew& m) {
            if (from_trainer) ledger_.on_lows(m.lows);
            ledger_.on_renew(from.session, m, now);
          },
          [&](const Hint& m) { ledger_.on_hint(from.session, m, now); },
          [&](const Commit& m) {
            if (!from_trainer) return ledger_.on_hearsay(m, now);
            windows_.note_run(m.run_targets);
            ledger_.on_commit(from.session, m);
          },
          [&](const Step& m) {
            if (!from_trainer) return;
            windows_.note_run(m.run_targets);
            ledger_.on_step(m);
          },
          [&](const Knock& m) {
            if (from_trainer) neighbours_.on_knock(m.session);
          },
          [&](const RoundOpen& m) { rounds_.on_open(from, m); },
          [&](const RoundCommit& m) { rounds_.on_commit(from, m); },
          [&](const RoundAbandon& m) { rounds_.on_abandon(from, m); },
          [&](const RoundPart& m) { rounds_.on_part(from, m, transfer); },
          // An acknowledged COMMIT of ours needs no more; what concerns the whole session was its owner's.
          [](const CommitAck&) {},
          [](const AnyOf<JoinRequest, JoinAnswer, Members, MembersChange, MembersQuery, Beat, BeatAck, Fenced, Leave,
                         Goodbye, End, RoundReport, ReachQuery, ReachAnswer> auto&) {},
          [](const AnyOf<StateQuery, StateOffer, ChunkQuery, Chunk, ManifestQuery, Manifest, PeersQuery, Peers> auto&) {
          },
          [](const AnyOf<Hello, Ping, Pong, ByteCredit, DropTransfer, Extend, Extended> auto&) {},
      },
      message);
}

void StagePeer::on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames) {
  if (!entries_.on_frames(from, transfer, frames)) rounds_.on_frames(from, transfer, frames);
  device_.pump();
}

void StagePeer::schedule_tick() {
  tick_timer_ = session_.loop.after(kTick, [this] {  // stop() cancels it
    schedule_tick();
    tick();
  });
}

void StagePeer::tick() {
  session_.loop.name_callback("stage tick");
  const TimePoint now = session_.loop.now();
  windows_.note_time(now);
  const bool beat = now >= next_beat_;
  if (beat) {
    next_beat_ = now + kBeat;
    meters_.measure(ledger_.counters(), now);
  }
  neighbours_.tick(now);
  ledger_.tick(now);
  courier_.tick(now);
  note_stranded();
  entries_.send_progress(job_ms(), beat);
  device_.pump();
}

// Others get the work meanwhile, so an open window would not fill: what it holds is stepped, and a round can secure it.
void StagePeer::note_stranded() {
  const bool stranded = courier_.stranded();
  if (stranded) windows_.flush();
  if (std::exchange(stranded_, stranded) == stranded) return;
  const std::string next = "stage " + std::to_string(session_.spec.route().next->value);
  if (stranded)
    log_warning("no peer of ", next, " answers: other peers of this stage are asked meanwhile");
  else
    log_info("a peer of ", next, " answers again");
}

std::optional<Job> StagePeer::next_job() {
  windows_.note_time(session_.loop.now());
  if (ledger_.leaving()) windows_.flush();
  return ledger_.next_job(arena_.shift_pending, !rounds_.holds_parameters());
}

std::uint32_t StagePeer::job_ms() const {
  return device_.idle() ? 0 : std::max(1u, milliseconds_up(device_.running()));
}

StagePeerStatus StagePeer::status() const {
  return {.settled_targets = windows_.stepped_targets(),
          .device_busy = !device_.idle(),
          .job_ms = job_ms(),
          .longest_ms = milliseconds_up(device_.longest_of_kind()),
          .longest_job = device_.longest(),
          .live = ledger_.entries().live(),
          .queued = ledger_.queued(),
          .parked = courier_.hops().parked(),
          .stranded = courier_.stranded(),
          .bases = bases_.counters(),
          .round_bytes = rounds_.sent_bytes(),
          .rounds_time = device_.of_rounds(),
          .version = arena_.version};
}

std::vector<RefusedMicrobatch> StagePeer::refused() {
  return meters_.refused(ledger_.low_of(trainer_id_of(session_.authority)));
}

PeerFigures StagePeer::figures() const {
  PeerFigures figures = meters_.figures(ledger_.counters());
  figures.queue_seconds = ledger_.queue_ms() / 1000.0;
  return figures;
}

}  // namespace shoal
