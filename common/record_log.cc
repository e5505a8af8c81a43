#include "common/record_log.h"

#include <algorithm>
#include <array>
#include <optional>

#include "common/byte_codec.h"
#include "common/check.h"
#include "common/log.h"

namespace shoal {

namespace {

constexpr std::string_view kMagic = "shoallog";

// Places in a record's head.
constexpr std::size_t kLengthAt = 0, kSumAt = 4, kDurableAt = 8;

using LogHead = std::array<std::uint8_t, kLogHeadBytes>;

LogHead head_of(std::uint16_t kind, std::uint16_t version) {
  LogHead head;
  std::copy(kMagic.begin(), kMagic.end(), head.begin());
  put_le(head.data() + 8, kind);
  put_le(head.data() + 10, version);
  put_le(head.data() + 12, crc32c(ByteView(head).first(12)));
  return head;
}

std::uint32_t sum_of(std::size_t at, std::uint64_t durable, ByteView payload) {
  std::array<std::uint8_t, 20> place;
  put_le(place.data(), std::uint64_t{at});
  put_le(place.data() + 8, static_cast<std::uint32_t>(payload.size()));
  put_le(place.data() + 12, durable);
  return crc32c(payload, crc32c(place));
}

struct Record {
  ByteView payload;
  std::uint64_t durable = 0;
  std::size_t end = 0;
};

std::optional<Record> record_at(ByteView log, std::size_t at, const LogFormat& format) {
  if (log.size() - at < kRecordHeadBytes) return std::nullopt;
  const std::size_t length = get_le<std::uint32_t>(log, at + kLengthAt);
  if (length == 0 || length > format.record_bytes_max || length > log.size() - at - kRecordHeadBytes)
    return std::nullopt;
  Record record;
  record.durable = get_le<std::uint64_t>(log, at + kDurableAt);
  record.payload = log.subspan(at + kRecordHeadBytes, length);
  record.end = at + kRecordHeadBytes + length;
  if (get_le<std::uint32_t>(log, at + kSumAt) != sum_of(at, record.durable, record.payload)) return std::nullopt;
  return record;
}

// Whether a valid record behind `bad` says that the byte at `bad` was synced.
bool synced_by_its_own_word(ByteView log, std::size_t bad, const LogFormat& format) {
  for (std::size_t at = bad + 1; at < log.size();) {
    const auto record = record_at(log, at, format);
    if (record && record->durable > bad) return true;
    at = record ? record->end : at + 1;
  }
  return false;
}

Error damaged(std::size_t at, const LogFormat& format) {
  return make_error(ErrorCode::kCorrupt, "the " + std::string(format.name) + " is damaged at byte " +
                                             std::to_string(at) +
                                             ", in a part that was on the disk. HINT: put a copy of the file back; "
                                             "without one the run cannot go on, start a new one in another folder");
}

Error of_version(const std::string& version, const LogFormat& format) {
  return make_error(ErrorCode::kVersion, "the " + std::string(format.name) + " has " + version +
                                             ", this program reads version " + std::to_string(format.version) +
                                             ". HINT: go on with the program that began the run, or start a new run "
                                             "in another folder");
}

// Whether records may follow; false: the head is torn, and nothing behind it was synced.
Result<bool> check_head(ByteView log, const LogFormat& format) {
  const LogHead wanted = head_of(format.kind, format.version);
  const ByteView head = log.first(std::min(log.size(), wanted.size()));
  if (std::equal(head.begin(), head.end(), wanted.begin())) return head.size() == wanted.size();
  if (head.size() == wanted.size()) {
    const auto kind = get_le<std::uint16_t>(head, 8), version = get_le<std::uint16_t>(head, 10);
    const LogHead other = head_of(kind, version);
    const bool whole = std::equal(head.begin(), head.end(), other.begin());
    if (whole && kind == format.kind && version >= format.oldest && version < format.version) return true;
    if (whole && kind != format.kind)
      return make_error(ErrorCode::kForeign, "this is no " + std::string(format.name) + ", but another log of shoal");
    if (whole) return of_version("version " + std::to_string(version), format);
    if (synced_by_its_own_word(log, 0, format)) return damaged(0, format);
  }
  // A page that never reached the disk is zeros.
  for (std::size_t i = 0; i < head.size(); ++i)
    if (head[i] != wanted[i] && head[i] != 0) return of_version("an older version or a damaged head", format);
  return false;
}

// What whole records say of themselves: so many bytes were synced.
std::size_t known_synced(ByteView whole) {
  std::uint64_t synced = 0;
  for (std::size_t at = kLogHeadBytes; at < whole.size();) {
    synced = std::max(synced, get_le<std::uint64_t>(whole, at + kDurableAt));
    at += kRecordHeadBytes + get_le<std::uint32_t>(whole, at + kLengthAt);
  }
  return static_cast<std::size_t>(synced);
}

}  // namespace

Bytes RecordFramer::frame(ByteView payload) {
  SHOAL_CHECK(!payload.empty());
  SHOAL_CHECK_LE(payload.size(), format_.record_bytes_max);
  ByteWriter out;
  if (end_ == 0) {
    out.bytes(head_of(format_.kind, format_.version));
    end_ = kLogHeadBytes;
  }
  out.put(static_cast<std::uint32_t>(payload.size()));
  out.put(sum_of(end_, durable_, payload));
  out.put(std::uint64_t{durable_});
  out.bytes(payload);
  end_ += kRecordHeadBytes + payload.size();
  return std::move(out).take();
}

Bytes RecordFramer::frame_whole(const std::vector<Bytes>& payloads) {
  SHOAL_CHECK(end_ == 0 && !payloads.empty());
  durable_ = kLogHeadBytes;
  for (const Bytes& payload : payloads) durable_ += kRecordHeadBytes + payload.size();
  ByteWriter out;
  for (const Bytes& payload : payloads) out.bytes(frame(payload));
  return std::move(out).take();
}

void RecordFramer::synced(std::size_t bytes) {
  SHOAL_CHECK_LE(bytes, end_);
  durable_ = std::max(durable_, bytes);
}

Result<std::size_t> read_record_log(ByteView log, const LogFormat& format, const RecordReader& record) {
  if (log.empty()) return std::size_t{0};
  SHOAL_ASSIGN(const bool has_head, check_head(log, format));
  if (!has_head) return std::size_t{0};
  std::size_t at = kLogHeadBytes;
  while (const auto found = record_at(log, at, format)) {
    if (const Status taken = record(found->payload); !taken.ok())
      return make_error(taken.code(), "record at byte " + std::to_string(at) + ": " + taken.error().message);
    at = found->end;
  }
  if (known_synced(log.first(at)) > at || synced_by_its_own_word(log, at, format)) return damaged(at, format);
  return at == kLogHeadBytes ? std::size_t{0} : at;
}

Result<std::unique_ptr<RecordLog>> RecordLog::open(Storage& storage, const std::string& path, const LogFormat& format,
                                                   const RecordReader& record) {
  SHOAL_ASSIGN(auto file, storage.open_append(path));
  SHOAL_ASSIGN(const Bytes bytes, storage.read(path, kLogBytesMax));
  const auto whole = read_record_log(bytes, format, record);
  if (!whole.ok()) return make_error(whole.code(), path + ": " + whole.error().message);
  if (*whole < bytes.size()) {
    log_warning(path, ": the last ", bytes.size() - *whole,
                " bytes were never whole (the process died while writing): cut off");
    SHOAL_TRY(storage.truncate(path, *whole));
  }
  const std::size_t synced = known_synced(bytes.view().first(*whole));
  if (synced < *whole) SHOAL_TRY(storage.rewrite(path, synced, bytes.slice(synced, *whole - synced)));
  return std::unique_ptr<RecordLog>(new RecordLog(std::move(file), format, *whole));
}

void RecordLog::append(ByteView payload) {
  if (!compacting_) return file_->append(framer_->frame(payload));
  held_.push_back([this, kept = Bytes::copy_of(payload)] { append(kept); });
}

void RecordLog::sync(std::function<void(Status)> done) {
  if (compacting_) return held_.push_back([this, done = std::move(done)] { sync(done); });
  file_->sync([framer = framer_, end = framer_->end(), done = std::move(done)](Status status) {
    if (status.ok()) framer->synced(end);
    done(status);
  });
}

void RecordLog::compact(std::vector<Bytes> payloads, std::function<void(Status)> done) {
  SHOAL_CHECK(!compacting_);
  compacting_ = true;
  auto framer = std::make_shared<RecordFramer>(format_);
  std::vector<Bytes> parts;
  parts.push_back(framer->frame_whole(payloads));
  file_->restart(std::move(parts), lifetime_.guard([this, framer, done = std::move(done)](const Status& status) {
    compacting_ = false;
    if (status.ok()) {
      framer_ = framer;
      read_bytes_ = std::min(read_bytes_, framer->end());
    }
    for (const auto& held : std::exchange(held_, {})) held();
    done(status);
  }));
}

}  // namespace shoal
