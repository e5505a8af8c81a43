#include "runtime/config/signed_manifest.h"

#include <algorithm>

#include "common/crypto/sign.h"

namespace shoal {

Result<RunConfig> open_manifest(const Manifest& manifest, const RunId& run) {
  Signature signature{};
  if (manifest.signature.size() != signature.size())
    return make_error(ErrorCode::kCorrupt, "the run's manifest carries no signature");
  std::ranges::copy(manifest.signature, signature.begin());
  const ByteView body{reinterpret_cast<const std::uint8_t*>(manifest.body.data()), manifest.body.size()};
  if (!verify(as_peer(run), body, signature))
    return make_error(ErrorCode::kCorrupt,
                      "the run's manifest is damaged or was not signed by the run's key: ask for a new ticket");
  return parse_manifest(manifest.body);
}

}  // namespace shoal
