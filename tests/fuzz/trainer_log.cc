// The trainer's log, and the book that is made of it.
#include "router/commit_book.h"
#include "tests/fuzz/framed_records.h"
#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

constexpr std::uint64_t kTrainer = 9;
constexpr std::uint16_t kStages = 2;

// A book that was read can go on.
void go_on(CommitBook& book) {
  SHOAL_CHECK_LE(book.low(), book.next_serial());
  if (const auto next = book.next()) {
    SHOAL_CHECK(book.find(*next) == nullptr);
    book.issued(*next);
  }
  (void)book.outstanding();
  (void)book.waiting_for();
  (void)book.list_rest("the run is over");
  while (book.done().left()) {
    (void)book.done_record();
    book.done_durable();
  }
  SHOAL_CHECK_EQ(book.unmerged(), std::size_t{0});
}

bool take_log(ByteView log) {
  CommitBook book(kTrainer, kStages);
  const auto whole = read_record_log(log, kTrainerLog, [&](ByteView record) { return book.replay(record); });
  if (!whole.ok()) return false;
  SHOAL_CHECK_LE(*whole, log.size());
  if (*whole == 0) return false;
  if (book.ended() || !book.lost().left_at_end().empty()) return go_on(book), true;
  // What stands for it says the same.
  CommitBook again(kTrainer, kStages);
  for (const Bytes& record : book.compacted()) SHOAL_CHECK(again.replay(record).ok());
  SHOAL_CHECK_EQ(again.low(), book.low());
  SHOAL_CHECK_EQ(again.committed(), book.committed());
  SHOAL_CHECK_EQ(again.unmerged(), book.unmerged());
  go_on(again);
  go_on(book);
  return true;
}

bool take(ByteView bytes) {
  const bool as_it_is = take_log(bytes);
  return take_log(framed(bytes, kTrainerLog)) || as_it_is;
}

std::vector<Bytes> seeds() {
  CommitBook book(kTrainer, kStages);
  std::vector<Bytes> records{book.header_record()};
  records.push_back(book.life_record({{1, 2}, 0, 0, 77, {}}));
  for (std::uint64_t serial = 0; serial < 3; ++serial) {
    const MicrobatchId id{kTrainer, serial};
    Gradient gradient;
    gradient.microbatch = id;
    gradient.path = {{{3, 4}, 100 + serial}, {{5, 6}, 200 + serial}};
    gradient.loss_sum = 1.5;
    gradient.targets = 8;
    book.issued(id);
    records.push_back(book.log(id, gradient));
    (void)book.durable(id);
  }
  (void)book.on_session_over({3, 4}, "no sign of life");
  records.push_back(book.done_record());
  std::vector<Bytes> compacted = book.compacted();
  records.push_back(bytes_of(EndRecord{}));
  std::vector<Bytes> logs;
  for (const Bytes& unframed_log : {unframed(records), unframed(compacted)}) {
    logs.push_back(unframed_log);
    logs.push_back(Bytes::from_vector(framed(unframed_log, kTrainerLog)));
  }
  return logs;
}

}  // namespace

const Target trainer_log{"trainer_log", take, seeds};

}  // namespace shoal::fuzz
