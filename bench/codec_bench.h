#pragma once
// shoal-bench codec: what encoding and decoding cost, beside the memory bandwidth measured in the same run, and what is
// lost.
namespace shoal {

// Prints a table, or with `json` one object a line, to stdout. One thread. Bytes are those of the fp32 tensor, so that
// codecs compare; "copy" is memcpy of the same tensor. Returns the exit code of the program: 0, or 1 if a codec failed.
int run_codec_bench(bool json);

}  // namespace shoal
