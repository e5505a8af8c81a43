// A log's bytes: heads, torn tails, holes, damage, and what was synced before.
#include "common/record_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/sim_loop.h"
#include "sim/sim_storage.h"
#include "tests/common/storage_contract.h"

namespace shoal {
namespace {

using testing::HasSubstr;
using Content = std::vector<std::uint8_t>;

constexpr LogFormat kLog{.name = "test's log", .kind = 77, .version = 3, .record_bytes_max = 64};

struct Written {
  Content bytes;
  std::vector<std::size_t> ends;  // of each record
  RecordFramer framer{kLog};

  void append(const std::string& text) {
    const Bytes framed = framer.frame(text_bytes(text));
    bytes.insert(bytes.end(), framed.data(), framed.data() + framed.size());
    ends.push_back(bytes.size());
  }
  void sync() { framer.synced(bytes.size()); }
};

// Three records that were synced, and four that were not.
Written a_log() {
  Written log;
  for (const char* text : {"one", "two and a half", "three"}) log.append(text);
  log.sync();
  for (const char* text : {"four", "five of them", "six", "seven"}) log.append(text);
  return log;
}
constexpr std::size_t kSynced = 3;  // records

struct Read {
  std::vector<std::string> records;
  Result<std::size_t> end = std::size_t{0};
};

Read read(ByteView bytes) {
  Read result;
  result.end = read_record_log(bytes, kLog, [&](ByteView payload) {
    result.records.emplace_back(payload.begin(), payload.end());
    return Status();
  });
  return result;
}

std::size_t whole_until(const Written& log, std::size_t size) {
  std::size_t whole = 0;
  for (const std::size_t end : log.ends)
    if (end <= size) whole = end;
  return whole;
}

TEST(RecordLogTest, AFileHasTheseBytes) {
  Written log;
  log.append("A");
  log.sync();
  log.append("BC");
  EXPECT_EQ(std::string(log.bytes.begin(), log.bytes.begin() + 8), "shoallog");
  ASSERT_EQ(log.bytes.size(), 16u + 17u + 18u);
  EXPECT_EQ(Content(log.bytes.begin() + 8, log.bytes.begin() + 12), (Content{77, 0, 3, 0}));
  EXPECT_EQ(Content(log.bytes.begin() + 16, log.bytes.begin() + 20), (Content{1, 0, 0, 0}));
  EXPECT_EQ(Content(log.bytes.begin() + 24, log.bytes.begin() + 33), (Content{0, 0, 0, 0, 0, 0, 0, 0, 'A'}));
  EXPECT_EQ(Content(log.bytes.begin() + 41, log.bytes.end()), (Content{33, 0, 0, 0, 0, 0, 0, 0, 'B', 'C'}));
  EXPECT_EQ(read(log.bytes).records, (std::vector<std::string>{"A", "BC"}));
}

TEST(RecordLogTest, ATornTailIsCutAtEveryLength) {
  const Written log = a_log();
  for (std::size_t size = 0; size <= log.bytes.size(); ++size) {
    const Read result = read(ByteView(log.bytes).first(size));
    ASSERT_TRUE(result.end.ok()) << size << ": " << result.end.error().message;
    EXPECT_EQ(*result.end, whole_until(log, size)) << size;
  }
}

TEST(RecordLogTest, ZerosBehindTheLastRecordAreATornTail) {
  Written log = a_log();
  const std::size_t size = log.bytes.size();
  log.bytes.resize(size + 4096);
  EXPECT_EQ(read(log.bytes).end.value(), size);
}

TEST(RecordLogTest, AHoleInWhatWasNotSyncedIsCutThoughWholeRecordsFollow) {
  const Written log = a_log();
  const std::size_t synced = log.ends[kSynced - 1];
  for (std::size_t begin = synced; begin + 20 < log.ends[5]; ++begin)
    for (const std::size_t length : {1u, 9u, 20u}) {
      Content bytes = log.bytes;
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin), length, std::uint8_t{0});
      if (bytes == log.bytes) continue;  // there were zeros
      const Read result = read(bytes);
      ASSERT_TRUE(result.end.ok()) << begin << ": " << result.end.error().message;
      EXPECT_LE(*result.end, begin + length);
      EXPECT_GE(*result.end, synced);
      EXPECT_EQ(*result.end, whole_until(log, *result.end));
    }
}

TEST(RecordLogTest, AFlippedBitWhereNothingWasSyncedIsATornTailAndWhereItWasIsDamageByName) {
  const Written log = a_log();
  const std::size_t synced = log.ends[kSynced - 1];
  for (std::size_t at = 0; at < log.bytes.size(); ++at) {
    Content bytes = log.bytes;
    bytes[at] ^= 0x10;
    const Read result = read(bytes);
    if (at >= synced) {
      ASSERT_TRUE(result.end.ok()) << at << ": " << result.end.error().message;
      EXPECT_EQ(*result.end, whole_until(log, at)) << at;
      continue;
    }
    ASSERT_FALSE(result.end.ok()) << at;
    EXPECT_EQ(result.end.code(), ErrorCode::kCorrupt) << at;
    const std::size_t named = at < kLogHeadBytes ? 0 : std::max(whole_until(log, at), kLogHeadBytes);
    EXPECT_THAT(result.end.error().message, HasSubstr("at byte " + std::to_string(named) + ",")) << at;
  }
}

