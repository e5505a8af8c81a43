#pragma once
// Cuts a token file once into numbered samples and orders them. A sample is one microbatch's worth of consecutive
// windows: sample i covers the tokens [i*B*T, (i+1)*B*T] (the last one only as a target), window b of it the tokens
// [i*B*T + b*T, i*B*T + (b+1)*T]. The same number always means the same text, so a sample that comes again is
// recognised. The last tenth of the samples (at least one) is validation. What is left at the end of the file is not
// used.
#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "common/tensor_view.h"
#include "runtime/data/token_file.h"

namespace shoal {

// Borrows nothing: shares the file's bytes. Immutable; thread-safe.
class Samples {
 public:
  // ERRORS: kInput (less than two samples of text).
  static Result<Samples> cut(TokenFile file, std::uint32_t sequences, std::uint32_t positions);

  std::uint64_t count() const { return count_; }
  std::uint64_t training() const { return count_ - validation_; }                   // samples [0, training())
  std::uint64_t validation() const { return validation_; }                          // samples [training(), count())
  std::uint64_t targets() const { return std::uint64_t{sequences_} * positions_; }  // of one sample
  // (B, T + 1), dtype of the file: inputs are columns [0, T), targets columns [1, T]. REQUIRES: sample < count().
  HostTensor tokens(SampleId sample) const;
  const TokenFile& file() const { return file_; }

 private:
  Samples(TokenFile file, std::uint32_t sequences, std::uint32_t positions, std::uint64_t count);
  TokenFile file_;
  std::uint32_t sequences_, positions_;
  std::uint64_t count_, validation_;
};

// The order in which training samples are issued: epoch e is the permutation drawn from (seed, e). Keeps the
// permutation of one epoch (8 bytes a sample). One thread at a time.
class SampleOrder {
 public:
  struct Item {
    SampleId sample;
    std::uint32_t epoch = 0;
  };
  // REQUIRES: samples > 0.
  SampleOrder(std::uint64_t samples, std::uint64_t seed);
  // That of the index-th microbatch of the run; cheap while consecutive calls stay in one epoch.
  Item at(std::uint64_t index);

 private:
  void draw(std::uint32_t epoch);
  std::uint64_t seed_;
  std::uint32_t epoch_ = 0;
  std::vector<std::uint64_t> permutation_;
};

}  // namespace shoal
