#include "kernels/place.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "common/uncleared_memory.h"
#include "kernels/frame_kernels.h"
#include "kernels/norm.h"

namespace shoal {

Status put(ByteView from, const PlacedBytes& to) {
  SHOAL_CHECK_EQ(from.size(), to.bytes.size());
  if (!to.place.on_host()) return frame_kernels().copy_in(to.bytes.data(), from.data(), from.size(), to.place.stream);
  if (!from.empty()) std::memcpy(to.bytes.data(), from.data(), from.size());
  return {};
}

Status fetch(const PlacedTensor& from, MutableByteView to) {
  const ByteView bytes = from.tensor.bytes;
  SHOAL_CHECK_EQ(bytes.size(), to.size());
  if (!from.place.on_host()) return frame_kernels().copy_out(to.data(), bytes.data(), bytes.size(), from.place.stream);
  if (!bytes.empty()) std::memcpy(to.data(), bytes.data(), bytes.size());
  return {};
}

Result<HostTensor> fetched(const PlacedTensor& from) {
  UnclearedMemory memory(from.tensor.bytes.size());
  SHOAL_TRY(fetch(from, memory.view()));
  return HostTensor{from.tensor.dtype, from.tensor.shape, std::move(memory).freeze()};
}

Result<double> root_mean_square(const PlacedTensor& of) {
  const std::span<const float> values = of.tensor.f32();
  if (of.place.on_host()) return root_mean_square(values);
  if (values.empty()) return 0.0;
  const FrameKernels& kernels = frame_kernels();
  std::vector<double> sums((values.size() + kNormBlock - 1) / kNormBlock);
  DeviceScratch scratch(sums.size() * sizeof(double), of.place.stream);
  SHOAL_TRY(scratch.status());
  SHOAL_TRY(kernels.norm_blocks(values.data(), values.size(), scratch.as<double>(), of.place.stream));
  SHOAL_TRY(kernels.copy_out(sums.data(), scratch.as<double>(), sums.size() * sizeof(double), of.place.stream));
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total) / std::sqrt(static_cast<double>(values.size()));
}

}  // namespace shoal
