#include "events/event_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "common/log.h"
#include "common/os/posix_file.h"
#include "common/packed/pack_file.h"
#include "events/event_schema.h"
#include "events/event_segments.h"

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

Result<Descriptor> open_to_append(const std::string& path) {
  return open_file(path, O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC);
}

// Packs segments on a thread of its own, one call after the other.
class SegmentPacker {
 public:
  ~SegmentPacker() { join(); }
  void pack(std::vector<std::string> segments) {
    join();
    thread_ = std::thread([segments = std::move(segments)] {
      for (const std::string& segment : segments)
        if (const Status packed = pack_file(segment); !packed.ok())
          log_warning("events stay as they are in ", segment, ": ", packed.error().message);
    });
  }

 private:
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  std::thread thread_;
};

class FileEventLog final : public EventLog {
 public:
  // `size`: of the file; `newest`: of its segments, 0: none.
  FileEventLog(std::string path, Descriptor file, std::uint64_t size, std::uint64_t newest, EventIdentity identity,
               const Clock& clock, const EventLogOptions& options)
      : path_(std::move(path)),
        file_(std::move(file)),
        size_(size),
        newest_(newest),
        full_at_(options.segment_bytes),
        identity_(std::move(identity)),
        clock_(clock),
        level_(options.level),
        segment_bytes_(options.segment_bytes) {}

  void write(const EventRecord& record) override {
    if (level_ == EventLevel::kFull) return write_line(record);
    if (const auto kept = at_level(record, level_)) write_line(*kept);
  }
  void set_session(const Session& session) override {
    identity_.session = session;
    identity_.stage.reset();
  }
  void set_stage(StageId stage) override { identity_.stage = stage; }
  void pack(std::vector<std::string> segments) { packer_.pack(std::move(segments)); }

 private:
  // In front of a line, so that no file is empty. A folder that refuses it is asked again a segment later.
  void cut_when_full() {
    if (size_ < full_at_ || torn_) return;
    const std::string segment = segment_path(path_, newest_ + 1);
    full_at_ = size_ + segment_bytes_;
    if (::rename(path_.c_str(), segment.c_str()) != 0)
      return log_warning(error_of_errno("rename", path_, errno).message, "; events go on in that file");
    auto opened = open_to_append(path_);
    if (!opened.ok()) {
      ::rename(segment.c_str(), path_.c_str());
      return log_warning(opened.error().message, "; events go on in the file that was there");
    }
    file_ = std::move(*opened);
    size_ = 0;
    full_at_ = segment_bytes_;
    ++newest_;
    packer_.pack({segment});
  }

  void write_line(const EventRecord& record) {
    cut_when_full();
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
    if (written > 0) size_ += static_cast<std::uint64_t>(written);
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
  std::uint64_t size_, newest_;
  std::uint64_t full_at_;  // bytes
  EventIdentity identity_;
  const Clock& clock_;
  const EventLevel level_;
  const std::uint64_t segment_bytes_;
  SegmentPacker packer_;
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
                                                 const EventLogOptions& options) {
  std::string path = wanted;
  SHOAL_ASSIGN(Descriptor file, open_to_append(path));
  if (is_of_another(file.get(), identity)) {
    path = path_of_key(wanted, identity.peer);
    log_info("events go to ", path, ": ", wanted, " is of another key");
    SHOAL_ASSIGN(file, open_to_append(path));
  }
  const int fd = file.get();
  const bool torn = ends_within_a_line(fd);
  if (torn && ::write(fd, "\n", 1) != 1) return error_of_errno("write", path, errno);
  SHOAL_ASSIGN(const EventFile there, event_file_at(path));
  struct stat found = {};
  if (::fstat(fd, &found) != 0) return error_of_errno("look at", path, errno);
  EventLogOptions of_file = options;
  if (!S_ISREG(found.st_mode) || std::filesystem::is_symlink(path))
    of_file.segment_bytes = UINT64_MAX;  // a device, a pipe; a link, whose name another file must not take
  auto log = std::make_unique<FileEventLog>(path, std::move(file), static_cast<std::uint64_t>(found.st_size),
                                            newest_segment(there), std::move(identity), clock, of_file);
  // Those of a process that was killed before it had packed them.
  std::vector<std::string> unpacked;
  for (const std::string& part : there.parts)
    if (part != path && !part.ends_with(".zst")) unpacked.push_back(part);
  if (!unpacked.empty()) log->pack(std::move(unpacked));
  if (torn) log->write({.event = EventKind::kReopened, .cause = "the line before is torn"});
  return std::unique_ptr<EventLog>(std::move(log));
}

}  // namespace shoal
