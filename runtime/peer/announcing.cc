#include "runtime/peer/announcing.h"

#include "common/log.h"

namespace shoal {

void Announcing::announce(const Facts& facts) {
  if (directory_ == nullptr) return;
  pace_.told(clock_.now(), facts.version, facts.figures.rate);
  const std::uint64_t sequence_before = sequence_;
  sequence_ = next_sequence(sequence_, clock_.wall());
  std::optional<DiskRecord> on_disk;
  if (facts.on_disk) on_disk = {facts.on_disk->version, clock_.wall() - std::chrono::seconds(facts.on_disk->age_s)};
  PeerRecord record{.run = run_,
                    .peer = key_.id(),
                    .session = facts.session,
                    .stage = facts.stage,
                    .whereabouts = whereabouts_,
                    .version = facts.version,
                    .serving = facts.serving,
                    .figures = facts.figures,
                    .on_disk = on_disk,
                    .sequence = sequence_,
                    .expires = clock_.wall() + kRecordTtl};
  const double seconds = sequence_before == 0 ? 0 : seconds_of(clock_.now() - told_at_);
  const auto per_second = [&](std::uint64_t now, std::uint64_t before) {
    return seconds > 0 && now > before ? static_cast<std::uint64_t>(static_cast<double>(now - before) / seconds) : 0;
  };
  record.figures.sent_rate = per_second(facts.figures.sent_bytes, sent_);
  record.figures.got_rate = per_second(facts.figures.received_bytes, received_);
  record.figures.falls = directory_->falls();
  told_at_ = clock_.now();
  sent_ = facts.figures.sent_bytes;
  received_ = facts.figures.received_bytes;
  if (auto text = pack_record(record, key_); text.ok())
    directory_->announce(*std::move(text), stage_key(run_, facts.stage));
  else
    log_warning("no record for the directory: ", text.error().message);
}

void Announcing::announce_if_due(const Facts& facts) {
  if (directory_ != nullptr && pace_.due(clock_.now(), facts.version, facts.figures.rate)) announce(facts);
}

void Announcing::withdraw(StageId stage) {
  if (directory_ != nullptr) directory_->withdraw(stage_key(run_, stage));
}

bool Announcing::take_exchange() {
  const TimePoint now = clock_.now();
  if (directory_ == nullptr || now < next_exchange_) return false;
  next_exchange_ = now + kExchangePeriod;
  return true;
}

std::optional<std::vector<std::string>> Announcing::known() const {
  if (directory_ == nullptr) return std::nullopt;
  return directory_->known(kExchangedMax);
}

void Announcing::offer(const std::vector<std::string>& records) {
  if (directory_ != nullptr) directory_->offer(records);
}

}  // namespace shoal
