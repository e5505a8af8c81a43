#include "runtime/stage_peer/stage_peer.h"

#include "common/fault.h"
#include "common/log.h"
#include "runtime/config/frames_allowed.h"
#include "runtime/stage_peer/evaluation.h"
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

StagePeer::StagePeer(StagePeerOptions options, StagePeerEnvironment environment, Owner& owner)
    : options_(std::move(options)),
      env_(std::move(environment)),
      owner_(owner),
      part_bytes_max_(env_.executor->arena().size() * sizeof(float)),
      meters_(options_.config->targets_per_microbatch(), options_.config->activation_bytes()),
      entries_(options_, env_, meters_),
      device_(env_.device, env_.loop, env_.executor,
              {[this] { return jobs_.start_release(); }, [this] { return rounds_.start_next(); },
               [this] { return jobs_.start_next(); }}),
      jobs_(options_, env_, owner_, entries_, device_, meters_, arena_),
      rounds_(options_, env_, owner_, entries_, device_, meters_, arena_, jobs_) {
  schedule_tick();
}

StagePeer::~StagePeer() { stop(); }

void StagePeer::serve(Version version, RuleId rule, StepId done) {
  arena_.version = version;
  arena_.rule = rule;
  meters_.start(env_.loop.now());
  arena_.serving = true;
  arena_.step_done = done;
  if (traits_of(rule).every_step) {  // the moments came with it
    entries_.windows().start_behind(done);
    arena_.adam_step = done.value;
  }
  entries_.windows().wrote(env_.executor->stamp());
  owner_.on_version(version);
  device_.pump();
}

void StagePeer::stop() {
  if (stopped()) return;
  device_.stop();
  rounds_.cancel();
  env_.loop.cancel(tick_timer_);
}

void StagePeer::run_on_device(WorkKind task, std::function<void(StageExecutor&)> job, std::function<void()> done) {
  device_.ask(task, std::move(job), std::move(done));
}

void StagePeer::leave() {
  entries_.ledger().set_leaving(true);
  device_.pump();
}

bool StagePeer::quiet() const { return entries_.ledger().quiet() && device_.idle() && rounds_.quiet(); }

std::string StagePeer::waiting_for() const {
  std::string text = std::to_string(entries_.ledger().live()) + " open entries";
  if (rounds_.active()) text += ", a round";
  if (const auto missed = rounds_.behind()) text += ", the state of version " + std::to_string(missed->value);
  return text;
}

std::vector<Session> StagePeer::on_members(const MemberList& list) {
  std::vector<Session> over = entries_.on_members(list);
  for (const Session& session : over) jobs_.forget(session);
  device_.pump();
  return over;
}

void StagePeer::on_link_up(const Remote& remote) { entries_.courier().on_link_up(remote, env_.loop.now()); }

void StagePeer::on_link_down(const Remote& remote) {
  rounds_.forget_link(remote.peer);
  entries_.on_link_down(remote);
  device_.pump();
}

void StagePeer::on_message(const Remote& from, const Message& message, TransferId transfer, std::uint64_t frame_bytes) {
  entries_.windows().note_time(env_.loop.now());
  if (const auto why = refusal(from, message, transfer, frame_bytes)) return refuse(from, message, transfer, *why);
  take(from, message, transfer);
  device_.pump();
}

std::optional<BusyReason> StagePeer::refusal(const Remote& from, const Message& message, TransferId transfer,
                                             std::uint64_t frame_bytes) {
  // Only the authority and members may claim; a list that is behind costs one retry.
  if (!entries_.neighbours().admits(from)) return BusyReason::kNotServing;
  if (transfer == 0 || frame_bytes <= frame_bytes_allowed(message, *options_.config, options_.spec, part_bytes_max_))
    return std::nullopt;
  if (const auto times = said_.due(std::string(name_of(message)) + short_name(from.session), env_.loop.now()))
    log_warning(name_of(message), " with ", frame_bytes, " bytes of frames from ", short_name(from.session), " refused",
                LogThrottle::text_of(*times));
  return BusyReason::kMalformed;
}

void StagePeer::refuse(const Remote& from, const Message& message, TransferId transfer, BusyReason why) {
  if (transfer != 0) env_.links.refuse(from.peer, transfer);
  if (const auto* forward = std::get_if<Forward>(&message))
    (void)env_.links.send(from.peer, Busy{forward->lease, why, 0});
}

