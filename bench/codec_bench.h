#pragma once
// shoal-bench codec: what encoding and decoding cost, beside memcpy and STREAM's triad (McCalpin 1995) measured in the
// same run on arrays beyond the caches, and what is lost.
#include "common/result.h"

namespace shoal {

struct CodecBenchOptions {
  bool json = false;
};

// Prints a table, or as JSON one object a codec, to stdout. One thread. Rates are of fp32 tensor bytes, so that
// codecs compare.
Status run_codec_bench(const CodecBenchOptions& options);

}  // namespace shoal
