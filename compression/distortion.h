#pragma once
// What a lossy codec did to a tensor, in figures that any test or benchmark can bound. Value type; not thread-safe.
// Look at all of them: each shows a fault that the others hide (a bias is invisible in the SNR, a lost tile in the
// mean).
#include <cstdint>
#include <span>
#include <string>

namespace shoal {

class Distortion {
 public:
  // REQUIRES: equal sizes, finite values. May be called for several pieces of one tensor.
  void add(std::span<const float> original, std::span<const float> decoded);

  std::uint64_t count() const { return count_; }
  std::uint64_t sign_flips() const { return sign_flips_; }            // both non-zero, of opposite sign
  std::uint64_t rounded_to_zero() const { return rounded_to_zero_; }  // non-zero became zero
  double max_error() const { return max_error_; }                     // max |decoded - original|
  double bias() const;                                                // mean of decoded - original; 0 for nothing
  double rms_error() const;
  // 10 log10(sum original^2 / sum error^2), dB; infinity without error.
  double snr_db() const;
  std::string text() const;

 private:
  std::uint64_t count_ = 0;
  std::uint64_t sign_flips_ = 0;
  std::uint64_t rounded_to_zero_ = 0;
  double max_error_ = 0;
  double error_sum_ = 0;
  double error_energy_ = 0;
  double signal_energy_ = 0;
};

}  // namespace shoal
