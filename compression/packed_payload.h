#pragma once
// The tiles of kernels/packed_tiles.h as a part of a payload: ceil(n / 32) bf16 scales, then the codes, 16 or 8 bytes a
// tile, whole tiles. What the codecs of packed tiles share. Pure.
#include "common/byte_codec.h"
#include "compression/codec.h"
#include "kernels/packed_tiles.h"

namespace shoal {

struct PackedLayout {
  PackedLayout(TileFormat f, std::uint64_t elements) : format(f), tiles(packed_tile_count(elements)) {}
  std::uint64_t scale_bytes() const { return 2 * tiles; }
  std::uint64_t code_bytes() const { return packed_tile_bytes(format) * tiles; }
  std::uint64_t bytes() const { return scale_bytes() + code_bytes(); }
  TileFormat format;
  std::uint64_t tiles;
};

// Writes `values` to `out` and returns its CRC-32C. ERRORS: kNonFinite (the first tile is named).
// REQUIRES: out.size() == layout.bytes().
Result<std::uint32_t> write_packed(const PackedLayout& layout, std::uint64_t seed, const PlacedTensor& values,
                                   MutableByteView out, const Codec& codec);
// ERRORS: kMalformed, kNonFinite (a scale that write_packed never makes). REQUIRES: in.size() == layout.bytes().
Status read_packed(const PackedLayout& layout, std::uint64_t seed, ByteView in, const PlacedBytes& values,
                   const Codec& codec);

}  // namespace shoal
