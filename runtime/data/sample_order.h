#pragma once
// The order in which training samples are issued (docs/REPRODUCE.md, "Text and samples").
#include <cstdint>
#include <vector>

#include "common/ids.h"

namespace shoal {

// One file's training samples, numbered from `first`, and how many of them an epoch draws.
struct FileShare {
  std::uint64_t first = 0, samples = 0, an_epoch = 0;
};

// Place n is place n mod S of epoch floor(n / S), S = the training samples. Without shares epoch e is the permutation
// drawn from (seed, e). With them an epoch draws `an_epoch` samples of each file: which file has which place is drawn
// from (seed, e), and a file goes through its samples again and again, the n-th time in the order drawn from (seed,
// file, n). Keeps the order of one epoch (8 bytes a sample; with shares 16). One thread at a time.
class SampleOrder {
 public:
  struct Item {
    SampleId sample;
    std::uint32_t epoch = 0;
  };
  // REQUIRES: samples > 0; of `shares`, each has samples and the sum of an_epoch is `samples`.
  SampleOrder(std::uint64_t samples, std::uint64_t seed, std::vector<FileShare> shares = {});
  // That of the index-th microbatch of the run; cheap while consecutive calls stay in one epoch.
  Item at(std::uint64_t index);

 private:
  void draw(std::uint32_t epoch);
  void draw_shares(std::uint32_t epoch);
  std::uint64_t seed_;
  std::vector<FileShare> shares_;
  std::uint32_t epoch_ = 0;
  std::vector<std::uint64_t> order_;  // samples of the epoch
};

}  // namespace shoal
