#pragma once
// Checkpoints that tests make: keys, runs and images by number, and files as one piece.
#include <algorithm>
#include <vector>

#include "state/checkpoint.h"
#include "tests/sync/sync_fixtures.h"

namespace shoal::test {

inline KeyPair key_numbered(std::uint8_t n) {
  std::array<std::uint8_t, 32> seed{};
  seed[0] = n;
  return KeyPair::from_seed(seed);
}

inline RunId run_numbered(std::uint8_t n) {
  RunId run;
  run.bytes.fill(n);
  return run;
}

inline Bytes image_of(const OuterRule& rule, Version version) {
  IntegerExecutor executor(tiny_spec());
  fill(executor, ArenaRole::kAnchor, 1, 0.5f);
  for (const ArenaRole role : rule.shared_roles())
    fill(executor, role, static_cast<float>(version.value), 0.25f + static_cast<float>(role));
  executor.arena().tag(ArenaRole::kAnchor) = ~CountTag{7};
  return make_state_image(executor, rule, version);
}

inline std::vector<std::uint8_t> file_of(const std::vector<Bytes>& parts) {
  std::vector<std::uint8_t> file;
  for (const Bytes& part : parts) file.insert(file.end(), part.data(), part.data() + part.size());
  return file;
}

inline Result<Checkpoint> parse_file(const std::vector<std::uint8_t>& file) { return parse_checkpoint(file); }

}  // namespace shoal::test
