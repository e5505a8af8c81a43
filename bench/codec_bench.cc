#include "bench/codec_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/check.h"
#include "common/rng.h"
#include "compression/codec.h"
#include "compression/distortion.h"
#include "kernels/accumulate.h"
#include "kernels/device.h"
#include "kernels/int8_tiles.h"

namespace shoal {
namespace {

constexpr int kRepeats = 9;                 // the median of these is shown
constexpr double kSecondsPerRepeat = 0.02;  // long against the clock, short against a change of load

struct Row {
  std::string operation;
  Shape shape;
  double gigabytes_per_s = 0;  // of fp32 tensor bytes
  double copy_gigabytes_per_s = 0;
  double ratio = 0;   // fp32 bytes over frame bytes; 0 where there is no frame
  double snr_db = 0;  // with a frame only
};

struct Operation {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds;  // a call, one figure a repeat
};

double seconds_a_call(const std::function<void()>& run) {
  using Steady = std::chrono::steady_clock;
  const auto start = Steady::now();
  std::size_t calls = 0;
  std::chrono::duration<double> elapsed{};
  do {
    run();
    ++calls;
    elapsed = Steady::now() - start;
  } while (elapsed.count() < kSecondsPerRepeat);
  return elapsed.count() / static_cast<double>(calls);
}

// The operations take turns, so that a busy moment of the machine meets all of them.
void measure(std::vector<Operation>& operations) {
  for (Operation& operation : operations) operation.run();  // pages, caches, clock rate
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    for (Operation& operation : operations) operation.seconds.push_back(seconds_a_call(operation.run));
  }
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

HostTensor normal_tensor(const Shape& shape) {
  Rng rng(1);
  Buffer buffer(static_cast<std::size_t>(element_count(shape)) * sizeof(float));
  for (float& value : buffer.as<float>()) value = static_cast<float>(rng.normal());
  return make_host_tensor(DType::kF32, shape, std::move(buffer));
}

struct CodecTrial {
  const Codec* codec;
  Bytes frame;
  double snr_db;
};

Result<CodecTrial> try_codec(CodecId id, const HostTensor& tensor) {
  const Codec& codec = codec_for(id);
  SHOAL_ASSIGN(Bytes frame, codec.encode(tensor.view(), TensorRole::kActivation));
  SHOAL_ASSIGN(const HostTensor decoded, decode_tensor(frame, DType::kF32, tensor.shape));
  Distortion distortion;
  distortion.add(tensor.f32(), decoded.f32());
  return CodecTrial{&codec, std::move(frame), distortion.snr_db()};
}

// Frames of all codecs and the kernels below them, on one tensor.
Result<std::vector<Row>> rows_for(const Shape& shape) {
  const HostTensor tensor = normal_tensor(shape);
  const std::span<const float> values = tensor.f32();
  Buffer out(tensor.bytes.size());
  std::vector<std::int8_t> codes(values.size());
  std::vector<float> scales(int8_tile_count(values.size()));
  int8_quantise(values, codes, scales);
  const auto out_f32 = [&] { return out.as<float>(); };
  std::vector<CodecTrial> trials;
  for (const CodecId id : kCodecs) {
    SHOAL_ASSIGN(CodecTrial trial, try_codec(id, tensor));
    trials.push_back(std::move(trial));
  }

  std::vector<Operation> operations;
  operations.push_back({"copy", [&] { std::memcpy(out.data(), tensor.bytes.data(), out.size()); }, {}});
  for (const CodecTrial& trial : trials) {
    const std::string name(trial.codec->name());
    operations.push_back(
        {name + " encode", [&] { SHOAL_CHECK(trial.codec->encode(tensor.view(), TensorRole::kActivation).ok()); }, {}});
    operations.push_back(
        {name + " decode", [&] { SHOAL_CHECK(trial.codec->decode(trial.frame, nullptr, out.view()).ok()); }, {}});
  }
  operations.push_back({"int8 quantise kernel", [&] { int8_quantise(values, codes, scales); }, {}});
  operations.push_back({"int8 quantise twin", [&] { int8_quantise_twin(values, codes, scales); }, {}});
  operations.push_back({"int8 dequantise kernel", [&] { int8_dequantise(codes, scales, out_f32()); }, {}});
  operations.push_back({"int8 dequantise twin", [&] { int8_dequantise_twin(codes, scales, out_f32()); }, {}});
  operations.push_back({"screen", [&] { SHOAL_CHECK(all_finite(values)); }, {}});
  // Sign flips by turns keep the sum where it started.
  float sign = 1.0f;
  operations.push_back(
      {"accumulate", [&] { SHOAL_CHECK(accumulate_checked(out_f32(), values, sign = -sign).ok()); }, {}});
  operations.push_back({"crc32c",
                        [&] {
                          volatile std::uint32_t sum = crc32c(tensor.bytes);
                          (void)sum;
                        },
                        {}});
  measure(operations);

  std::vector<Row> rows;
  const double gigabytes = static_cast<double>(tensor.bytes.size()) * 1e-9;
  const double copy = gigabytes / median(operations[0].seconds);
  for (const Operation& operation : operations) {
    Row row{operation.name, shape, gigabytes / median(operation.seconds), copy, 0, 0};
    for (const CodecTrial& trial : trials) {
      const std::string name(trial.codec->name());
      if (operation.name != name + " encode" && operation.name != name + " decode") continue;
      row.ratio = static_cast<double>(tensor.bytes.size()) / static_cast<double>(trial.frame.size());
      row.snr_db = trial.snr_db;
    }
    rows.push_back(row);
  }
  return rows;
}

void print_json(const Row& row, const std::string& target) {
  nlohmann::ordered_json line = {{"bench", "codec"},
                                 {"operation", row.operation},
                                 {"shape", row.shape},
                                 {"cpu", target},
                                 {"gb_per_s", row.gigabytes_per_s},
                                 {"copy_gb_per_s", row.copy_gigabytes_per_s},
                                 {"of_copy", row.gigabytes_per_s / row.copy_gigabytes_per_s}};
  if (row.ratio > 0) {
    line["ratio"] = row.ratio;
    // JSON has no infinity: a lossless codec's SNR is null.
    line["snr_db"] = std::isfinite(row.snr_db) ? nlohmann::ordered_json(row.snr_db) : nlohmann::ordered_json(nullptr);
  }
  std::printf("%s\n", line.dump().c_str());
}

void print_table(const std::vector<Row>& rows) {
  std::printf("\nfp32 %s, %.2f MB\n%-24s %9s %9s %7s %9s\n", text_of(rows[0].shape).c_str(),
              static_cast<double>(element_count(rows[0].shape)) * 4e-6, "operation", "GB/s", "of copy", "ratio",
              "SNR dB");
  for (const Row& row : rows) {
    std::printf("%-24s %9.2f %9.2f", row.operation.c_str(), row.gigabytes_per_s,
                row.gigabytes_per_s / row.copy_gigabytes_per_s);
    if (row.ratio > 0) {
      const bool lossy = std::isfinite(row.snr_db);
      std::printf(" %7.2f %9s", row.ratio, lossy ? std::to_string(row.snr_db).substr(0, 5).c_str() : "lossless");
    }
    std::printf("\n");
  }
}

}  // namespace

int run_codec_bench(bool json) {
  const std::string target(fast_cpu_target());
  if (!json) {
    const CudaReport cuda = probe_cuda();
    std::printf(
        "Codecs on one thread, %s. GB/s of fp32 tensor bytes, median of %d; encode makes a new frame, decode writes "
        "into\n"
        "given memory, both with checksum. CUDA: %s\n",
        target.c_str(), kRepeats,
        cuda.usable() ? (cuda.devices[0].name + ", not timed here").c_str() : cuda.reason.c_str());
  }
  // An activation of the bench model (4 sequences, 256 positions, width 256), which fits in a cache, and one that does
  // not.
  for (const Shape& shape : {Shape{4, 256, 256}, Shape{16, 1024, 1024}}) {
    const Result<std::vector<Row>> rows = rows_for(shape);
    if (!rows.ok()) {
      std::fprintf(stderr, "shoal-bench codec: %s\n", rows.error().message.c_str());
      return 1;
    }
    if (!json) print_table(*rows);
    for (const Row& row : *rows) {
      if (json) print_json(row, target);
    }
  }
  return 0;
}

}  // namespace shoal