TEST(RecordLogTest, ALogThatWasNeverSyncedIsCutWhereverItsHoleIs) {
  Written log;
  for (const char* text : {"one", "two", "three"}) log.append(text);
  Content bytes = log.bytes;
  std::fill_n(bytes.begin(), 24, std::uint8_t{0});  // the head and the first record
  EXPECT_EQ(read(bytes).end.value(), 0u);
  EXPECT_TRUE(read(bytes).records.empty());
}

TEST(RecordLogTest, ARecordInsideOfAPayloadIsNone) {
  Written inner;
  inner.append("one");
  inner.sync();
  inner.append("x");
  Written log;
  log.append("one");
  log.append(std::string(inner.bytes.begin() + static_cast<std::ptrdiff_t>(inner.ends[0]), inner.bytes.end()));
  log.bytes[log.ends[0] + 4] ^= 1;  // its sum: what is inside would be found next
  EXPECT_EQ(read(log.bytes).end.value(), log.ends[0]);
}

TEST(RecordLogTest, LogsOfOtherVersionsKindsAndOlderProgramsAreRefusedByName) {
  for (const LogFormat other :
       {LogFormat{"log", 77, 4, 64}, LogFormat{"log", 77, 2, 64}, LogFormat{"log", 78, 3, 64}}) {
    RecordFramer framer(other);
    const Read result = read(framer.frame(text_bytes("one")));
    ASSERT_FALSE(result.end.ok());
    EXPECT_EQ(result.end.code(), other.kind == 77 ? ErrorCode::kVersion : ErrorCode::kForeign);
    if (other.kind != 77) continue;
    EXPECT_THAT(result.end.error().message, HasSubstr("version " + std::to_string(other.version)));
    EXPECT_THAT(result.end.error().message, HasSubstr("HINT"));
  }
  const Read text = read(text_bytes("this was never a log of shoal"));
  ASSERT_FALSE(text.end.ok());
  EXPECT_EQ(text.end.code(), ErrorCode::kVersion);
}

// All of it was synced before it took its place: there is no torn tail.
TEST(RecordLogTest, ALogPutInItsPlaceAsAWholeIsDamagedWhereverItIsCutOrHit) {
  RecordFramer framer(kLog);
  const Bytes whole = framer.frame_whole({text_bytes("one"), text_bytes("two and a half"), text_bytes("three")});
  const Content bytes(whole.data(), whole.data() + whole.size());
  EXPECT_EQ(framer.end(), bytes.size());
  EXPECT_EQ(framer.durable(), bytes.size());
  const Read fine = read(bytes);
  EXPECT_EQ(fine.end.value(), bytes.size());
  EXPECT_EQ(fine.records, (std::vector<std::string>{"one", "two and a half", "three"}));
  const std::size_t first = kLogHeadBytes + kRecordHeadBytes + 3;
  for (std::size_t size = first; size < bytes.size(); ++size)
    EXPECT_EQ(read(ByteView(bytes).first(size)).end.code(), ErrorCode::kCorrupt) << size;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    Content hit = bytes;
    hit[at] ^= 0x10;
    EXPECT_EQ(read(hit).end.code(), ErrorCode::kCorrupt) << at;
  }
  Content longer = bytes;
  const Bytes more = framer.frame(text_bytes("more"));
  longer.insert(longer.end(), more.data(), more.data() + more.size());
  for (std::size_t size = bytes.size(); size < longer.size(); ++size)
    EXPECT_EQ(read(ByteView(longer).first(size)).end.value(), bytes.size()) << "what follows is as in any log";
}

TEST(RecordLogTest, AnErrorOfTheReaderStopsReadingAndNamesTheRecord) {
  const Written log = a_log();
  int count = 0;
  const auto result = read_record_log(log.bytes, kLog, [&](ByteView) -> Status {
    if (++count < 2) return {};
    return make_error(ErrorCode::kForeign, "no");
  });
  EXPECT_EQ(result.code(), ErrorCode::kForeign);
  EXPECT_EQ(result.error().message, "record at byte " + std::to_string(log.ends[0]) + ": no");
}

class OpenedLogTest : public testing::Test {
 protected:
  std::unique_ptr<RecordLog> open() {
    records_.clear();
    auto log = RecordLog::open(storage_, "log", kLog, [this](ByteView payload) {
      records_.emplace_back(payload.begin(), payload.end());
      return Status();
    });
    EXPECT_TRUE(log.ok()) << log.error().message;
    return std::move(log).value();
  }
  void sync(RecordLog& log) {
    bool done = false;
    log.sync([&](Status status) { done = status.ok(); });
    loop_.run_for(1s);
    EXPECT_TRUE(done);
  }

  SimLoop loop_;
  SimDisk disk_;
  SimStorage storage_{loop_, disk_};
  std::vector<std::string> records_;
};

