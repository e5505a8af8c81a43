#pragma once
// A log of records in an append-only file: framing, sums, and where what is whole ends. What a record says is its
// owner's (router/trainer_records.h, authority/authority_log.cc).
//
// File = head, records back to back; all numbers little-endian.
//   head, 16 bytes:  "shoallog", u16 kind, u16 version, u32 CRC-32C of the 12 bytes before
//   record:          u32 payload length, u32 sum, u64 durable, payload
//   durable          so many bytes of the file are known to be synced: when the record was appended, or, in a file
//                    that was put in its place as a whole, all that it then had
//   sum              CRC-32C of u64 the record's own offset, u32 length, u64 durable, payload
//
// What was synced decides. Everything below the largest `durable` of any valid record must be there and valid: else it
// is damage, and an error. From the first invalid byte at or above it the file is a torn tail and is cut:
// also where whole records follow a hole, since the pages of what was never synced reach the disk in any order. A sum
// covers its record's place, so that valid records are found behind a hole too, and bytes of a payload are none.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "common/lifetime.h"
#include "common/result.h"
#include "common/storage.h"

namespace shoal {

// The kind of a log. The version counts changes of the framing and of the records in it.
struct LogFormat {
  std::string_view name;  // for people: "trainer's log"
  std::uint16_t kind = 0;
  std::uint16_t version = 0;
  std::size_t record_bytes_max = 0;  // of a payload
  std::uint16_t oldest = version;    // that is read, too; such a file keeps its head until it is compacted
};

inline constexpr std::size_t kLogHeadBytes = 16;
inline constexpr std::size_t kRecordHeadBytes = 16;

// The bytes that a log takes next. Pure. Bounds: none of its own.
class RecordFramer {
 public:
  // Goes on behind `end` whole bytes of a log.
  explicit RecordFramer(const LogFormat& format, std::size_t end = 0) : format_(format), end_(end) {}
  // The record, with the file's head in front where it is the first. REQUIRES: 1 to record_bytes_max bytes.
  Bytes frame(ByteView payload);
  // So many bytes are synced. What is less than before changes nothing.
  void synced(std::size_t bytes);
  std::size_t end() const { return end_; }
  std::size_t durable() const { return durable_; }
  // The whole bytes of a log that begins with these and is put in its place as one: it goes on behind them. REQUIRES:
  // at least one; a new framer.
  Bytes frame_whole(const std::vector<Bytes>& payloads);

 private:
  LogFormat format_;
  std::size_t end_;
  std::size_t durable_ = 0;
};

// A log beyond it cannot be read back.
inline constexpr std::size_t kLogBytesMax = 1u << 30;

using RecordReader = std::function<Status(ByteView payload)>;

// Calls `record` for each valid record in order, and returns where they end: the rest is a torn tail. ERRORS: kCorrupt
// (damage in front of what was synced, named by its offset), kVersion (of another version, or older than heads are),
// kForeign (a log of another kind), and what `record` returns, with the record's offset in front.
Result<std::size_t> read_record_log(ByteView log, const LogFormat& format, const RecordReader& record);

// A log that is open for appending. Thread: loop only; callbacks run on the loop. Borrows nothing but what the file
// does.
class RecordLog {
 public:
  // Locks the file before it reads it: what looks like a torn tail may be a record that a living process is writing.
  // Cuts a torn tail off, on disk too. What `record` was called with may lie in the page cache only, written by a
  // process that died before it synced: nothing of it may have an effect outside of this process before a sync()
  // succeeded; see settled(). It is written once more, so that a sync() means it also where one of the process before
  // failed (Storage::rewrite). ERRORS: those of read_record_log with the path in front, kBusy, kTooLarge, kIo.
  static Result<std::unique_ptr<RecordLog>> open(Storage& storage, const std::string& path, const LogFormat& format,
                                                 const RecordReader& record);

  void append(ByteView payload);
  // Everything that was read and appended so far; as AppendFile::sync.
  void sync(std::function<void(Status)> done);
  // The log is these records from now on: what they say must be all that matters of what was appended so far. Waits
  // for the disk aside; what is appended meanwhile follows behind them. On an error the log goes on as it was
  // (AppendFile::restart). REQUIRES: not compacting().
  void compact(std::vector<Bytes> payloads, std::function<void(Status)> done);
  bool compacting() const { return compacting_; }
  bool empty() const { return read_bytes_ == 0; }       // no record was read
  std::size_t bytes() const { return framer_->end(); }  // read and appended
  // Whether all that was read is known to be durable.
  bool settled() const { return framer_->durable() >= read_bytes_; }

 private:
  RecordLog(std::unique_ptr<AppendFile> file, const LogFormat& format, std::size_t read_bytes)
      : format_(format),
        file_(std::move(file)),
        framer_(std::make_shared<RecordFramer>(format, read_bytes)),
        read_bytes_(read_bytes) {}

  LogFormat format_;
  std::unique_ptr<AppendFile> file_;
  std::shared_ptr<RecordFramer> framer_;  // a callback of the file may come after this object is gone
  std::size_t read_bytes_;
  bool compacting_ = false;
  std::vector<std::function<void()>> held_;  // appends and syncs, in their order, while it compacts
  Lifetime lifetime_;
};

}  // namespace shoal
