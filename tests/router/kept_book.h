#pragma once
// A commit book over bytes that are durable as soon as they are written, and paths to decide.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "names.h"
#include "router/commit_book.h"

namespace shoal::naming {

using State = CommitBook::StageState;

inline Gradient path_of(std::uint64_t serial, std::vector<EntryName> path = {}) {
  Gradient gradient;
  gradient.microbatch = id(serial);
  gradient.path =
      path.empty() ? std::vector{entry_name(1, 100 + serial), entry_name(2, 200 + serial)} : std::move(path);
  gradient.loss_sum = 1.5;
  gradient.targets = 8;
  return gradient;
}

// A book over bytes that are durable as soon as they are written.
struct Kept {
  CommitBook book{kTrainer, 2};
  std::vector<std::uint8_t> log;
  RecordFramer framer{kTrainerLog};

  Kept() { write(book.header_record()); }
  void write(const Bytes& record) {
    const Bytes framed = framer.frame(record);
    log.insert(log.end(), framed.data(), framed.data() + framed.size());
    framer.synced(log.size());
  }
  Bytes decide(std::uint64_t serial, std::vector<EntryName> path = {}) {
    book.issued(id(serial));
    const Bytes record = book.log(id(serial), path_of(serial, std::move(path)));
    write(record);
    EXPECT_TRUE(book.durable(id(serial)).empty());
    return record;
  }
  void secure(std::uint16_t stage, std::uint64_t tag, std::vector<std::uint64_t> serials) {
    RoundCommit commit;
    commit.stage = StageId(stage);
    commit.secured = {{session(tag), std::move(serials)}};
    EXPECT_TRUE(book.on_round_commit(commit, [](const MicrobatchId&, StageId, const EntryName&) {}).empty());
  }
  Bytes write_done() {
    const Bytes record = book.done_record();
    write(record);
    book.done_durable();
    return record;
  }
  Result<CommitBook> reopened() const {
    CommitBook result(kTrainer, 2);
    const auto whole = read_record_log(log, kTrainerLog, [&](ByteView record) { return result.replay(record); });
    if (!whole.ok()) return whole.error();
    EXPECT_EQ(*whole, log.size());
    return result;
  }
};

inline std::string hex(const Bytes& bytes) { return hex_of(bytes.data(), bytes.size()); }

inline LifeRecord a_life(std::uint64_t cursor) {
  LifeRecord life{session(9), cursor, 2, 77, {}};
  for (std::size_t i = 0; i < life.text.bytes.size(); ++i) life.text.bytes[i] = static_cast<std::uint8_t>(i);
  return life;
}

}  // namespace shoal::naming