void StagePeer::take(const Remote& from, const Message& message, TransferId transfer) {
  const TimePoint now = env_.loop.now();
  const bool authority = entries_.neighbours().is_trainer(from);
  Ledger& ledger = entries_.ledger();
  if (authority) ledger.heard_trainer(now);
  entries_.courier().note_heard(from.session, now);
  std::visit(
      OneTaker{
          [&](const Forward& m) {
            // While behind, our anchor trains others' microbatches as well as before, but evaluates none.
            std::optional<BusyReason> why = entries_.unfit(from, m, transfer);
            if (!arena_.serving) why = BusyReason::kNotServing;
            if (!why) why = evaluation_refused(m, options_.spec, rounds_.anchor_for_next_job());
            if (!why && jobs_.rests(from.session)) why = BusyReason::kFailed;
            if (why) return refuse(from, message, transfer, *why);
            entries_.on_forward(from, m, transfer);
          },
          [&](const Gradient&) {
            SHOAL_FAULT("peer.gradient_arrives");
            entries_.courier().on_message(from, message, transfer, now);
          },
          [&](const AnyOf<Busy, Have, Gone, NeedKeyFrame, Progress, Waiting> auto&) {
            entries_.courier().on_message(from, message, transfer, now);
          },
          [&](const Take& m) { ledger.on_take(from.session, m, now); },
          [&](const Release& m) { ledger.on_release(from.session, m); },
          [&](const Renew& m) {
            if (authority) ledger.on_lows(m.lows);
            ledger.on_renew(from.session, m, now);
          },
          [&](const Hint& m) { ledger.on_hint(from.session, m, now); },
          [&](const Commit& m) {
            if (!authority) return ledger.on_hearsay(m, now);
            note_run(m.run_targets, m.run_loss);
            ledger.on_commit(from.session, m);
          },
          [&](const Step& m) {
            if (!authority) return;
            note_run(m.run_targets, m.run_loss);
            ledger.on_step(m);
          },
          [&](const RoundOpen& m) { rounds_.on_open(from, m); },
          [&](const RoundCommit& m) { rounds_.on_commit(from, m); },
          [&](const RoundAbandon& m) { rounds_.on_abandon(from, m); },
          [&](const RoundPart& m) { rounds_.on_part(from, m, transfer); },
          // An acknowledged COMMIT of ours needs no more; what concerns the whole session was its owner's.
          [](const CommitAck&) {},
          [](const AnyOf<JoinRequest, JoinAnswer, Members, MembersChange, MembersQuery, Beat, BeatAck, Fenced, Leave,
                         Goodbye, End, RoundReport> auto&) {},
          [](const AnyOf<StateQuery, StateOffer, ChunkQuery, Chunk, ManifestQuery, Manifest, PeersQuery, Peers> auto&) {
          },
          [](const AnyOf<Hello, Ping, Pong, ByteCredit, DropTransfer, Extend, Extended> auto&) {},
      },
      message);
}

void StagePeer::note_run(std::uint64_t targets, double loss) {
  if (targets > entries_.windows().run_targets()) run_loss_ = loss;
  entries_.windows().note_run(targets);
}

void StagePeer::on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames) {
  if (!entries_.on_frames(from, transfer, frames)) rounds_.on_frames(from, transfer, frames);
  device_.pump();
}

void StagePeer::schedule_tick() {
  tick_timer_ = env_.loop.after(kTick, [this] {  // stop() cancels it
    schedule_tick();
    tick();
  });
}

void StagePeer::tick() {
  env_.loop.name_callback("stage tick");
  const TimePoint now = env_.loop.now();
  entries_.windows().note_time(now);
  const bool beat = now >= next_beat_;
  if (beat) {
    next_beat_ = now + kBeat;
    meters_.measure(entries_.ledger().counters().counted, now);
  }
  entries_.tick(job_ms(), beat);
  device_.pump();
}

std::uint32_t StagePeer::job_ms() const {
  return device_.idle() ? 0 : std::max(1u, milliseconds_up(device_.running()));
}

StagePeerStatus StagePeer::status() const {
  StagePeerStatus status;
  status.ledger = entries_.ledger().counters();
  status.courier = entries_.courier().counters();
  status.settled_targets = entries_.windows().stepped_targets();
  status.inner_steps = meters_.readings().inner_steps;
  status.delay = meters_.readings().delay;
  status.run_targets = entries_.windows().run_targets();
  status.run_loss = run_loss_;
  status.graphs_dropped = meters_.readings().graphs_dropped;
  status.last_accepted = meters_.readings().last_accepted;
  status.device_busy = !device_.idle();
  status.job_ms = job_ms();
  status.longest_ms = milliseconds_up(device_.longest_of_kind());
  status.longest_job = device_.longest();
  status.live = entries_.ledger().live();
  status.queued = entries_.ledger().queued();
  status.parked = entries_.courier().hops().parked();
  status.queue_ms = entries_.ledger().queue_ms();
  status.stranded = entries_.courier().stranded();
  status.rate = meters_.readings().rate;
  status.forward_us = meters_.readings().forward_us;
  status.activation_codec = meters_.readings().activation_codec;
  status.gradient_codec = meters_.readings().gradient_codec;
  status.backward_us = meters_.readings().backward_us;
  status.bases = entries_.bases().counters();
  status.fp32_bytes = meters_.readings().fp32_bytes;
  status.payload_bytes = meters_.readings().payload_bytes;
  status.version = arena_.version;
  return status;
}

}  // namespace shoal
