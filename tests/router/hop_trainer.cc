// The trainer of the harness: what runtime/trainer/trainer.cc does around a courier and a commit book.
#include "hop_world.h"

namespace shoal::hop {

TrainerActor::TrainerActor(World& world, Session self)
    : Actor(world, self, StageId(0)), book_(kTrainerId, world.options().stages) {
  const auto whole =
      read_record_log(world.log(), kTrainerLog, [this](ByteView record) { return book_.replay(record); });
  if (!whole.ok()) world.violate("the log cannot be read: " + whole.error().message);
  for (std::uint64_t serial = 0; serial < book_.next_serial(); ++serial)
    if (const auto* logged = book_.find({kTrainerId, serial})) world.replayed({kTrainerId, serial}, logged->path);
  if (world.log().empty()) world.log_write(book_.header_record());
  for (const World::Decision& decision : world.decisions())
    if (decision.commit)
      on_round_commit(*decision.commit);
    else
      on_session_over(decision.over, "session over");
}

void TrainerActor::start() {
  queue(book_.outstanding());
  announced_ = world_.steps_done();
  announce_steps();
  issue();
}

bool TrainerActor::settled() const {
  return book_.next_serial() == world_.options().microbatches && book_.open() == 0 && deciding_.empty() &&
         book_.next() == MicrobatchId{kTrainerId, world_.options().microbatches};
}

std::vector<Bytes> TrainerActor::unsynced() const {
  std::vector<Bytes> result;
  for (const auto& [serial, record] : unsynced_) result.push_back(record);
  return result;
}

void TrainerActor::issue() {
  const Options& options = world_.options();
  while (true) {
    const auto id = book_.next();
    if (!id || id->serial >= options.microbatches || book_.open() + deciding_.size() >= options.in_flight) return;
    const std::uint64_t step = options.step_size > 0 ? id->serial / options.step_size + 1 : 0;
    if (step > world_.steps_done() + 2) return;
    book_.issued(*id);
    world_.note(self_, "issue", *id, "");
    HopSpec spec;
    spec.microbatch = *id;
    spec.sample = SampleId(id->serial);
    spec.step = StepId(step);
    spec.to = StageId(0);
    spec.above = {self_};
    courier_.open(std::move(spec), world_.now());
  }
}

void TrainerActor::on_message(const Session& from, Message& message, TransferId) {
  if (!hears(from)) return;
  const bool held = courier_.on_message(remote_of(from), message, 0, world_.now());
  if (const auto* waiting = std::get_if<Waiting>(&message))
    if (const auto stage = neighbours_.roster().stage_of(from))
      if (auto decided = book_.ask(waiting->microbatch, *stage, from)) queue({{from, {*std::move(decided)}}});
  if (held) {
  } else if (auto* m = std::get_if<CommitAck>(&message)) {
    for (const CommitAckItem& item : m->items)
      if (const auto listing = book_.on_ack(item, from)) world_.list(*listing);
  }
  issue();
}

void TrainerActor::on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes>) {
  if (!book_.is_open(microbatch)) return;
  if (gradient.path.size() != world_.options().stages || book_.names_any(gradient.path)) {
    world_.violate("a path that no log takes");
    return;
  }
  const Bytes record = book_.log(microbatch, gradient);
  deciding_.insert(microbatch.serial);
  append(record, [this, microbatch] { on_durable(microbatch); });
}

void TrainerActor::append(Bytes record, std::function<void()> durable) {
  const std::uint64_t place = ++appended_;
  unsynced_[place] = std::move(record);
  world_.after(*this, world_.job_duration(), [this, place, durable = std::move(durable)] {
    while (!unsynced_.empty() && unsynced_.begin()->first <= place) {  // a sync takes along what was appended before
      world_.log_write(unsynced_.begin()->second);
      unsynced_.erase(unsynced_.begin());
    }
    durable();
  });
}

void TrainerActor::on_durable(const MicrobatchId& microbatch) {
  if (deciding_.erase(microbatch.serial) == 0) return;
  world_.logged(microbatch, book_.find(microbatch)->path);
  for (const CommitBook::Listing& listing : book_.durable(microbatch)) world_.list(listing);
  queue(book_.commits_for(microbatch));
  queue(book_.answers(microbatch));
  courier_.commit(microbatch);
  announce_steps();
  issue();
}

void TrainerActor::announce_steps() {
  const std::uint64_t size = world_.options().step_size;
  while (size > 0) {
    Step step;
    step.step = StepId(announced_ + 1);
    std::vector<MicrobatchId> ids;
    for (std::uint64_t i = announced_ * size; i < (announced_ + 1) * size && i < world_.options().microbatches; ++i) {
      const MicrobatchId id{kTrainerId, i};
      if (i >= book_.low() && (book_.find(id) == nullptr || !book_.find(id)->durable)) return;
      ids.push_back(id);
    }
    if (ids.empty()) return;
    step.winners = book_.paths(ids);
    ++announced_;
    world_.announce(step);
  }
}

void TrainerActor::queue(const std::map<Session, std::vector<CommitItem>>& commits) {
  for (const auto& [session, items] : commits) {
    auto& queue = commits_[session];
    queue.insert(queue.end(), items.begin(), items.end());
  }
}

void TrainerActor::flush() {
  for (auto& [session, items] : std::exchange(commits_, {})) {
    Commit message;
    message.items = std::move(items);
    message.lows = {{kTrainerId, book_.low()}};
    neighbours_.send(session, std::move(message));
  }
}

void TrainerActor::tick() {
  const TimePoint now = world_.now();
  flush();
  courier_.tick(now, {{kTrainerId, book_.low()}});
  if (now >= next_repeat_) {
    next_repeat_ = now + world_.options().lease / 4;
    queue(book_.outstanding());
    if (book_.done().dirty()) {
      append(book_.done_record(), [this] { book_.done_durable(); });
    }
  }
  issue();
}

void TrainerActor::on_link_down(const Session& session) { courier_.on_link_down(remote_of(session), world_.now()); }

void TrainerActor::on_members(const MemberList& list) {
  courier_.on_members(list, world_.now());
  issue();
}

void TrainerActor::on_round_commit(const RoundCommit& commit) {
  for (const auto& listing : book_.on_round_commit(commit, [](const MicrobatchId&, StageId, const EntryName&) {}))
    world_.violate("lost and in a round: " + listing.cause);
}

void TrainerActor::on_session_over(const Session& session, std::string_view cause) {
  for (const CommitBook::Listing& listing : book_.on_session_over(session, cause)) world_.list(listing);
}

}  // namespace shoal::hop
