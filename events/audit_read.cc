// Event files to values. Lenient in one point only: a process that was killed, or whose disk refused a write, may leave
// a line torn, and the next line says so.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/posix_file.h"
#include "events/audit.h"
#include "events/event_line.h"
#include "events/event_log.h"

namespace shoal {
namespace {

using Json = nlohmann::json;

template <class T>
bool read_number(const Json& line, const char* key, std::optional<T>& out) {
  const auto found = line.find(key);
  if (found == line.end()) return true;
  if (!found->is_number_unsigned()) return false;
  const std::uint64_t value = found->get<std::uint64_t>();
  out = T{static_cast<decltype(T::value)>(value)};
  return out->value == value;
}

template <class T>
bool read_text(const Json& line, const char* key, Result<T> (*parse)(std::string_view), std::optional<T>& out) {
  const auto found = line.find(key);
  if (found == line.end()) return true;
  if (!found->is_string()) return false;
  auto value = parse(found->get_ref<const std::string&>());
  if (!value.ok()) return false;
  out = *value;
  return true;
}

bool read_tag(const Json& line, std::optional<CountTag>& out) {
  const auto found = line.find("tag");
  if (found == line.end()) return true;
  if (!found->is_string()) return false;
  const std::string& text = found->get_ref<const std::string&>();
  CountTag tag = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), tag, 16);
  if (failure != std::errc() || end != text.data() + text.size()) return false;
  out = tag;
  return true;
}

bool read_entries(const Json& line, std::vector<EntryName>& out) {
  const auto found = line.find("entries");
  if (found == line.end()) return true;
  if (!found->is_array()) return false;
  for (const Json& item : *found) {
    if (!item.is_string()) return false;
    const auto entry_name = parse_entry_name(item.get_ref<const std::string&>());
    if (!entry_name.ok()) return false;
    out.push_back(*entry_name);
  }
  return true;
}

bool read_secured(const Json& line, std::vector<Secured>& out) {
  const auto found = line.find("secured");
  if (found == line.end()) return true;
  if (!found->is_object()) return false;
  for (const auto& [key, serials] : found->items()) {
    const auto session = parse_session(key);
    if (!session.ok() || !serials.is_array()) return false;
    Secured member{*session, {}};
    for (const Json& serial : serials) {
      if (!serial.is_number_unsigned()) return false;
      member.serials.push_back(serial.get<std::uint64_t>());
    }
    out.push_back(std::move(member));
  }
  return true;
}

bool read_line(std::string_view text, AuditEvent& event, std::vector<std::string>& runs) {
  const Json line = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!line.is_object()) return false;
  event.event = event_text(line, "event");
  event.role = event_text(line, "role");
  event.cause = event_text(line, "cause");
  event.state = event_text(line, "state");
  if (line.contains("digest")) event.digest = event_text(line, "digest");
  const auto session = parse_session(event_text(line, "session"));
  if (event.event.empty() || !session.ok()) return false;
  event.session = *session;
  event.missing = event_count(line, "missing");
  if (line.contains("about") && !read_text(line, "about", parse_session, event.about)) return false;
  const std::string run = event_text(line, "run");
  if (!run.empty() && std::find(runs.begin(), runs.end(), run) == runs.end()) runs.push_back(run);
  return read_text(line, "microbatch", parse_microbatch, event.microbatch) && read_number(line, "stage", event.stage) &&
         read_text(line, "entry", parse_entry_name, event.entry_name) && read_number(line, "round", event.round) &&
         read_number(line, "version", event.version) && read_tag(line, event.tag) &&
         read_entries(line, event.entries) && read_secured(line, event.secured);
}

}  // namespace

void read_event_text(std::string_view text, const std::string& origin, EventFiles& files) {
  ++files.files;
  std::uint64_t number = 0;
  std::string bad;  // the line before, when it could not be read
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const bool last = end == std::string_view::npos || end + 1 == text.size();
    ++number;
    AuditEvent event;
    event.where = origin + ":" + std::to_string(number);
    const bool whole = end != std::string_view::npos && read_line(line, event, files.runs);
    if (whole) {
      // A new life of the process says so when the one before left its last line torn; the same life, when lines were
      // refused, the first of them perhaps in its middle.
      files.missing += event.missing;
      if (!bad.empty()) {
        if (event.event == "reopened" || event.missing > 0) {
          ++files.torn;
        } else {
          files.damaged.push_back(bad);
        }
        bad.clear();
      }
      ++files.lines;
      files.events.push_back(std::move(event));
    } else if (last) {
      if (!bad.empty()) files.damaged.push_back(bad);
      bad.clear();
      if (end == std::string_view::npos) {
        ++files.torn;
      } else {
        files.damaged.push_back(event.where);
      }
    } else {
      if (!bad.empty()) files.damaged.push_back(bad);
      bad = event.where;
    }
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
}

Result<EventFiles> read_events(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code failure;
  if (!fs::is_directory(folder, failure)) return make_error(ErrorCode::kMissing, folder + ": no such folder");
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    if (entry.is_regular_file(failure) && entry.path().extension() == ".jsonl") paths.push_back(entry.path());
  }
  if (failure) return error_of_errno("read the folder", folder, failure.value());
  if (paths.empty())
    return make_error(ErrorCode::kMissing, folder + ": holds no *.jsonl file (written by --events FILE)");
  std::sort(paths.begin(), paths.end());
  EventFiles files;
  for (const fs::path& path : paths) {
    SHOAL_ASSIGN(const Bytes bytes, read_file(path.string(), kEventFileBytesMax));
    read_event_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.filename().string(), files);
  }
  return files;
}

}  // namespace shoal
