// libFuzzer's side of one target: SHOAL_FUZZ_TARGET is its name.
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)shoal::fuzz::SHOAL_FUZZ_TARGET.take({data, size});
  return 0;
}
