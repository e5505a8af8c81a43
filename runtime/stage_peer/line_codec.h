#pragma once
// Which codec [wire] "auto" is for the tensors of one direction: `raw` where the lines carry them in passing, else
// `int8`, which takes about a quarter of the bytes and cost no loss where that was measured (docs/RESULTS.md). Each
// sender chooses for itself: a frame names its codec, and a receiver takes any (compression/codec.h).
//
// A line is slow when a raw tensor takes a noticeable part of the time in which this stage computes a microbatch. The
// limit for going back to `raw` lies far below the one for leaving it, and it must hold for kInARow tensors, since a
// measured rate comes and goes. Until a line is measured it counts as slow. State machine without I/O, threads or
// clock. Thread: loop only.
#include <cstdint>
#include <string>

#include "compression/codec.h"

namespace shoal {

class LineCodec {
 public:
  // Parts of the time that a microbatch is computed in, which a raw tensor may take of the line.
  static constexpr double kSlow = 1.0 / 4, kFast = 1.0 / 16;
  static constexpr int kInARow = 8;

  // `raw_bytes`: of one tensor.
  explicit LineCodec(std::uint64_t raw_bytes) : raw_bytes_(raw_bytes) {}

  // `bytes_per_second`: of the slowest line that the tensors go over; `compute_seconds`: of a microbatch here, both
  // passes. 0: not known yet. True: the codec is another one now.
  bool follow(double bytes_per_second, double compute_seconds);
  CodecId codec() const { return codec_; }
  // Why it is this one: "a raw tensor takes 131 ms of a line of 8.0 Mbit/s, and a microbatch is computed in 24 ms".
  std::string reason() const;

 private:
  std::uint64_t raw_bytes_;
  CodecId codec_ = CodecId::kInt8;
  double rate_ = 0, compute_ = 0;
  int fast_ = 0;  // tensors in a row that the line would have carried in passing
};

}  // namespace shoal
