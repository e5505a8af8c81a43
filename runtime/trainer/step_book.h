#pragma once
// The global steps of a run (allreduce, and a diloco run's warm start): microbatch n belongs to step
// n / microbatches_per_step + 1. A step is whole when all its microbatches are logged, and done at a stage when a round
// of that stage names it. Under `diloco` with `drain` it counts what is issued, up to an inner step of all replicas.
//
// Value without I/O.   Thread: loop only.   Bounds: the steps that are not done at every stage.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/ids.h"
#include "router/commit_book.h"
#include "runtime/config/config.h"

namespace shoal {

class StepBook {
 public:
  // REQUIRES: config outlives it.
  explicit StepBook(const RunConfig& config) : config_(config) {}

  StepId step_of(std::uint64_t serial) const;  // 0: no step (diloco after its warm start)
  // Step s is issued when s - 2 is done at every stage (drain: s - 1).
  bool may_issue(std::uint64_t serial) const;
  // With `drain`, of what is of no global step: as many are issued as close a window at every expected replica, so all
  // of them have to be decided, and those who hold them told, before the next one is issued. What a lost peer's replica
  // then lacks in its window comes from the next ones, whose others are part of a step late there.
  bool is_flush_due() const;
  void issued(std::uint64_t serial);
  void flushed() { issued_ = 0; }
  std::vector<MicrobatchId> microbatches(StepId step, std::uint64_t trainer) const;

  // A replayed book: steps that it has and that are not done at every stage count as not announced.
  void resume(const CommitBook& book, std::uint64_t trainer);
  void logged(std::uint64_t serial);
  void done(StepId step, StageId stage);
  // Steps are announced in their order, also when a later one was whole first.
  std::optional<StepId> next_whole() const;
  void announced(StepId step);
  std::vector<StepId> cut_short() const;  // begun, and not announced

 private:
  std::uint64_t size() const { return config_.microbatches_of_step(0); }  // all have the size of the first

  const RunConfig& config_;
  std::map<StepId, std::uint64_t> logged_;  // microbatches that are
  std::map<StepId, std::set<StageId>> stages_;
  StepId done_;               // all up to it are done at every stage
  StepId announced_;          // all up to it were announced
  std::uint64_t issued_ = 0;  // since the last flush
};

}  // namespace shoal
