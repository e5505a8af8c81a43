#pragma once
// A fuzz target: a parser of bytes that strangers send, or that lie on a disk, and what must hold of whatever it
// accepts. One file a target; it runs under libFuzzer as the program fuzz_NAME (fuzz_main.cc), and in every build over
// its seeds, whatever is cut off them and what a generator changes in them (fuzz_test.cc).
#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"

namespace shoal::fuzz {

struct Target {
  std::string_view name;  // of its file
  // Gives the bytes to the parser and aborts where something does not hold. Returns whether they were accepted. Sums
  // and signatures are tried as they are and mended, so that what stands behind them is reached.
  bool (*take)(ByteView);
  // Inputs that are accepted, made by the project's own writers.
  std::vector<Bytes> (*seeds)();
};

// A target is a row here, its file, and its name in CMakeLists.txt.
#define SHOAL_FUZZ_TARGETS(TARGET) \
  TARGET(authority_log)            \
  TARGET(checkpoint)               \
  TARGET(child_line)               \
  TARGET(envelope)                 \
  TARGET(event_lines)              \
  TARGET(frame)                    \
  TARGET(greeting)                 \
  TARGET(manifest)                 \
  TARGET(pretrained_config)        \
  TARGET(record)                   \
  TARGET(relay_words)              \
  TARGET(router_answer)            \
  TARGET(run_file)                 \
  TARGET(safetensors)              \
  TARGET(state_image)              \
  TARGET(state_transfer)           \
  TARGET(ticket)                   \
  TARGET(tokenizer)                \
  TARGET(trainer_log)              \
  TARGET(weight_index)

#define SHOAL_FUZZ_DECLARE(target) extern const Target target;
SHOAL_FUZZ_TARGETS(SHOAL_FUZZ_DECLARE)
#undef SHOAL_FUZZ_DECLARE

inline std::string_view text_in(ByteView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
inline std::vector<std::uint8_t> copy_of(ByteView bytes) { return {bytes.begin(), bytes.end()}; }
inline bool same_bytes(ByteView a, ByteView b) { return text_in(a) == text_in(b); }

}  // namespace shoal::fuzz
