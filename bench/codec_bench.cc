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
#include "common/os/batch_work.h"
#include "common/rng.h"
#include "compression/codec.h"
#include "compression/distortion.h"
#include "kernels/device.h"
#include "kernels/int8_tiles.h"

namespace shoal {
namespace {

constexpr int kRepeats = 9;  // the median of these is shown
// Activations of the bench model (4 sequences, 256 positions, width 256: 1 MiB), so many that neither they nor what is
// made of them stay in a cache.
constexpr std::size_t kTensors = 96;

Shape tensor_shape() { return {4, 256, 256}; }

struct Operation {
  std::string name;
  std::function<void(std::size_t)> run;  // on the tensor of this number
  std::vector<double> seconds;           // of one pass over all tensors, one figure a repeat
};

// The operations take turns, so that a busy moment of the machine meets all of them.
void measure(std::vector<Operation>& operations) {
  using Steady = std::chrono::steady_clock;
  for (int repeat = -1; repeat < kRepeats; ++repeat) {
    for (Operation& operation : operations) {
      const auto start = Steady::now();
      for (std::size_t tensor = 0; tensor < kTensors; ++tensor) operation.run(tensor);
      const std::chrono::duration<double> elapsed = Steady::now() - start;
      if (repeat >= 0) operation.seconds.push_back(elapsed.count());  // the first is for pages and clock rate
    }
  }
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

HostTensor normal_tensor(std::uint64_t seed) {
  Rng rng(seed);
  Buffer buffer(static_cast<std::size_t>(element_count(tensor_shape())) * sizeof(float));
  for (float& value : buffer.as<float>()) value = static_cast<float>(rng.normal());
  return make_host_tensor(DType::kF32, tensor_shape(), std::move(buffer));
}

HostTensor tenth_apart(const HostTensor& tensor) {
  const HostTensor other = normal_tensor(2);
  Buffer buffer(tensor.bytes.size());
  for (std::size_t i = 0; i < tensor.f32().size(); ++i) buffer.as<float>()[i] = tensor.f32()[i] + 0.1f * other.f32()[i];
  return make_host_tensor(DType::kF32, tensor.shape, std::move(buffer));
}

// What is read and written; whoever runs an operation leaves its result for the next.
struct Arrays {
  Arrays() {
    const HostTensor first = normal_tensor(1), near = tenth_apart(first);
    for (std::size_t i = 0; i < kTensors; ++i) {
      tensors.push_back({first.dtype, first.shape, i == 0 ? first.bytes : Bytes::copy_of(first.bytes.view())});
      outputs.emplace_back(first.bytes.size());
      bases.push_back({first.dtype, first.shape, i == 0 ? near.bytes : Bytes::copy_of(near.bytes.view())});
    }
  }
  std::vector<HostTensor> tensors, bases;  // of each the one that differs from it by a tenth
  std::vector<Buffer> outputs;
};

struct Row {
  CodecId codec;
  double encode = 0, decode = 0;  // GB/s of fp32 bytes
  double bytes_per_element = 0;
  Distortion distortion;
};

struct Report {
  double copy = 0;   // GB/s of bytes copied; twice as many are moved
  double triad = 0;  // GB/s of bytes moved: a = b + 3 c
  double sum = 0;    // GB/s of CRC-32C
  std::vector<Row> rows;
};

void triad(std::span<float> a, std::span<const float> b, std::span<const float> c) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = b[i] + 3.0f * c[i];
}

Result<Report> run_all(Arrays& arrays) {
  const HostTensor& first = arrays.tensors[0];
  Report report;
  std::vector<std::vector<Bytes>> frames;  // by codec, by tensor
  const auto base_of = [&](std::size_t i) { return BaseView{arrays.bases[i].view(), 1}; };
  const BaseView base = base_of(0);
  for (const CodecId id : kCodecs) {
    SHOAL_ASSIGN(const Bytes frame, codec_for(id).encode(first.view(), TensorRole::kActivation, &base, 1));
    SHOAL_ASSIGN(const HostTensor decoded, decode_tensor(frame, DType::kF32, first.shape, &base));
    Row row{id, 0, 0, static_cast<double>(frame.size()) / static_cast<double>(first.f32().size()), {}};
    row.distortion.add(first.f32(), decoded.f32());
    report.rows.push_back(row);
    frames.emplace_back(kTensors);
  }
  const auto output = [&](std::size_t i) { return arrays.outputs[i].view(); };
  volatile std::uint32_t sum = 0;
  std::vector<Operation> operations;
  operations.push_back({"memcpy",
                        [&](std::size_t i) {
                          const ByteView from = arrays.tensors[i].bytes;
                          std::memcpy(output(i).data(), from.data(), from.size());
                        },
                        {}});
  operations.push_back({"triad",
                        [&](std::size_t i) {
                          triad(arrays.outputs[i].as<float>(), arrays.tensors[i].f32(),
                                arrays.tensors[(i + kTensors / 2) % kTensors].f32());
                        },
                        {}});
  operations.push_back({"crc32c", [&](std::size_t i) { sum = crc32c(arrays.tensors[i].bytes, sum); }, {}});
  for (std::size_t c = 0; c < report.rows.size(); ++c) {
    const Codec& codec = codec_for(report.rows[c].codec);
    operations.push_back({"encode",
                          [&, c](std::size_t i) {
                            const BaseView known = base_of(i);
                            frames[c][i] =
                                codec.encode(arrays.tensors[i].view(), TensorRole::kActivation, &known, i).value();
                          },
                          {}});
    operations.push_back({"decode",
                          [&, c](std::size_t i) {
                            const BaseView known = base_of(i);
                            SHOAL_CHECK(codec.decode(frames[c][i], &known, output(i)).ok());
                          },
                          {}});
  }
  measure(operations);
  const double gigabytes = static_cast<double>(kTensors * first.bytes.size()) * 1e-9;
  const auto rate = [&](std::size_t operation) { return gigabytes / median(operations[operation].seconds); };
  report.copy = rate(0);
  report.triad = 3 * rate(1);
  report.sum = rate(2);
  for (std::size_t c = 0; c < report.rows.size(); ++c) {
    report.rows[c].encode = rate(3 + 2 * c);
    report.rows[c].decode = rate(4 + 2 * c);
  }
  return report;
}

// A part of the triad's rate: bytes read and written, fp32 on one side and the frame on the other.
double of_memory(const Row& row, double gigabytes_per_s, double triad_gigabytes_per_s) {
  return gigabytes_per_s * (4 + row.bytes_per_element) / 4 / triad_gigabytes_per_s;
}

void print_json(const Report& report) {
  for (const Row& row : report.rows) {
    const double snr = row.distortion.snr_db();
    const nlohmann::ordered_json line = {
        {"bench", "codec"},
        {"codec", codec_for(row.codec).name()},
        {"encode_gbps", row.encode},
        {"decode_gbps", row.decode},
        {"memcpy_gbps", report.copy},
        {"triad_gbps", report.triad},
        {"crc32c_gbps", report.sum},
        {"bytes_per_element", row.bytes_per_element},
        // JSON has no infinity: a lossless codec's SNR is null.
        {"snr_db", std::isfinite(snr) ? nlohmann::ordered_json(snr) : nlohmann::ordered_json(nullptr)},
        {"max_error", row.distortion.max_error()},
        {"sign_flips", row.distortion.sign_flips()},
        {"rounded_to_zero", row.distortion.rounded_to_zero()},
        {"cpu", fast_cpu_target()}};
    std::printf("%s\n", line.dump().c_str());
  }
}

void print_table(const Report& report) {
  const CudaReport cuda = probe_cuda();
  std::printf(
      "Codecs on one thread, %s, %zu tensors of fp32 %s in turn (%zu MiB). GB/s of fp32 bytes, median of %d; encode\n"
      "makes a new frame, decode writes into given memory, both with checksum. Memory: bytes read and written, of the\n"
      "triad's. CUDA: %s\n\n"
      "memcpy %.2f GB/s, STREAM triad %.2f GB/s moved, crc32c %.2f GB/s\n\n"
      "%-14s %8s %8s %8s %8s %8s %8s %10s %8s\n",
      std::string(fast_cpu_target()).c_str(), kTensors, text_of(tensor_shape()).c_str(), kTensors, kRepeats,
      cuda.usable() ? (cuda.devices[0].name + ", not timed here").c_str() : cuda.reason.c_str(), report.copy,
      report.triad, report.sum, "codec", "encode", "decode", "memory", "memory", "B/elem.", "SNR dB", "max error",
      "to zero");
  for (const Row& row : report.rows) {
    std::printf("%-14s %8.2f %8.2f %7.0f%% %7.0f%% %8.3f %8.2f %10.3g %8llu\n",
                std::string(codec_for(row.codec).name()).c_str(), row.encode, row.decode,
                100 * of_memory(row, row.encode, report.triad), 100 * of_memory(row, row.decode, report.triad),
                row.bytes_per_element, row.distortion.snr_db(), row.distortion.max_error(),
                static_cast<unsigned long long>(row.distortion.rounded_to_zero()));
  }
}

}  // namespace

Status run_codec_bench(const CodecBenchOptions& options) {
  begin_batch_work();  // as a peer's device thread: frames come from memory that is used again
  Arrays arrays;
  SHOAL_ASSIGN(const Report report, run_all(arrays));
  options.json ? print_json(report) : print_table(report);
  return {};
}

}  // namespace shoal
