#include "runtime/launch/run_logs.h"

#include "common/crypto/hash.h"
#include "common/trainer_id.h"

namespace shoal {

namespace {

Error missing(const std::string& path, const std::string& name, const std::string& partner) {
  return make_error(ErrorCode::kMissing, path + " is missing or empty, and " + partner +
                                             " beside it belongs to a run that went on. HINT: put " + name +
                                             " back; without it the run cannot go on, start a new one in another "
                                             "folder");
}

Error older(const std::string& path, const std::string& partner, const std::string& what) {
  return make_error(ErrorCode::kCorrupt, path + " is older than " + partner + ": " + what +
                                             ". HINT: put the newest copy of " + path +
                                             " back; without it the run cannot go on, start a new one in another "
                                             "folder");
}

}  // namespace

RunLogs::RunLogs(const LaunchOptions& options, const Samples& samples)
    : folder_(options.folder),
      text_(samples.text().digest()),
      book_(trainer_id_of(options.key.id()), options.config.pipeline.stages, options.config.id_window()),
      trainer_space_(trainer_log_path(options.folder), options.log_bytes_max, options.log_compact_bytes),
      authority_space_(authority_log_path(options.folder), options.log_bytes_max, options.log_compact_bytes) {}

Result<std::unique_ptr<RunLogs>> RunLogs::open(const LaunchOptions& options, Storage& storage, const Samples& samples) {
  std::unique_ptr<RunLogs> logs(new RunLogs(options, samples));
  SHOAL_ASSIGN(logs->authority_, open_authority_log(storage, authority_log_path(options.folder)));
  SHOAL_ASSIGN(logs->trainer_, RecordLog::open(storage, trainer_log_path(options.folder), kTrainerLog,
                                               [&](ByteView record) { return logs->book_.replay(record); }));
  const bool exists = !logs->trainer_->empty() || !logs->authority_.file->empty();
  if (exists && !options.resume)
    return make_error(ErrorCode::kInput,
                      options.folder + " holds a run already: go on with --resume, or choose another --dir");
  if (!exists && options.resume)
    return make_error(ErrorCode::kInput, options.folder + " holds no run to resume: start it without --resume");
  SHOAL_TRY(logs->check_both_there());
  SHOAL_TRY(check_log_partners(reach_of(logs->authority_.records), logs->book_, trainer_log_path(options.folder),
                               authority_log_path(options.folder)));
  SHOAL_TRY(logs->check_text(samples));
  if (!exists && options.keep) SHOAL_TRY(options.keep());
  if (logs->trainer_->empty()) logs->trainer_->append(logs->book_.header_record());
  return logs;
}

// Both begin with a record that nothing follows from: a process that dies there may leave the one and not the other.
Status RunLogs::check_both_there() const {
  const bool trainer_went_on = book_.life() || book_.next_serial() > 0 || book_.ended();
  if (trainer_->empty() && authority_.records.size() > 1)
    return missing(trainer_log_path(folder_), "trainer.log", "authority.log");
  if (authority_.records.empty() && trainer_went_on)
    return missing(authority_log_path(folder_), "authority.log", "trainer.log");
  return {};
}

// Serial n is sample n of the text's order: with another text a resumed run would train on other samples under the
// names of those it has committed. TextSet::open has refused that by the manifest's digests, which a run that was begun
// by an older program does not have.
Status RunLogs::check_text(const Samples& samples) const {
  const auto& before = book_.life();
  if (!before || (before->text == text_ && before->samples == samples.count())) return {};
  std::string names;
  for (const TokenFile& file : samples.text().training) names += (names.empty() ? "" : ", ") + file.path();
  return make_error(ErrorCode::kInput, "token file " + names + " is not the one that the run in " + folder_ +
                                           " was begun with (BLAKE2b " + hex_of(text_).substr(0, 16) + ", it was " +
                                           hex_of(before->text).substr(0, 16) +
                                           "). HINT: put the old file back, or name it as [data] path in " + folder_ +
                                           "/run.toml; another text takes a new run in another --dir");
}

void RunLogs::begin_life(const Session& session, const Samples& samples) {
  const std::uint64_t cursor = book_.next() ? book_.next()->serial : book_.next_serial();
  trainer_->append(book_.life_record({.session = session,
                                      .cursor = cursor,
                                      .epoch = static_cast<std::uint32_t>(cursor / samples.training()),
                                      .samples = samples.count(),
                                      .text = text_}));
}

void RunLogs::tend(Authority& authority, EventLoop& loop, LaunchOwner& owner, bool may_compact) {
  const TimePoint now = loop.now();
  const auto told = [&, this](LogSpace& space, auto bytes) {
    return lifetime_.guard([this, &space, &loop, &owner, bytes](const Status& status) {
      if (status.ok()) return space.compacted(bytes(), book_.committed());
      space.not_compacted(loop.now());
      owner.on_warning(space.path() + " cannot be compacted and goes on growing: " + status.error().message);
    });
  };
  if (may_compact && !trainer_->compacting() && trainer_space_.compaction_due(trainer_->bytes(), now))
    trainer_->compact(book_.compacted(), told(trainer_space_, [this] { return trainer_->bytes(); }));
  if (may_compact && authority_space_.compaction_due(authority.log_bytes(), now)) {
    const Status begun = authority.compact(told(authority_space_, [&authority] { return authority.log_bytes(); }));
    if (!begun.ok() && begun.code() != ErrorCode::kBusy) authority_space_.not_compacted(now);
  }
  for (const auto& warning : {trainer_space_.warning(trainer_->bytes(), book_.committed()),
                              authority_space_.warning(authority.log_bytes(), book_.committed())})
    if (warning) owner.on_warning(*warning);
}

Status check_log_partners(const LogReach& authority, const CommitBook& book, const std::string& trainer_path,
                          const std::string& authority_path) {
  if (book.committed() < authority.paths)
    return older(trainer_path, authority_path,
                 "it has " + std::to_string(book.committed()) +
                     " microbatches, and a round was committed when it had " + std::to_string(authority.paths));
  for (std::uint16_t k = 0; k < book.stages(); ++k) {
    const StageId stage(k);
    const auto at = authority.versions.find(stage);
    const Version version = at == authority.versions.end() ? Version() : at->second;
    if (version < book.done().heard(stage))
      return older(authority_path, trainer_path,
                   "entries are merged by version " + std::to_string(book.done().heard(stage).value) + " of stage " +
                       std::to_string(stage.value) + ", and it ends at version " + std::to_string(version.value));
  }
  return {};
}

}  // namespace shoal
