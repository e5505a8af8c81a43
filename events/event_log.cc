#include "events/event_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "common/log.h"
#include "common/os/posix_file.h"

namespace shoal {
namespace {

// Builds one flat JSON object. Values are escaped here, so the line is valid whatever a peer chose as text.
class JsonLine {
 public:
  void text(std::string_view key, std::string_view value) {
    name(key);
    quoted(value);
  }
  template <class T>
  void printed(std::string_view key, const T& value) {
    std::ostringstream out;
    out << value;
    text(key, out.view());
  }
  void integer(std::string_view key, std::optional<std::uint64_t> value) {
    if (!value) return;
    name(key);
    line_ += std::to_string(*value);
  }
  void number(std::string_view key, double value) {
    name(key);
    append_number(value);
  }
  // Seconds with microseconds: six decimals of a double would round.
  void time(std::string_view key, WallTime value) {
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(value.time_since_epoch()).count();
    char digits[32];
    std::snprintf(digits, sizeof digits, "%lld.%06lld", static_cast<long long>(micros / 1000000),
                  static_cast<long long>(micros % 1000000));
    name(key);
    line_ += digits;
  }
  void entries(std::string_view key, const std::vector<EntryName>& list) {
    name(key);
    line_ += '[';
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::ostringstream out;
      out << list[i];
      line_ += i == 0 ? "" : ",";
      quoted(out.view());
    }
    line_ += ']';
  }
  void counts(std::string_view key, std::span<const std::uint64_t> list) {
    name(key);
    line_ += '[';
    for (std::size_t i = 0; i < list.size(); ++i) line_ += (i == 0 ? "" : ",") + std::to_string(list[i]);
    line_ += ']';
  }
  void versions(std::string_view key, const std::vector<Version>& list) {
    name(key);
    line_ += '[';
    for (std::size_t i = 0; i < list.size(); ++i) line_ += (i == 0 ? "" : ",") + std::to_string(list[i].value);
    line_ += ']';
  }
  void secured(std::string_view key, const std::vector<Secured>& members) {
    name(key);
    line_ += '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      std::ostringstream session;
      session << members[i].session;
      line_ += i == 0 ? "" : ",";
      quoted(session.view());
      line_ += ":[";
      for (std::size_t k = 0; k < members[i].serials.size(); ++k) {
        line_ += (k == 0 ? "" : ",") + std::to_string(members[i].serials[k]);
      }
      line_ += ']';
    }
    line_ += '}';
  }
  std::string finish() && { return std::move(line_) + "}\n"; }

 private:
  void name(std::string_view key) {
    line_ += line_.size() > 1 ? "," : "";
    quoted(key);
    line_ += ':';
  }
  void append_number(double value) {
    if (!std::isfinite(value)) {
      line_ += "null";
      return;
    }
    char digits[32];
    line_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  void quoted(std::string_view value) {
    line_ += '"';
    for (char c : value) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') line_ += '\\';
      if (byte >= 0x20 && byte < 0x7f) {
        line_ += c;
      } else {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\u%04x", byte);
        line_ += escape;
      }
    }
    line_ += '"';
  }
  std::string line_ = "{";
};

std::string hex_of_tag(CountTag tag) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(tag));
  return digits;
}

class SilentEventLog final : public EventLog {
 public:
  void write(const EventRecord&) override {}
  void set_session(const Session&) override {}
  void set_stage(StageId) override {}
};

class FileEventLog final : public EventLog {
 public:
  FileEventLog(std::string path, Descriptor file, EventIdentity identity, const Clock& clock)
      : path_(std::move(path)), file_(std::move(file)), identity_(std::move(identity)), clock_(clock) {}

  void write(const EventRecord& record) override {
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
  void set_session(const Session& session) override {
    identity_.session = session;
    identity_.stage.reset();
  }
  void set_stage(StageId stage) override { identity_.stage = stage; }

 private:
  std::string path_;
  Descriptor file_;
  EventIdentity identity_;
  const Clock& clock_;
  std::uint64_t missing_ = 0;
  bool torn_ = false;  // the file ends within a line
};

bool ends_within_a_line(int fd) {
  const off_t size = ::lseek(fd, 0, SEEK_END);
  char last = '\n';
  return size > 0 && ::pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

template <class Integer>
bool read_integer(std::string_view text, Integer& out, int base) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return failure == std::errc() && end == text.data() + text.size() && !text.empty();
}

// "<left><mark><decimal>"
bool cut_serial(std::string_view text, char mark, std::string_view& left, std::uint64_t& serial) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return false;
  left = text.substr(0, at);
  return read_integer(text.substr(at + 1), serial, 10);
}

