#include "compression/distortion.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/check.h"
#include "common/formatted.h"

namespace shoal {

void Distortion::add(std::span<const float> original, std::span<const float> decoded) {
  SHOAL_CHECK_EQ(original.size(), decoded.size());
  for (std::size_t i = 0; i < original.size(); ++i) {
    const double was = original[i];
    const double is = decoded[i];
    const double error = is - was;
    SHOAL_CHECK(std::isfinite(error));
    sign_flips_ += was * is < 0 ? 1 : 0;
    rounded_to_zero_ += was != 0 && is == 0 ? 1 : 0;
    max_error_ = std::max(max_error_, std::abs(error));
    error_sum_ += error;
    error_energy_ += error * error;
    signal_energy_ += was * was;
  }
  count_ += original.size();
}

double Distortion::bias() const { return count_ == 0 ? 0.0 : error_sum_ / static_cast<double>(count_); }

double Distortion::rms_error() const {
  return count_ == 0 ? 0.0 : std::sqrt(error_energy_ / static_cast<double>(count_));
}

double Distortion::snr_db() const {
  if (error_energy_ == 0) return std::numeric_limits<double>::infinity();
  return 10.0 * std::log10(signal_energy_ / error_energy_);
}

std::string Distortion::text() const {
  return formatted("SNR %.2f dB, max error %.3g, rms %.3g, bias %.3g, %llu flipped, %llu to zero, of %llu", snr_db(),
                   max_error_, rms_error(), bias(), static_cast<unsigned long long>(sign_flips_),
                   static_cast<unsigned long long>(rounded_to_zero_), static_cast<unsigned long long>(count_));
}

}  // namespace shoal
