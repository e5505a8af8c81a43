// How a run's logs are opened: replayed, and compared with what the run goes on with.
#include "common/crypto/hash.h"
#include "common/trainer_id.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/log_partners.h"
#include "runtime/plan/split_limits.h"

namespace shoal {

namespace {
AuthorityOptions authority_options(const LaunchOptions& options) {
  const RunConfig& config = options.config;
  AuthorityOptions result;
  result.run = RunId{options.key.id().bytes};
  result.stages = config.pipeline.stages;
  result.rule = config.sync.rule;
  result.warm_steps = config.sync.warm_steps;
  result.round_targets = config.sync.rule == RuleId::kDiloco ? config.targets_per_round() : 0;
  result.round_cap = from_seconds(config.sync.round_cap_s);
  result.membership = config.membership();
  result.restore_after = config.restore_after();
  result.round_budget =
      options.round_budget > Duration(0) ? options.round_budget : from_seconds(config.sync.round_budget_s);
  result.entry_targets = config.targets_per_microbatch();
  result.payload_bytes = payload_bytes(config);
  return result;
}
}  // namespace

Result<std::unique_ptr<Launch>> Launch::open(LaunchOptions options, LaunchEnvironment environment, Owner& owner) {
  SHOAL_CHECK(!options.save || environment.run_aside);
  std::unique_ptr<Launch> launch(new Launch(std::move(options), std::move(environment), owner));
  SHOAL_TRY(launch->open_logs());
  return launch;
}

Status Launch::open_logs() {
  SHOAL_TRY(check_split_limits(options_.config));
  SHOAL_ASSIGN(manifest_.body, canonical_text(options_.config));
  manifest_.signature = sign(manifest_bytes());

  const std::string trainer_path = trainer_log_path(options_.folder),
                    authority_path = authority_log_path(options_.folder);
  const std::uint64_t trainer_id = trainer_id_of(options_.key.id());
  book_ = std::make_unique<CommitBook>(trainer_id, options_.config.pipeline.stages, options_.config.id_window());
  SHOAL_ASSIGN(AuthorityLog authority_log, open_authority_log(env_.storage, authority_path));
  SHOAL_ASSIGN(trainer_log_, RecordLog::open(env_.storage, trainer_path, kTrainerLog,
                                             [&](ByteView record) { return book_->replay(record); }));
  const bool exists = !trainer_log_->empty() || !authority_log.file->empty();
  if (exists && !options_.resume)
    return make_error(ErrorCode::kInput,
                      options_.folder + " holds a run already: go on with --resume, or choose another --dir");
  if (!exists && options_.resume)
    return make_error(ErrorCode::kInput, options_.folder + " holds no run to resume: start it without --resume");
  SHOAL_TRY(check_both_there(authority_log.records.size()));
  SHOAL_TRY(check_log_partners(reach_of(authority_log.records), *book_, trainer_path, authority_path));
  SHOAL_TRY(check_text());
  if (!exists && options_.keep) SHOAL_TRY(options_.keep());
  if (trainer_log_->empty()) trainer_log_->append(book_->header_record());
  AuthorityOptions options = authority_options(options_);
  options.manifest = manifest_;
  auto authority = Authority::open(std::move(options), *this, env_.loop, std::move(authority_log));
  if (!authority.ok()) return make_error(authority.code(), authority_path + ": " + authority.error().message);
  authority_ = *std::move(authority);
  return {};
}

// Both begin with a record of which nothing follows: a process that dies there may leave the one and not the other.
Status Launch::check_both_there(std::size_t authority_records) const {
  const bool trainer_went_on = book_->life() || book_->next_serial() > 0 || book_->ended();
  const auto missing = [this](const std::string& name, const std::string& partner) {
    return make_error(ErrorCode::kMissing, options_.folder + "/" + name + " is missing or empty, and " + partner +
                                               " beside it belongs to a run that went on. HINT: put " + name +
                                               " back; without it the run cannot go on, start a new one in another "
                                               "folder");
  };
  if (trainer_log_->empty() && authority_records > 1) return missing("trainer.log", "authority.log");
  if (authority_records == 0 && trainer_went_on) return missing("authority.log", "trainer.log");
  return {};
}

// Serial n is sample n of the text's order: with another text a resumed run would train on other samples under the
// names of those it has committed.
Status Launch::check_text() {
  text_ = env_.samples.file().digest();
  const auto& before = book_->life();
  if (!before || (before->text == text_ && before->samples == env_.samples.count())) return {};
  return make_error(ErrorCode::kInput, "token file " + options_.config.data.path + " is not the one that the run in " +
                                           options_.folder + " was begun with (BLAKE2b " + hex_of(text_).substr(0, 16) +
                                           ", it was " + hex_of(before->text).substr(0, 16) +
                                           "). HINT: put the old file back, or name it as [data] path in " +
                                           options_.folder +
                                           "/run.toml; another text takes a new run in another --dir");
}

}  // namespace shoal
