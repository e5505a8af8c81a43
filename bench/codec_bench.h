#pragma once
// shoal-bench codec: what encoding and decoding cost, beside memcpy and STREAM's triad (McCalpin 1995) measured in the
// same run on arrays beyond the caches, and what is lost.
namespace shoal {

// Prints a table, or with `json` one object a codec, to stdout. One thread. Rates are of fp32 tensor bytes, so that
// codecs compare. Returns the exit code of the program: 0, or 1 if a codec failed.
int run_codec_bench(bool json);

}  // namespace shoal