TEST_F(OpenedLogTest, GoesOnBehindWhatItReadAndKnowsWhetherThatIsDurable) {
  auto log = open();
  EXPECT_TRUE(log->empty());
  EXPECT_TRUE(log->settled());
  log->append(text_bytes("one"));
  sync(*log);
  log->append(text_bytes("two"));
  log.reset();
  log = open();
  EXPECT_EQ(records_, (std::vector<std::string>{"one", "two"}));
  EXPECT_FALSE(log->empty());
  EXPECT_FALSE(log->settled()) << "the second one may lie in the page cache only";
  sync(*log);
  EXPECT_TRUE(log->settled());
  log->append(text_bytes("three"));
  log.reset();
  log = open();
  EXPECT_EQ(records_, (std::vector<std::string>{"one", "two", "three"}));
}

TEST_F(OpenedLogTest, CutsATornTailOnDiskTooAndRefusesDamageWithFileAndOffset) {
  const Written written = a_log();
  Content bytes = written.bytes;
  bytes.resize(bytes.size() - 1);
  disk_.put("log", bytes);
  open();
  EXPECT_EQ(disk_.content("log")->size(), written.ends[5]);
  bytes = written.bytes;
  bytes[kLogHeadBytes + kRecordHeadBytes] ^= 1;
  disk_.put("log", bytes);
  const auto refused = RecordLog::open(storage_, "log", kLog, [](ByteView) { return Status(); });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(refused.error().message, HasSubstr("log: the test's log is damaged at byte 16,"));
  EXPECT_EQ(*disk_.content("log"), bytes) << "what is damaged is left as it is";
}

// A disk that says no and yes again: the log takes nothing more in this process, and the next one may call durable only
// what a power loss leaves.
TEST_F(OpenedLogTest, ASyncThatFailedIsNotMadeGoodByALaterOne) {
  auto log = open();
  log->append(text_bytes("one"));
  sync(*log);
  log->append(text_bytes("two"));
  disk_.set_failing(true);
  std::vector<ErrorCode> codes;
  const auto note = [&](const Status& status) { codes.push_back(status.ok() ? ErrorCode::kClosed : status.code()); };
  log->sync(note);
  loop_.run_for(1s);
  disk_.set_failing(false);
  log->append(text_bytes("three"));
  log->sync(note);
  loop_.run_for(1s);
  EXPECT_EQ(codes, (std::vector<ErrorCode>{ErrorCode::kIo, ErrorCode::kIo}));
  log.reset();
  disk_.process_died();
  log = open();
  EXPECT_EQ(records_, (std::vector<std::string>{"one", "two"})) << "read back from the cache";
  EXPECT_FALSE(log->settled());
  sync(*log);
  EXPECT_TRUE(log->settled());
  log.reset();
  disk_.power_lost();
  log = open();
  EXPECT_EQ(records_, (std::vector<std::string>{"one", "two"})) << "it was said to be durable";
}

TEST_F(OpenedLogTest, ACompactedLogGoesOnWithWhatWasAppendedMeanwhileBehindIt) {
  auto log = open();
  for (const char* text : {"one", "two", "three"}) log->append(text_bytes(text));
  std::vector<int> order;
  log->sync([&](Status status) { order.push_back(status.ok() ? 1 : -1); });
  log->compact({text_bytes("one to three")}, [&](Status status) { order.push_back(status.ok() ? 2 : -2); });
  EXPECT_TRUE(log->compacting());
  log->append(text_bytes("four"));
  log->sync([&](Status status) { order.push_back(status.ok() ? 3 : -3); });
  loop_.run_for(1s);
  EXPECT_FALSE(log->compacting());
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(log->bytes(), disk_.content("log")->size());
  log->append(text_bytes("five"));
  sync(*log);
  log.reset();
  disk_.power_lost();
  log = open();
  EXPECT_EQ(records_, (std::vector<std::string>{"one to three", "four", "five"}));
}

TEST_F(OpenedLogTest, ALogThatCouldNotBeCompactedGoesOnAsItWas) {
  auto log = open();
  log->append(text_bytes("one"));
  sync(*log);
  disk_.set_capacity_bytes(disk_.content("log")->size() + 40);
  std::vector<ErrorCode> codes;
  const auto note = [&](const Status& status) { codes.push_back(status.ok() ? ErrorCode::kClosed : status.code()); };
  log->compact({Buffer(41).freeze()}, note);
  log->append(text_bytes("two"));
  log->sync(note);
  loop_.run_for(1s);
  EXPECT_EQ(codes, (std::vector<ErrorCode>{ErrorCode::kIo, ErrorCode::kClosed}));
  EXPECT_FALSE(log->compacting());
  log.reset();
  disk_.power_lost();
  log = open();
  EXPECT_EQ(records_, (std::vector<std::string>{"one", "two"}));
}

TEST_F(OpenedLogTest, ACallbackMayComeAfterTheLogIsGone) {
  auto log = open();
  log->append(text_bytes("one"));
  bool done = false;
  log->sync([&](Status) { done = true; });
  log.reset();
  loop_.run_for(1s);
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace shoal
