#pragma once
// The records of the trainer's log: values, their bytes, and the values that bytes say. Framing and torn tails:
// common/record_log.h. What is called a record here is its payload.
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/bytes.h"
#include "common/ids.h"
#include "common/record_log.h"
#include "common/result.h"
#include "router/lost_book.h"

namespace shoal {

inline constexpr LogFormat kTrainerLog{.name = "trainer's log", .kind = 1, .version = 4, .record_bytes_max = 1u << 20};
inline constexpr std::size_t kDoneItemsMax = 4096;  // in one record, which stays far below what kTrainerLog allows

struct HeaderRecord {  // the first of a log
  std::uint64_t trainer = 0;
  std::uint16_t stages = 0;
};
// Where one life of the trainer began. A run goes on with the text it was begun with: another one under the same
// serials would be other samples.
struct LifeRecord {
  Session session;
  std::uint64_t cursor = 0;   // the next serial
  std::uint32_t epoch = 0;    // of the sample at the cursor
  std::uint64_t samples = 0;  // that the text is cut into
  Digest text;                // BLAKE2b-256 of the token file
  bool operator==(const LifeRecord&) const = default;
};
struct PathRecord {
  std::uint64_t serial = 0;
  double loss_sum = 0;
  std::uint64_t targets = 0;
  std::vector<EntryName> path;  // one entry per stage
};
struct DoneItem {
  std::uint64_t serial = 0;
  std::uint16_t stage = 0;
  bool lost = false;  // else merged
  std::string cause;
};
struct DoneRecord {
  std::vector<DoneItem> items;
  std::vector<Version> heard;  // by stage
  bool all = false;            // nothing more follows from the rounds up to `heard`
};
// What is below the low-water mark: each of those serials was committed and is settled.
struct BaseRecord {
  std::uint64_t low = 0, targets = 0;
  std::vector<Version> heard;  // by stage
  LostBook::Below lost;
};
struct EndRecord {};  // the run is over
using TrainerRecord = std::variant<HeaderRecord, LifeRecord, PathRecord, DoneRecord, BaseRecord, EndRecord>;

Bytes bytes_of(TrainerRecord record);
Error bad_trainer_record();
// `stages`: of the run. ERRORS: kCorrupt (bad_trainer_record).
Result<TrainerRecord> parse_trainer_record(ByteView bytes, std::uint16_t stages);

}  // namespace shoal
