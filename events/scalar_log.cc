#include "events/scalar_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>

#include "common/bytes.h"
#include "common/log.h"
#include "common/os/posix_file.h"
#include "events/session_end.h"
#include "metrics/recent_rate.h"

namespace shoal {
namespace {

// Protobuf's wire format: a field's number and what follows it.
enum class Wire : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

template <class Unsigned>
void put_fixed(std::string& out, Unsigned value) {
  for (std::size_t i = 0; i < sizeof value; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}
void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
void put_key(std::string& out, unsigned field, Wire wire) { put_varint(out, field << 3 | static_cast<unsigned>(wire)); }
void put_bytes(std::string& out, unsigned field, std::string_view bytes) {
  put_key(out, field, Wire::kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

// The fields of the schema's messages Event, Summary and Summary.Value.
constexpr unsigned kTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
constexpr unsigned kValue = 1;
constexpr unsigned kTag = 1, kSimpleValue = 2;

std::string event_begin(WallTime time) {
  std::string event;
  put_key(event, kTime, Wire::kFixed64);
  put_fixed(event, std::bit_cast<std::uint64_t>(seconds_of(time.time_since_epoch())));
  return event;
}

// A sum that stands among what it is a sum of is turned and moved.
std::uint32_t masked_sum(std::string_view bytes) {
  const std::uint32_t sum = crc32c({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  return std::rotr(sum, 15) + 0xa282ead8u;
}

std::string record_of(std::string_view event) {
  std::string record;
  put_fixed(record, std::uint64_t{event.size()});
  put_fixed(record, masked_sum(record));
  record += event;
  put_fixed(record, masked_sum(event));
  return record;
}

class ScalarLog final : public EventLog {
 public:
  ScalarLog(std::string path, Descriptor file, const Clock& clock, std::unique_ptr<EventLog> inner)
      : path_(std::move(path)), file_(std::move(file)), clock_(clock), inner_(std::move(inner)) {}

  void write(const EventRecord& record) override {
    inner_->write(record);
    const bool known = step_.has_value();
    Scalars values = values_of(record);
    if (!step_) return wait(values);
    if (!known) values.insert(values.end(), waiting_.begin(), waiting_.end());
    if (!values.empty()) put(scalar_record(clock_.wall(), *step_, values));
  }
  void set_session(const Session& session) override { inner_->set_session(session); }
  void set_stage(StageId stage) override { inner_->set_stage(stage); }

  Status begin() { return append(scalar_file_begin(clock_.wall())); }

 private:
  Scalars values_of(const EventRecord& r) {
    switch (r.event) {
      case EventKind::kTrain:
        return of_step(r);
      case EventKind::kEstimate:
      case EventKind::kValidation:
        return r.loss ? Scalars{{"validation_loss", *r.loss}} : Scalars();
      case EventKind::kRoundCommit:
        if (!r.stage || !r.version) return {};
        return {{"version/stage_" + std::to_string(r.stage->value), static_cast<double>(r.version->value)}};
      case EventKind::kSessionOver:
        if (!is_fault(r.cause)) return {};
        return {{"faults", static_cast<double>(++faults_)}};
      default:
        return {};
    }
  }
  Scalars of_step(const EventRecord& r) {
    if (!r.step || !r.loss) return {};
    step_ = r.step->value;
    Scalars values = {{"loss", *r.loss}};
    if (!r.targets) return values;
    const auto tokens = static_cast<double>(*r.targets);
    rate_.note(tokens, clock_.now());
    values.emplace_back("tokens", tokens);
    if (rate_.per_second() > 0) values.emplace_back("tokens_per_second", rate_.per_second());
    return values;
  }
  void put(const std::string& record) {
    if (failed_) return;  // what follows half of a record could not be read
    if (const Status written = append(record); !written.ok()) {
      failed_ = true;
      log_error(written.error().message, "; curves end here");
    }
  }
  void wait(const Scalars& values) {
    for (const auto& [name, value] : values) waiting_[name] = value;
  }
  Status append(const std::string& record) { return write_all(file_, path_, {Bytes::copy_of(record)}); }

  const std::string path_;
  const Descriptor file_;
  const Clock& clock_;
  const std::unique_ptr<EventLog> inner_;
  RecentRate rate_{kRateWindow};
  std::optional<std::uint64_t> step_;      // none: no step was made yet, by a resumed process either
  std::map<std::string, double> waiting_;  // the newest of what came before it
  std::uint64_t faults_ = 0;
  bool failed_ = false;
};

}  // namespace

std::string scalar_file_begin(WallTime time) {
  std::string event = event_begin(time);
  put_bytes(event, kFileVersion, "brain.Event:2");
  return record_of(event);
}

std::string scalar_record(WallTime time, std::uint64_t step, const Scalars& values) {
  std::string summary;
  for (const auto& [name, number] : values) {
    std::string value;
    put_bytes(value, kTag, name);
    put_key(value, kSimpleValue, Wire::kFixed32);
    put_fixed(value, std::bit_cast<std::uint32_t>(static_cast<float>(number)));
    put_bytes(summary, kValue, value);
  }
  std::string event = event_begin(time);
  put_key(event, kStep, Wire::kVarint);
  put_varint(event, step);
  put_bytes(event, kSummary, summary);
  return record_of(event);
}

Result<std::unique_ptr<EventLog>> open_scalar_log(const std::string& folder, const Clock& clock,
                                                  std::unique_ptr<EventLog> inner) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return error_of_errno("create the folder", folder, failure.value());
  // Each process that writes there has a file of its own; TensorBoard knows them by the middle of this name.
  const auto seconds = static_cast<std::uint64_t>(seconds_of(clock.wall().time_since_epoch()));
  const std::string path =
      folder + "/events.out.tfevents." + std::to_string(seconds) + ".shoal." + std::to_string(::getpid());
  SHOAL_ASSIGN(Descriptor file, open_file(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC));
  auto log = std::make_unique<ScalarLog>(path, std::move(file), clock, std::move(inner));
  SHOAL_TRY(log->begin());
  return {std::unique_ptr<EventLog>(std::move(log))};
}

}  // namespace shoal
