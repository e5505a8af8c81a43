#pragma once
// Cuts the files of a run's text once into numbered samples. A sample is one microbatch's worth of consecutive windows
// of one file: its sample i covers the tokens [i*B*T, (i+1)*B*T] (the last one only as a target), window b of it the
// tokens [i*B*T + b*T, i*B*T + (b+1)*T]. What is left at the end of a file is not used. Training samples are numbered
// first, file by file; the validation samples follow. These are the samples of the validation file, else the last tenth
// of each file's, mixed (one sample at least, of the largest file). The same number always means the same text, so a
// sample that comes again is recognised.
#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "common/tensor_view.h"
#include "runtime/data/sample_order.h"
#include "runtime/data/text_set.h"

namespace shoal {

// Borrows nothing: shares the files' bytes. Immutable; thread-safe.
class Samples {
 public:
  // The way in to a run's text. ERRORS: TextSet::open's, cut's.
  static Result<Samples> open(const TextFiles& files);
  // ERRORS: kInput (too little text for one sample of each kind; a file that is no sample long; a weight so small that
  // an epoch draws nothing of its file). REQUIRES: as many weights as files, or none.
  static Result<Samples> cut(TextSet text, std::uint32_t sequences, std::uint32_t positions);
  static Result<Samples> cut(TokenFile file, std::uint32_t sequences, std::uint32_t positions);

  std::uint64_t count() const { return training_ + validation_.size(); }
  std::uint64_t training() const { return training_; }                              // samples [0, training())
  std::uint64_t validation() const { return validation_.size(); }                   // samples [training(), count())
  std::uint64_t targets() const { return std::uint64_t{sequences_} * positions_; }  // of one sample
  // (B, T + 1), dtype of the files: inputs are columns [0, T), targets columns [1, T]. REQUIRES: sample < count().
  HostTensor tokens(SampleId sample) const;
  // That of the training samples in a run of this seed.
  SampleOrder order(std::uint64_t seed) const { return SampleOrder(training_, seed, shares_); }
  const TextSet& text() const { return text_; }

 private:
  struct Place {
    const TokenFile* file;
    std::uint64_t sample;  // within the file
  };
  // A validation sample: of the validation file, or of training file `file`.
  struct HeldOut {
    std::uint32_t file;
    std::uint64_t sample;
  };
  Samples(TextSet text, std::uint32_t sequences, std::uint32_t positions);
  std::uint64_t samples_of(const TokenFile& file) const;
  Status hold_out();
  void mix_held_out(const std::vector<std::uint64_t>& counts, const std::vector<std::uint64_t>& held);
  Status share_out();
  Place place_of(SampleId sample) const;

  TextSet text_;
  std::uint32_t sequences_, positions_;
  std::vector<std::uint64_t> first_;  // number of each training file's first sample
  std::uint64_t training_ = 0;
  std::vector<HeldOut> validation_;
  std::vector<FileShare> shares_;  // with weights
};

}  // namespace shoal
