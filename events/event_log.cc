#include "events/event_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "common/log.h"
#include "common/os/posix_file.h"
#include "events/event_schema.h"

namespace shoal {
namespace {

// Seconds with microseconds: six decimals of a double would round.
std::string seconds_of(WallTime time) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  char digits[32];
  std::snprintf(digits, sizeof digits, "%lld.%06lld", static_cast<long long>(micros / 1000000),
                static_cast<long long>(micros % 1000000));
  return digits;
}

template <class Value>
void append(std::string& line, std::string_view name, const Value& value) {
  append_name(line, name);
  append_id(line, value);
}

class SilentEventLog final : public EventLog {
 public:
  void write(const EventRecord&) override {}
  void set_session(const Session&) override {}
  void set_stage(StageId) override {}
};

class FileEventLog final : public EventLog {
 public:
  FileEventLog(std::string path, Descriptor file, EventIdentity identity, const Clock& clock, EventLevel level)
      : path_(std::move(path)), file_(std::move(file)), identity_(std::move(identity)), clock_(clock), level_(level) {}

  void write(const EventRecord& record) override {
    if (level_ == EventLevel::kFull) return write_line(record);
    if (const auto kept = at_level(record, level_)) write_line(*kept);
  }
  void set_session(const Session& session) override {
    identity_.session = session;
    identity_.stage.reset();
  }
  void set_stage(StageId stage) override { identity_.stage = stage; }

 private:
  void write_line(const EventRecord& record) {
    std::string line;
    if (missing_ > 0) {
      EventRecord copy = record;
      copy.missing = missing_;
      line = (torn_ ? "\n" : "") + event_line(identity_, clock_.wall(), copy);
    } else {
      line = event_line(identity_, clock_.wall(), record);
    }
    ssize_t written;
    do {
      written = ::write(file_.get(), line.data(), line.size());
    } while (written < 0 && errno == EINTR);
    if (written == static_cast<ssize_t>(line.size())) {
      missing_ = 0;
      torn_ = false;
      return;
    }
    if (missing_ == 0)
      log_error(error_of_errno("write", path_, written < 0 ? errno : ENOSPC).message, "; events are being lost");
    ++missing_;
    torn_ = torn_ || written > 0;
  }

  std::string path_;
  Descriptor file_;
  EventIdentity identity_;
  const Clock& clock_;
  const EventLevel level_;
  std::uint64_t missing_ = 0;
  bool torn_ = false;  // the file ends within a line
};

bool ends_within_a_line(int fd) {
  const off_t size = ::lseek(fd, 0, SEEK_END);
  char last = '\n';
  return size > 0 && ::pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

// Whether its first line is of another key. What is no line of ours is nobody's.
bool is_of_another(int fd, const EventIdentity& writer) {
  constexpr std::string_view kPeer = "\"peer\":\"";
  char front[1024];
  const ssize_t got = ::pread(fd, front, sizeof front, 0);
  const std::string_view text(front, got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::string_view line = text.substr(0, text.find('\n'));
  const std::size_t at = line.find(kPeer);
  return at != line.npos && !line.substr(at + kPeer.size()).starts_with(hex_of(writer.peer));
}

// FILE-<16 hex digits of the key>.jsonl beside FILE.jsonl, where whoever takes the one takes the other.
std::string path_of_key(const std::string& path, const PeerId& peer) {
  const std::filesystem::path whole(path);
  return (whole.parent_path() / (whole.stem().string() + "-" + hex_of(peer).substr(0, 16))).string() +
         whole.extension().string();
}

Result<Descriptor> open_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return error_of_errno("open", path, errno);
  return Descriptor(fd);
}

}  // namespace

std::string event_line(const EventIdentity& identity, WallTime time, const EventRecord& record) {
  std::string line = "{\"time\":" + seconds_of(time);
  append(line, "event", record.event);
  append(line, "role", identity.role);
  append(line, "run", identity.run);
  append(line, "peer", identity.peer);
  append(line, "session", identity.session);
  const EventRecord of_session{.event = record.event, .stage = identity.stage};
  for (const EventField& field : event_fields())
    field.write(line, field.name, field.name == "stage" && !record.stage ? of_session : record);
  return line + "}\n";
}

std::unique_ptr<EventLog> make_silent_event_log() { return std::make_unique<SilentEventLog>(); }

std::optional<EventRecord> at_level(const EventRecord& record, EventLevel level) {
  if (!is_written(record.event, level)) return std::nullopt;
  std::optional<EventRecord> kept = record;
  if (record.event == EventKind::kStart && level != EventLevel::kFull) kept->level = name_of(level);
  return kept;
}

Result<std::unique_ptr<EventLog>> open_event_log(const std::string& wanted, EventIdentity identity, const Clock& clock,
                                                 EventLevel level) {
  std::string path = wanted;
  SHOAL_ASSIGN(Descriptor file, open_file(path));
  if (is_of_another(file.get(), identity)) {
    path = path_of_key(wanted, identity.peer);
    log_info("events go to ", path, ": ", wanted, " is of another key");
    SHOAL_ASSIGN(file, open_file(path));
  }
  const int fd = file.get();
  const bool torn = ends_within_a_line(fd);
  if (torn && ::write(fd, "\n", 1) != 1) return error_of_errno("write", path, errno);
  std::unique_ptr<EventLog> log =
      std::make_unique<FileEventLog>(path, std::move(file), std::move(identity), clock, level);
  if (torn) log->write({.event = EventKind::kReopened, .cause = "the line before is torn"});
  return log;
}

}  // namespace shoal