Error malformed(std::string_view what, std::string_view text) {
  return make_error(ErrorCode::kMalformed, "\"" + std::string(text.substr(0, 80)) + "\" is no " + std::string(what));
}

}  // namespace

std::string event_line(const EventIdentity& identity, WallTime time, const EventRecord& r) {
  JsonLine line;
  line.time("time", time);
  line.text("event", name_of(r.event));
  line.text("role", identity.role);
  line.printed("run", identity.run);
  line.printed("peer", identity.peer);
  line.printed("session", identity.session);
  if (r.microbatch) line.printed("microbatch", *r.microbatch);
  if (const auto stage = r.stage ? r.stage : identity.stage) line.integer("stage", stage->value);
  if (r.about) line.printed("about", *r.about);
  if (r.about_peer) line.printed("about_peer", *r.about_peer);
  if (r.entry_name) line.printed("entry", *r.entry_name);
  if (r.lease) line.printed("lease", *r.lease);
  if (r.window) line.integer("window", static_cast<std::uint64_t>(*r.window));
  if (r.round) line.integer("round", r.round->value);
  if (r.version) line.integer("version", r.version->value);
  if (r.back_to) line.integer("back_to", r.back_to->value);
  if (r.versions) line.versions("versions", *r.versions);
  if (r.digest) line.printed("digest", *r.digest);
  if (r.tag) line.text("tag", hex_of_tag(*r.tag));
  if (r.step) line.integer("step", r.step->value);
  if (r.sample) line.integer("sample", r.sample->value);
  line.integer("epoch", r.epoch);
  if (r.entries) line.entries("entries", *r.entries);
  if (r.secured) line.secured("secured", *r.secured);
  line.integer("members", r.members);
  if (r.silent) line.printed("silent", *r.silent);
  if (!r.state.empty()) line.text("state", r.state);
  if (!r.cause.empty()) line.text("cause", r.cause);
  if (r.loss) line.number("loss", *r.loss);
  line.integer("targets", r.targets);
  if (r.delays) {
    line.number("delay_mean", r.delays->mean());
    line.counts("delays", r.delays->counts());
  }
  line.integer("settle_wait_ms", r.settle_wait_ms);
  line.integer("sent", r.sent);
  line.integer("received", r.received);
  line.integer("fp32", r.fp32);
  line.integer("payload", r.payload);
  line.integer("deltas", r.deltas);
  line.integer("keys", r.keys);
  line.integer("longest_callback_ms", r.longest_callback_ms);
  if (!r.callback.empty()) line.text("callback", r.callback);
  line.integer("computed_ms", r.computed_ms);
  line.integer("missing", r.missing);
  return std::move(line).finish();
}

std::unique_ptr<EventLog> make_silent_event_log() { return std::make_unique<SilentEventLog>(); }

Result<std::unique_ptr<EventLog>> open_event_log(const std::string& path, EventIdentity identity, const Clock& clock) {
  const int fd = ::open(path.c_str(), O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return error_of_errno("open", path, errno);
  Descriptor file(fd);
  const bool torn = ends_within_a_line(fd);
  if (torn && ::write(fd, "\n", 1) != 1) return error_of_errno("write", path, errno);
  std::unique_ptr<EventLog> log = std::make_unique<FileEventLog>(path, std::move(file), std::move(identity), clock);
  if (torn) log->write({.event = EventKind::kReopened, .cause = "the line before is torn"});
  return log;
}

Result<Session> parse_session(std::string_view text) {
  Session session;
  if (text.size() == 33 && text[16] == '.' && read_integer(text.substr(0, 16), session.peer_tag, 16) &&
      read_integer(text.substr(17), session.incarnation, 16)) {
    return session;
  }
  return malformed("session", text);
}

Result<EntryName> parse_entry_name(std::string_view text) {
  EntryName entry_name;
  std::string_view left;
  if (!cut_serial(text, '#', left, entry_name.serial)) return malformed("entry", text);
  SHOAL_ASSIGN(entry_name.session, parse_session(left));
  return entry_name;
}

Result<MicrobatchId> parse_microbatch(std::string_view text) {
  MicrobatchId id;
  std::string_view left;
  if (cut_serial(text, ':', left, id.serial) && left.size() == 16 && read_integer(left, id.trainer, 16)) return id;
  return malformed("microbatch", text);
}

}  // namespace shoal
