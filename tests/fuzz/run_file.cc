// RUN.toml, as somebody was given it.
#include "runtime/config/config.h"
#include "tests/fuzz/run_texts.h"
#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

// Whatever is accepted has a manifest that every peer accepts, and that names the same run.
bool take(ByteView bytes) {
  const auto config = parse_config(text_in(bytes), "run.toml");
  if (!config.ok()) return false;
  const auto manifest = canonical_text(*config);
  if (!manifest.ok()) {
    SHOAL_CHECK(manifest.code() == ErrorCode::kTooLarge);
    return true;
  }
  const auto again = parse_manifest(*manifest);
  SHOAL_CHECK(again.ok());
  SHOAL_CHECK(*canonical_text(*again) == *manifest);
  return true;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const std::string_view text : kRunTexts) all.push_back(Bytes::copy_of(text));
  return all;
}

}  // namespace

const Target run_file{"run_file", take, seeds};

}  // namespace shoal::fuzz
