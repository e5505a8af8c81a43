// The authority's log.
#include "authority/authority_log.h"

#include "tests/fuzz/framed_records.h"
#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

// What was read can be written again, and says the same.
bool take_log(ByteView log) {
  const auto content = parse_log(log);
  if (!content.ok()) return false;
  SHOAL_CHECK_LE(content->valid_bytes, log.size());
  for (const LogRecord& record : content->records) {
    const auto packed = pack_log_record(record);
    SHOAL_CHECK(packed.ok());
    const auto again = parse_log_record(*packed);
    SHOAL_CHECK(again.ok());
    SHOAL_CHECK(same_bytes(*pack_log_record(*again), *packed));
  }
  return !content->records.empty();
}

bool take(ByteView bytes) {
  const bool as_it_is = take_log(bytes);
  return take_log(framed(bytes, kAuthorityLog)) || as_it_is;
}

std::vector<Bytes> seeds() {
  LogOpen open;
  open.open.round = RoundId(9);
  open.open.members = {{4, 1}, {5, 2}};
  LogCommit commit;
  commit.commit.round = RoundId(9);
  commit.commit.version = Version(4);
  commit.commit.secured = {{{4, 1}, {1, 2, 3}}, {{5, 2}, {}}};
  RecentCommits recent;
  recent.push(commit.commit);
  RoundCommit back = commit.commit;
  back.back_to = Version(1);
  LogShares shares;
  shares.shares = {{4, StageId(2), 17}};
  LogSessions sessions;
  sessions.over = {{{4, 1}, true}, {{5, 2}, false}};
  std::vector<Bytes> records;
  for (const LogRecord& record :
       {LogRecord(LogBase{Epoch(3), 40, 9, 2, 1}), LogRecord(shares), LogRecord(sessions),
        LogRecord(LogStage{StageId(2), Epoch(2), RoundId(9), StepId(8), recent, commit.commit}),
        LogRecord(LogStage{StageId(1), Epoch(2), RoundId(), StepId(), {}, {}}), LogRecord(LogNamed{commit.commit}),
        LogRecord(LogAgain{back}), LogRecord(LogOverAgain{StageId(2), {4, 1}, "no sign of life"})})
    records.push_back(*pack_log_record(record));
  for (const LogRecord& record : {LogRecord(LogStart{{"[run]\n", {1, 2, 3}}}),
                                  LogRecord(LogMember{StageId(2), {{4, 1}, {}, {{"10.0.0.1:7000"}}, true, Version(3)}}),
                                  LogRecord(LogRelays{{{"203.0.113.7:443", 9}}}), LogRecord(open), LogRecord(commit),
                                  LogRecord(LogOver{{4, 1}, "no sign of life"})})
    records.push_back(*pack_log_record(record));
  const Bytes unframed_log = unframed(records);
  return {unframed_log, Bytes::from_vector(framed(unframed_log, kAuthorityLog))};
}

}  // namespace

const Target authority_log{"authority_log", take, seeds};

}  // namespace shoal::fuzz
